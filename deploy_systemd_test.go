package pawl_test

import (
	"regexp"
	"strings"
	"testing"
)

// The unit starts the program with flags that it has, speaks the protocol that the
// program speaks, and keeps its data where it lets it write.
func TestUnitFitsTheProgram(t *testing.T) {
	settings := map[string]string{}
	for _, line := range strings.Split(readText(t, "deploy/pawl.service"), "\n") {
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			settings[key] = value
		}
	}
	_, help, ok := strings.Cut(readText(t, "docs/help.md"), "\n## pawl serve\n")
	help, _, _ = strings.Cut(help, "\n## ")
	flags := regexp.MustCompile(`--[a-z-]+`).FindAllString(settings["ExecStart"], -1)
	if !ok || len(flags) == 0 {
		t.Fatalf("no flags in %q, or no help of serve", settings["ExecStart"])
	}
	for _, flag := range flags {
		if !strings.Contains(help, flag+" ") && !strings.Contains(help, flag+"=") {
			t.Errorf("pawl serve has no %s", flag)
		}
	}
	if !strings.Contains(settings["ExecStart"], "--data /var/lib/"+settings["StateDirectory"]) {
		t.Errorf("the data is not in the state directory %q: %s", settings["StateDirectory"], settings["ExecStart"])
	}
	for key, want := range map[string]string{"Type": "notify", "ExecReload": "/bin/kill -HUP $MAINPID", "DynamicUser": "yes", "ProtectSystem": "strict", "NoNewPrivileges": "yes"} {
		if settings[key] != want {
			t.Errorf("%s is %q, want %q", key, settings[key], want)
		}
	}
}

package console

import (
	"strings"
	"testing"
)

func TestPlacesOfIDs(t *testing.T) {
	for id, want := range map[string]string{
		"op_01h455vb4pex5vsknk084sn02q": "/console/operations/op_01h455vb4pex5vsknk084sn02q", "op_../x": "", "nothing": "", "req_1": "", "": "",
	} {
		if got := to(id); got != want {
			t.Errorf("to(%q) = %q, want %q", id, got, want)
		}
	}
}

// TestLoginLeadsNowhereElse holds that what follows a login is a page of the
// console.
func TestLoginLeadsNowhereElse(t *testing.T) {
	for next, want := range map[string]string{
		"": "/console", "/console/operations?state=running": "/console/operations?state=running",
		"https://evil.example/console": "/console", "//evil.example/console/x": "/console", "/console/../v1": "/console", "/consolex": "/console",
		"/v1/operations": "/console", `/\evil.example`: "/console", "/console/login": "/console", "javascript:alert(1)": "/console",
	} {
		if got := local(next); got != want {
			t.Errorf("local(%q) = %q, want %q", next, got, want)
		}
	}
}

// TestNothingInline holds that no template needs what the policy forbids (CO-03).
func TestNothingInline(t *testing.T) {
	files, err := templateFiles.ReadDir("templates")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := templateFiles.ReadFile("templates/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{" style=", "<style", " onclick=", " onload=", "hx-on", "javascript:"} {
			if strings.Contains(strings.ToLower(string(text)), bad) {
				t.Errorf("%s holds %q", f.Name(), bad)
			}
		}
		if strings.Contains(string(text), "<script>") {
			t.Errorf("%s has an inline script", f.Name())
		}
	}
}

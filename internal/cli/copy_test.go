package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
)

// What a copy says that the nodes need can be copied into their configuration,
// wherever that lies.
func TestNextAfterCopyIsAConfiguration(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("old data/artifacts", 0o700); err != nil {
		t.Fatal(err)
	}
	const key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	if err := os.WriteFile("old data/secret.key", []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`(secrets: \S.*\}) \(.*(artifacts)\.store: (\S+)`).FindStringSubmatch(nextAfterCopy("old data"))
	if said == nil {
		t.Fatalf("it says %q", nextAfterCopy("old data"))
	}
	file := filepath.Join(t.TempDir(), "pawl.yaml")
	if err := os.WriteFile(file, []byte(said[1]+"\n"+said[2]+": {store: \""+said[3]+"\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Secrets.Reveal(); got != "base64key://"+key {
		t.Errorf("the key is %q", got)
	}
	folder, _, ok := c.Artifacts.Place("")
	if info, err := os.Stat(folder); !ok || err != nil || !info.IsDir() {
		t.Errorf("the files are at %q: %v %v", folder, ok, err)
	}
}

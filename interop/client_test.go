package interop

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A TypeScript client that a public generator makes from the API's description
// compiles under strict checks, and a program that uses it submits, waits and
// lists against a real node.
func TestGeneratedClient(t *testing.T) {
	n := startNode(t)
	dir := t.TempDir()
	description := filepath.Join(dir, "openapi.json")
	fetch(t, n.url+"/v1/openapi.json", description)
	run := func(name string, args ...string) []byte {
		t.Helper()
		began := time.Now()
		cmd := exec.CommandContext(t.Context(), "node", args...)
		out, err := cmd.Output()
		if err != nil {
			var said []byte
			if exit, ok := err.(*exec.ExitError); ok {
				said = exit.Stderr
			}
			t.Fatalf("%s: %v\n%s%s", name, err, out, said)
		}
		t.Logf("%s took %s", name, time.Since(began).Round(100*time.Millisecond))
		return out
	}
	run("generating", "node/node_modules/@hey-api/openapi-ts/bin/run.js", "--input", description, "--output", filepath.Join(dir, "client"),
		"--client", "@hey-api/client-fetch", "--silent")
	program, err := os.ReadFile("node/client.ts")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"program.ts": program, "tsconfig.json": []byte(tsconfig)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("compiling", "node/node_modules/typescript/bin/tsc", "--project", dir)
	var got struct {
		ID, Repeat, State, Task, Finished string
		Listed                            []string
		Unknown                           bool
	}
	if err := json.Unmarshal(run("running", filepath.Join(dir, "out", "program.js"), n.url, adminKey), &got); err != nil {
		t.Fatal(err)
	}
	if got.ID == "" || got.Repeat != got.ID || got.State != "succeeded" || got.Task == "" || got.Finished == "" || !slices.Equal(got.Listed, []string{got.ID}) || !got.Unknown {
		t.Errorf("%+v", got)
	}
}

const tsconfig = `{
  "compilerOptions": {
    "strict": true, "skipLibCheck": true, "target": "es2022", "lib": ["es2022", "dom", "dom.iterable"], "types": [],
    "module": "commonjs", "moduleResolution": "node10", "outDir": "out"
  },
  "files": ["program.ts"]
}`

func fetch(t *testing.T, url, into string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil {
		err = os.WriteFile(into, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

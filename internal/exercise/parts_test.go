package exercise

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFixturesThatCannotBePlayed(t *testing.T) {
	for name, change := range map[string][2]string{
		"no JSON":                  {`{`, `{{`},
		"an unknown member":        {`"about"`, `"abuot"`},
		"a member twice":           {`"operations": [`, `"operations": [], "operations": [`},
		"no description":           {`"name": "local"`, `"name": "Not A Name"`},
		"a word that ends":         {`{"task": "local-A", "word": "processing"}`, `{"task": "local-A", "word": "succeeded"}`},
		"a word not in the table":  {`{"task": "local-A", "word": "processing"}`, `{"task": "local-A", "word": "waiting"}`},
		"a task twice":             {`{"task": "local-B", "word"`, `{"task": "local-A", "word"`},
		"a check twice":            {`"check": "late_processing_is_stale"`, `"check": "first_event_is_applied"`},
		"a check of ours":          {`"check": "late_processing_is_stale"`, `"check": "` + checkPorts + `"`},
		"a check with a path":      {`"check": "late_processing_is_stale"`, `"check": "../x"`},
		"an address of nobody":     {`"to": "local-A"`, `"to": "local-Z"`},
		"no verdict":               {`"verdict": "stale"`, `"verdict": "late"`},
		"a refusal that applies":   {`"status": 202, "verdict": "applied"`, `"status": 400, "verdict": "applied"}, "refusal": true, "before": {"state": "running"`},
		"nothing to crash with":    {`"verdict": "applied", "state": "succeeded", "upstream_state": "succeeded"},` + "\n      \"look\": \"the binding", `"verdict": "applied"},` + "\n      \"look\": \"the binding"},
		"a state of no operation":  {`"expect": {"status": 400, "verdict": "rejected"}`, `"expect": {"status": 400, "verdict": "rejected", "state": "running"}`},
		"a read of an unknown one": {`"read": {"task": "local-B"`, `"read": {"task": "local-Z"`},
	} {
		text := strings.Replace(string(builtIn), change[0], change[1], 1)
		if text == string(builtIn) {
			t.Errorf("%s: nothing was changed", name)
		}
		parent := t.TempDir()
		file := filepath.Join(parent, "fixture.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(parent, "out")
		if err := Run(t.Context(), Options{Out: out, Fixture: file}); !errors.Is(err, ErrFixture) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(out); err == nil {
			t.Errorf("%s: a folder was written", name)
		}
	}
	if err := Run(t.Context(), Options{Out: filepath.Join(t.TempDir(), "out"), Fixture: "testdata/nowhere.json"}); !errors.Is(err, ErrFixture) {
		t.Errorf("no file: %v", err)
	}
}

func FuzzParseFixture(f *testing.F) {
	own, err := os.ReadFile("testdata/media-v2.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(builtIn)
	f.Add(own)
	f.Add([]byte(`{"upstream":{},"operations":[],"steps":[{"check":"x","event":{"id":"e","body":null},"expect":{}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fix, err := ParseFixture(data)
		if err != nil {
			return
		}
		for _, s := range fix.Steps {
			if (s.Event == nil) == (s.Read == nil) || s.task() != "" && fix.operation(s.task()).Task != s.task() {
				t.Errorf("step %q cannot be played", s.Check)
			}
		}
		if _, ok := fix.crashEvent(); !ok {
			t.Error("no event to crash with")
		}
	})
}

func TestNothingButLoopbackIsDialled(t *testing.T) {
	d := &dialer{}
	for _, address := range []string{"192.0.2.1:80", "127.0.0.2:80", "[::1]:80", "example.com:80", "127.0.0.1"} {
		if conn, err := d.dial(t.Context(), "tcp", address); !errors.Is(err, errOutside) {
			t.Errorf("%s: %v %v", address, conn, err)
		}
	}
	if asked, refused := d.list(); asked != 5 || len(refused) != 5 {
		t.Errorf("asked %d, refused %v", asked, refused)
	}
}

func TestAnOpenPortIsNoticed(t *testing.T) {
	d := &dialer{}
	l, err := listen(nil)
	if err != nil {
		t.Fatal(err)
	}
	if d.refusesConnections(t.Context(), l.address()) == nil {
		t.Error("an open port counts as closed")
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if err := d.refusesConnections(t.Context(), l.address()); err != nil {
		t.Errorf("a closed port: %v", err)
	}
}

func TestChildWithoutAnOrder(t *testing.T) {
	for _, in := range []string{"", "\n", "{}\n", `{"fixture":"","run":"00"}` + "\n"} {
		var out bytes.Buffer
		if status := child(t.Context(), strings.NewReader(in), &out); status != 1 || !strings.Contains(out.String(), `"error"`) {
			t.Errorf("%q: status %d, %s", in, status, &out)
		}
	}
}

// A program that does not become a child fails the check and hangs nothing.
func TestProgramThatIsNoChild(t *testing.T) {
	_, err := startChild(t.Context(), "/bin/true", order{}, &dialer{})
	if err == nil {
		t.Error("it counts as a child")
	}
}

func TestPathsAreReplaced(t *testing.T) {
	r := receipt{Tool: "pawl", Checks: []Check{{Name: "a", Evidence: "/tmp/x/ledger and /tmp/x"}, {Name: "b", Evidence: "nothing"}}}
	got, err := r.normalize([]hiddenPath{{"/tmp/x", "{ledger}"}, {"/tmp", "{temporary}"}, {"/", "{root}"}, {"", "{none}"}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Checks[0].Evidence != "{ledger}/ledger and {ledger}" || r.Checks[0].Evidence != "/tmp/x/ledger and /tmp/x" {
		t.Errorf("evidence is %q, of the original %q", got.Checks[0].Evidence, r.Checks[0].Evidence)
	}
	original, _ := encode(r)
	// printf /tmp/x | sha256sum
	const sum = "2e56aa36f538b33b48f37ef51e54ddb5cb9c7935e65c296b7494a17e8dff2a12"
	if got.Paths == nil || len(got.Paths.Replaced) != 1 || got.Paths.Replaced["{ledger}"] != sum || got.Paths.OriginalReceipt != sha256Hex(original) {
		t.Errorf("normalization is %+v", got.Paths)
	}
}

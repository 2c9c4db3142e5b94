package exercise

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The children of the tests are this test binary.
func TestMain(m *testing.M) {
	if IsChild() {
		os.Exit(Child(context.Background()))
	}
	os.Exit(m.Run())
}

// exercised runs the built-in exercise and gives its folder.
func exercised(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "receipts")
	var log bytes.Buffer
	if err := Run(t.Context(), Options{Out: out, Log: &log, Tool: "pawl test"}); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	if strings.Contains(log.String(), "FAILS") {
		t.Fatalf("the table holds a failure:\n%s", &log)
	}
	return out
}

// tree is every file below dir with its mode, time and content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[path] = fmt.Sprint(info.Mode(), info.ModTime())
		if d.Type().IsRegular() {
			body, err := os.ReadFile(path)
			all[path] += string(body)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func readJSON(t *testing.T, file string) map[string]any {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

// One run serves all tests that only look.
func TestExercise(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	out := exercised(t)
	t.Run("leaves nothing behind", func(t *testing.T) {
		if left := tree(t, temporary); len(left) != 1 {
			t.Errorf("left in the temporary folder: %v", slices.Collect(maps.Keys(left)))
		}
		if left, _ := os.ReadDir(filepath.Dir(out)); len(left) != 1 {
			t.Errorf("beside the folder: %v", left)
		}
	})
	t.Run("receipts have the shape of the contract", func(t *testing.T) { receiptsHaveTheirShape(t, out) })
	t.Run("ledger tells what happened", func(t *testing.T) { ledgerTells(t, out) })
	t.Run("wire", func(t *testing.T) { wireTells(t, out) })
	t.Run("checksums and archive", func(t *testing.T) { sealIsRight(t, out) })
	t.Run("no secret and no path is written", func(t *testing.T) { nothingLeaks(t, out, temporary) })
	t.Run("a second run is refused and touches nothing", func(t *testing.T) {
		before := tree(t, filepath.Dir(out))
		if err := Run(t.Context(), Options{Out: out}); !errors.Is(err, ErrExists) {
			t.Errorf("error is %v, want ErrExists", err)
		}
		if !maps.Equal(before, tree(t, filepath.Dir(out))) {
			t.Error("the folder was touched")
		}
	})
	t.Run("verifies, and changes nothing by it", func(t *testing.T) {
		before := tree(t, out)
		var said bytes.Buffer
		if err := Verify(t.Context(), out, &said); err != nil {
			t.Errorf("%v\n%s", err, &said)
		}
		if !strings.Contains(said.String(), "only against a list that one trusts") {
			t.Errorf("it does not say what it proves:\n%s", &said)
		}
		if !maps.Equal(before, tree(t, out)) {
			t.Error("verifying changed the folder")
		}
	})
	t.Run("one flipped byte anywhere", func(t *testing.T) { flippedBytes(t, out) })
	t.Run("what does not belong there", func(t *testing.T) { strangers(t, out) })
	t.Run("a sealed forgery", func(t *testing.T) { forgeries(t, out) })
}

func receiptsHaveTheirShape(t *testing.T, out string) {
	r := readJSON(t, filepath.Join(out, "execution-receipt.json"))
	for _, name := range []string{"tool", "started_at", "finished_at", "checks", "sha256", "public_path_normalization"} {
		if _, ok := r[name]; !ok {
			t.Errorf("execution-receipt.json lacks %s", name)
		}
	}
	checks := r["checks"].([]any)
	if len(checks) < 10 {
		t.Errorf("%d checks, at least ten are wanted", len(checks))
	}
	refusals := make(map[string]bool)
	names := make(map[string]bool)
	for _, c := range checks {
		c := c.(map[string]any)
		name, evidence := c["name"].(string), c["evidence"].(string)
		if c["pass"] != true || evidence == "" || names[name] {
			t.Errorf("check %v", c)
		}
		names[name] = true
		refusals[name] = c["expected_refusal"].(bool)
	}
	for _, name := range []string{checkPorts, checkRemoved, checkDialled, checkCreates} {
		if !names[name] {
			t.Errorf("there is no check %s", name)
		}
	}
	for _, what := range []string{"binary", "fixture"} {
		h := r["sha256"].(map[string]any)[what].(map[string]any)
		if len(h["before"].(string)) != 64 || h["before"] != h["after"] {
			t.Errorf("sha256 of %s: %v", what, h)
		}
	}
	f := readJSON(t, filepath.Join(out, "failure-receipt.json"))
	expected := f["expected_refusals"].([]any)
	for _, c := range expected {
		c := c.(map[string]any)
		if c["expected"] != true || !refusals[c["name"].(string)] {
			t.Errorf("failure-receipt.json: %v", c)
		}
	}
	if len(expected) != 6 || len(f["unexpected_failures"].([]any)) != 0 {
		t.Errorf("failure-receipt.json holds %d expected refusals, want the 6 of the fixture", len(expected))
	}
}

func ledgerTells(t *testing.T, out string) {
	body, _ := os.ReadFile(filepath.Join(out, "ledger.json"))
	var b book
	if err := json.Unmarshal(body, &b); err != nil {
		t.Fatal(err)
	}
	for _, op := range b.Operations {
		if op.State != "succeeded" || op.UpstreamState != "succeeded" || op.Version != 3 {
			t.Errorf("operation %+v", op)
		}
	}
	var events []string
	for _, e := range b.Events {
		events = append(events, e.ID+" "+e.TaskID+" "+e.Verdict)
	}
	want := []string{
		"evt-other local-C rejected", "evt-crossed local-C rejected", "evt-word local-A unknown_state",
		"evt-1 local-A applied", "evt-1 local-A duplicate", "evt-2 local-A stale",
	}
	if !slices.Equal(events, want) {
		t.Errorf("events are\n%s\nwant\n%s", strings.Join(events, "\n"), strings.Join(want, "\n"))
	}
	if b.Counts != (bookCounts{StatusReads: 2, StatusReadsDuringRecovery: 1}) {
		t.Errorf("counts are %+v", b.Counts)
	}
	if len(b.Crashes) != 2 || len(b.Tasks) != 2 || len(b.Operations) != 2 {
		t.Errorf("%d crashes, %d tasks, %d operations", len(b.Crashes), len(b.Tasks), len(b.Operations))
	}
	for _, c := range b.Crashes {
		if len(c.Outcomes) != 1 || c.Killed != "signal: killed" || c.State != "succeeded" || c.RepeatAnswer != 200 {
			t.Errorf("crash %+v", c)
		}
	}
}

func wireTells(t *testing.T, out string) {
	reads, statuses := make(map[string]int), []int{}
	files, _ := filepath.Glob(filepath.Join(out, "wire", "*.json"))
	for i, file := range files {
		body, _ := os.ReadFile(file)
		var x exchange
		if err := json.Unmarshal(body, &x); err != nil {
			t.Fatal(err)
		}
		if x.Number != i+1 || filepath.Base(file) != fmt.Sprintf("%03d-%s.json", i+1, x.Kind) {
			t.Errorf("%s holds exchange %d", file, x.Number)
		}
		switch x.Kind {
		case read:
			reads[x.Request.Path]++
		case callback:
			statuses = append(statuses, statusOf(x))
			if strings.Contains(x.Request.Body, "local-B") {
				t.Errorf("%s: local-B must never get a callback", file)
			}
		case create, other:
			t.Errorf("%s: %s %s", file, x.Request.Method, x.Request.Path)
		}
	}
	if !maps.Equal(reads, map[string]int{"/status/local-A": 1, "/status/local-B": 1}) {
		t.Errorf("status reads: %v", reads)
	}
	if want := []int{400, 400, 400, 401, 401, 202, 200, 200, 0, 200, 202, 200}; !slices.Equal(statuses, want) {
		t.Errorf("answers to callbacks: %v, want %v", statuses, want)
	}
}

func sealIsRight(t *testing.T, out string) {
	sums := readJSON(t, filepath.Join(out, "checksums.json"))["files"].(map[string]any)
	on := make(map[string]bool)
	for path := range tree(t, out) {
		name, _ := filepath.Rel(out, path)
		body, err := os.ReadFile(path)
		if err != nil || name == "checksums.json" || name == "exercise.zip" {
			continue
		}
		on[name] = true
		sum := sha256.Sum256(body)
		if sums[name] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: listed as %v", name, sums[name])
		}
	}
	if len(sums) != len(on) {
		t.Errorf("%d files are listed, %d are there", len(sums), len(on))
	}
	z, err := zip.OpenReader(filepath.Join(out, "exercise.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	last := ""
	for _, f := range z.File {
		if f.Name <= last || f.Method != zip.Store || !f.Modified.Equal(z.File[0].Modified) {
			t.Errorf("%s: not sorted, compressed, or of another time", f.Name)
		}
		last = f.Name
	}
	if len(z.File) != len(on)+1 {
		t.Errorf("the archive holds %d files, want %d and checksums.json", len(z.File), len(on))
	}
}

func nothingLeaks(t *testing.T, out, temporary string) {
	ring, err := parseKeyring(readJSON(t, filepath.Join(out, "ledger.json"))["run"].(string))
	if err != nil {
		t.Fatal(err)
	}
	program, _ := os.Executable()
	canaries := []string{out, temporary, program, filepath.Dir(program), "whsec_", "pawl_sk_", "v1,", "signature:"}
	for _, purpose := range []string{forSource, forStranger, forEndpoint, forProvider, forTokens} {
		secret := ring.derive(purpose)
		canaries = append(canaries, hex.EncodeToString(secret), base64.StdEncoding.EncodeToString(secret))
	}
	for path, text := range tree(t, out) {
		for _, canary := range canaries {
			if strings.Contains(text, canary) {
				t.Errorf("%s holds %q", path, canary)
			}
		}
		if strings.Contains(text, "/hooks/local/") && !strings.Contains(text, "/hooks/local/{callback-token}") {
			t.Errorf("%s holds a callback token", path)
		}
	}
}

func flippedBytes(t *testing.T, out string) {
	random := rand.New(rand.NewPCG(1, 2))
	for path := range tree(t, out) {
		body, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for range 50 {
			at := random.IntN(len(body))
			flipped := bytes.Clone(body)
			flipped[at] ^= byte(1 + random.IntN(255))
			if err := os.WriteFile(path, flipped, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := Verify(t.Context(), out, nil); !errors.Is(err, ErrDiffers) {
				t.Errorf("%s: byte %d flipped: %v", path, at, err)
			}
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func strangers(t *testing.T, out string) {
	for name, put := range map[string]func(string) error{
		"a file":          func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"an empty folder": func(p string) error { return os.Mkdir(p, 0o700) },
		"a link":          func(p string) error { return os.Symlink(filepath.Join(out, "ledger.json"), p) },
	} {
		for _, at := range []string{"extra", "wire/extra"} {
			p := filepath.Join(out, at)
			if err := put(p); err != nil {
				t.Fatal(err)
			}
			if Verify(t.Context(), out, nil) == nil {
				t.Errorf("%s at %s: it verifies", name, at)
			}
			if err := os.Remove(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := filepath.Join(out, "wire", "001-callback.json")
	body, _ := os.ReadFile(p)
	_ = os.Remove(p)
	if Verify(t.Context(), out, nil) == nil {
		t.Error("a file is missing, and it verifies")
	}
	_ = os.WriteFile(p, body, 0o644)
	if err := Verify(t.Context(), filepath.Join(out, "nowhere"), nil); err == nil {
		t.Error("a folder that is not there verifies")
	}
}

// forgeries are changed and sealed again, so that every checksum is right: only
// the replay and the judging of the ledger can tell.
func forgeries(t *testing.T, out string) {
	genuine, err := readFolder(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, file, old, new string }{
		{"an answer", "wire/001-callback.json", `"status": 400`, `"status": 202`},
		{"a body", "wire/008-callback.json", `succeeded`, `processing`},
		{"who signed", "wire/007-callback.json", `"signed_by": "source"`, `"signed_by": "stranger"`},
		{"an event id", "wire/009-callback.json", `"event_id": "evt-2"`, `"event_id": "evt-3"`},
		{"a phase", "wire/010-read.json", `"phase": "recovery"`, `"phase": "somewhere"`},
		{"a read's task", "wire/010-read.json", `/status/local-B`, `/status/local-A`},
		{"a repeat", "wire/012-callback.json", `"event_id": "evt-1"`, `"event_id": "evt-9"`},
		{"a state", "ledger.json", `"state": "succeeded"`, `"state": "running"`},
		{"a word", "ledger.json", `"upstream_state": "succeeded"`, `"upstream_state": "processing"`},
		{"a version", "ledger.json", `"version": 3`, `"version": 4`},
		{"a verdict", "ledger.json", `"verdict": "stale"`, `"verdict": "applied"`},
		{"the creates", "ledger.json", `"create_calls": 0`, `"create_calls": 1`},
		{"the reads", "ledger.json", `"status_reads_during_recovery": 1`, `"status_reads_during_recovery": 2`},
		{"an outcome", "ledger.json", `"outcomes": [`, `"outcomes": ["evt_other",`},
		{"a first answer", "ledger.json", `"first_answer": 202`, `"first_answer": 0`},
		{"the run", "ledger.json", `"run": "`, `"run": "x`},
		{"a check", "execution-receipt.json", `"pass": true`, `"pass": false`},
		{"a hash", "execution-receipt.json", `"before": "`, `"before": "0`},
		{"a name", "execution-receipt.json", checkCreates, "another_check"},
		{"a refusal", "failure-receipt.json", `"expected": true`, `"expected": false`},
		{"the fixture", "fixture.json", `"task": "local-C"`, `"task": "local-D"`},
	} {
		forged := maps.Clone(genuine)
		changed := strings.Replace(string(genuine[tc.file]), tc.old, tc.new, 1)
		if changed == string(genuine[tc.file]) {
			t.Errorf("%s: nothing was changed", tc.name)
		}
		forged[tc.file] = []byte(changed)
		if err := forged.seal(); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := forged.write(dir); err != nil {
			t.Fatal(err)
		}
		if err := Verify(t.Context(), dir, nil); !errors.Is(err, ErrDiffers) || strings.Contains(err.Error(), "checksum") {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestExistingTargetsAreRefused(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("mine"), 0o600), os.Symlink(filepath.Join(dir, "nothing"), link)); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	for _, out := range []string{dir, file, link} {
		if err := Run(t.Context(), Options{Out: out}); !errors.Is(err, ErrExists) {
			t.Errorf("%s: %v", out, err)
		}
	}
	if !maps.Equal(before, tree(t, dir)) {
		t.Error("something was touched")
	}
}

func TestOwnFixture(t *testing.T) {
	out := filepath.Join(t.TempDir(), "deep", "receipts")
	var log bytes.Buffer
	if err := Run(t.Context(), Options{Out: out, Fixture: "testdata/media-v2.json", Log: &log}); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	if err := Verify(t.Context(), out, nil); err != nil {
		t.Error(err)
	}
	given, _ := os.ReadFile("testdata/media-v2.json")
	kept, _ := os.ReadFile(filepath.Join(out, "fixture.json"))
	if !bytes.Equal(given, kept) {
		t.Error("fixture.json is not the file that was given")
	}
}

// A rule that does not hold ends in ErrFailed, a table that says where to look,
// and receipts that tell.
func TestFailingCheck(t *testing.T) {
	fixture := filepath.Join(t.TempDir(), "wrong.json")
	wrong := bytes.Replace(builtIn, []byte(`"verdict": "stale", "state": "succeeded"`), []byte(`"verdict": "applied", "state": "running"`), 1)
	if err := os.WriteFile(fixture, wrong, 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "receipts")
	var log bytes.Buffer
	if err := Run(t.Context(), Options{Out: out, Fixture: fixture, Log: &log}); !errors.Is(err, ErrFailed) {
		t.Fatalf("error is %v, want ErrFailed", err)
	}
	for _, want := range []string{"IF THIS CHECK FAILS", "FAILS  late_processing_is_stale", "an end is never taken back", "the state after is succeeded, expected running"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &log)
		}
	}
	failures := readJSON(t, filepath.Join(out, "failure-receipt.json"))["unexpected_failures"].([]any)
	if len(failures) != 1 || failures[0].(map[string]any)["name"] != "late_processing_is_stale" {
		t.Errorf("unexpected failures: %v", failures)
	}
	if err := Verify(t.Context(), out, nil); !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), "late_processing_is_stale") {
		t.Errorf("verify: %v", err)
	}
}

func TestGivenUpLeavesNothing(t *testing.T) {
	temporary, parent := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	err := Run(ctx, Options{Out: filepath.Join(parent, "receipts")})
	if err == nil || errors.Is(err, ErrFailed) {
		t.Fatalf("error is %v", err)
	}
	if len(tree(t, temporary)) != 1 || len(tree(t, parent)) != 1 {
		t.Errorf("left behind: %v %v", tree(t, temporary), tree(t, parent))
	}
}

func TestRunInsideAChildIsRefused(t *testing.T) {
	t.Setenv(childVariable, "1")
	if err := Run(t.Context(), Options{Out: filepath.Join(t.TempDir(), "x")}); err == nil {
		t.Error("a child ran an exercise of its own")
	}
}

package main

import (
	"os"
	"strings"
	"testing"
)

const sample = `# a stale event is applied
# and moves the job back
file internal/ledger/observe.go
test ./internal/ledger TestOrder/stale
-	if o.Version <= op.Version {
+	if o.Version < op.Version {
`

func TestParsePatch(t *testing.T) {
	got, err := parsePatch(sample)
	want := patch{
		why: "a stale event is applied and moves the job back", file: "internal/ledger/observe.go",
		was: "if o.Version <= op.Version {", now: "if o.Version < op.Version {",
		pkg: "./internal/ledger", run: "TestOrder/stale",
	}
	if err != nil || got != want {
		t.Errorf("parsePatch = %+v, %v; want %+v", got, err, want)
	}
}

func TestPatchesThatSayTooLittleAreRefused(t *testing.T) {
	for _, missing := range []string{"# ", "file ", "test ", "-"} {
		var kept []string
		for _, line := range strings.Split(sample, "\n") {
			if !strings.HasPrefix(line, missing) {
				kept = append(kept, line)
			}
		}
		if _, err := parsePatch(strings.Join(kept, "\n")); err == nil {
			t.Errorf("a patch without its %q lines was accepted", missing)
		}
	}
	if _, err := parsePatch(strings.ReplaceAll(sample, "<=", "<")); err == nil {
		t.Error("a patch that changes nothing was accepted")
	}
}

func TestApplyNeedsExactlyOneLine(t *testing.T) {
	p := patch{name: "x", file: "f.go", was: "a := 1", now: "a := 2"}
	if got, err := p.apply("{\n\ta := 1\n}"); err != nil || got != "{\n\ta := 2\n}" {
		t.Errorf("apply = %q, %v", got, err)
	}
	for _, text := range []string{"b := 1\n", "a := 1\n\ta := 1\n"} {
		if got, err := p.apply(text); err == nil {
			t.Errorf("apply to %q gave %q, want an error", text, got)
		}
	}
}

func TestAfterChoosesAmongEqualLines(t *testing.T) {
	p := patch{name: "x", file: "f.go", after: "func b() {", was: "return 1", now: "return 2"}
	const text = "func a() {\n\treturn 1\n}\nfunc b() {\n\treturn 1\n}"
	want := "func a() {\n\treturn 1\n}\nfunc b() {\n\treturn 2\n}"
	if got, err := p.apply(text); err != nil || got != want {
		t.Errorf("apply = %q, %v; want %q", got, err, want)
	}
	p.after = "func c() {"
	if got, err := p.apply(text); err == nil {
		t.Errorf("apply after a line that is not there gave %q", got)
	}
}

func TestPatternMatchesWholeNames(t *testing.T) {
	if got := pattern("TestA/b"); got != "^TestA$/^b$" {
		t.Errorf("pattern = %q", got)
	}
}

// Every patch still fits the line that it breaks, so that it is noticed with the
// change that moved the line, and not at the next whole run.
func TestPatchesFit(t *testing.T) {
	all, err := readPatches("../testdata/mutations")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		text, err := os.ReadFile("../" + p.file)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := p.apply(string(text)); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
}

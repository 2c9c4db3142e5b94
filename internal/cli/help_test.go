package cli

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var writeHelp = flag.Bool("write-help", false, "write docs/help.md anew")

// The page with every command's help is what the commands say.
func TestHelpPage(t *testing.T) {
	const path = "../../docs/help.md"
	var cmds commands
	parser, err := newParser(&cmds, Env{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Every command's help\n\nWritten by `go test ./internal/cli -run TestHelpPage -args -write-help`, and held against the program by the same test.\n")
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		if n.Hidden {
			return
		}
		args := append(strings.Fields(commandOf(n))[1:], "--help")
		var out bytes.Buffer
		if status := run(t.Context(), args, Env{Stdout: &out, Stderr: &out, LookupEnv: func(string) (string, bool) { return "", false }}); status != ExitDone {
			t.Fatalf("%v: status %d", args, status)
		}
		b.WriteString("\n## " + commandOf(n) + "\n\n```\n")
		for line := range strings.Lines(out.String()) {
			b.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
		b.WriteString("```\n")
		for _, child := range n.Children {
			walk(child)
		}
	}
	walk(parser.Model.Node)
	if *writeHelp {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil || string(kept) != b.String() {
		t.Errorf("%s is not what the commands say (%v); write it anew: go test ./internal/cli -run TestHelpPage -args -write-help", path, err)
	}
}

// commandOf is a command without the places of its arguments.
func commandOf(n *kong.Node) string {
	var words []string
	for ; n != nil; n = n.Parent {
		words = append([]string{n.Name}, words...)
	}
	return strings.Join(words, " ")
}

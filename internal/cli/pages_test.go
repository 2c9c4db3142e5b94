package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var (
	shellBlock  = regexp.MustCompile("(?ms)^```(?:sh)?\n(.*?)^```")
	inlineCode  = regexp.MustCompile("`([^`\n]*(?:\n[^`\n]+)?)`")
	comment     = regexp.MustCompile(`(?m)(?:^|\s)#.*$`)
	callOfPawl  = regexp.MustCompile(`(?m)(?:^|[;&|(] *|\$ )(?:\./|go run \./cmd/)?pawl( [^;&|)\n]*)`)
	commandWord = regexp.MustCompile(`^[a-z][a-z-]*$`)
	flagWord    = regexp.MustCompile(`(?:^|[\s[])--([a-z][a-z-]*)`)
)

// Every command that a page tells to run is one, with the flags that it is given.
func TestPagesNameRealCommands(t *testing.T) {
	parser, err := newParser(new(commands), Env{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/guides/*.md", "docs/decisions/*.md", "examples/*/*.md"} {
		pages, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			// What is gone is named in the list of changes.
			if base := filepath.Base(page); base == "CHANGELOG.md" || base == "help.md" {
				continue
			}
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, args := range callsOf(string(text)) {
				seen++
				if fault := misuse(parser.Model.Node, args); fault != "" {
					t.Errorf("%s: pawl%s: %s", page, args, fault)
				}
			}
		}
	}
	if seen < 250 {
		t.Fatalf("%d commands found: the patterns no longer fit the pages", seen)
	}
}

func TestMisuseOfCommandsIsFound(t *testing.T) {
	parser, err := newParser(new(commands), Env{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}})
	if err != nil {
		t.Fatal(err)
	}
	text := "Run `pawl op show OP` or `pawl op list --nope`.\n```sh\nexport K=$(pawl key draw)   # pawl comment\n./pawl op get OP --json; pawl review list\n```\n"
	want := []string{"op has no command show", "op list has no flag --nope", "key has no command draw", "", ""}
	var got []string
	for _, args := range callsOf(text) {
		got = append(got, misuse(parser.Model.Node, args))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// callsOf are the arguments of every call of the program that a page shows.
func callsOf(page string) (found []string) {
	var places []string
	for _, m := range shellBlock.FindAllStringSubmatch(page, -1) {
		places = append(places, comment.ReplaceAllString(strings.ReplaceAll(m[1], "\\\n", " "), ""))
	}
	for _, m := range inlineCode.FindAllStringSubmatch(fences.ReplaceAllString(page, ""), -1) {
		places = append(places, strings.ReplaceAll(m[1], "\n", " "))
	}
	for _, text := range places {
		for _, m := range callOfPawl.FindAllStringSubmatch(text, -1) {
			found = append(found, m[1])
		}
	}
	return found
}

var fences = regexp.MustCompile("(?ms)^ *```.*?^ *```")

// misuse says what of a call the program does not know, if anything.
func misuse(root *kong.Node, args string) string {
	node := root
	for _, word := range strings.Fields(args) {
		if len(node.Children) == 0 || !commandWord.MatchString(word) {
			break
		}
		i := slices.IndexFunc(node.Children, func(c *kong.Node) bool { return c.Name == word })
		if i < 0 {
			return strings.TrimPrefix(commandOf(node), "pawl ") + " has no command " + word
		}
		node = node.Children[i]
	}
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	for _, m := range flagWord.FindAllStringSubmatch(args, -1) {
		if flagNamed(node, "--"+m[1]) == nil {
			return strings.TrimPrefix(commandOf(node), "pawl ") + " has no flag --" + m[1]
		}
	}
	return ""
}

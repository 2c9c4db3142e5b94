package pawl_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const docsIndex = "docs/README.md"

var (
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	inlined  = regexp.MustCompile("`[^`\n]+`")
	linkTo   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headline = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	linked   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// Every link within the tree leads to a file, and to a heading of it if it names
// one.
func TestLinksLeadSomewhere(t *testing.T) {
	seen := 0
	for _, path := range markdown(t) {
		text := inlined.ReplaceAllString(fenced.ReplaceAllString(readText(t, path), ""), "code")
		for _, m := range linkTo.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			seen++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			} else if anchor != "" && strings.HasSuffix(target, ".md") && !anchors(readText(t, target))[anchor] {
				t.Errorf("%s links to %s, and there is no such heading", path, m[1])
			}
		}
	}
	if seen < 100 {
		t.Fatalf("%d links found: the pattern no longer fits the pages", seen)
	}
}

// The list of the documentation names each page once.
func TestIndexNamesEveryPageOnce(t *testing.T) {
	listed := map[string]int{}
	for _, m := range linkTo.FindAllStringSubmatch(readText(t, docsIndex), -1) {
		listed[m[1]]++
	}
	for _, path := range append(pages(t, "docs/*.md"), pages(t, "docs/guides/*.md")...) {
		name := strings.TrimPrefix(filepath.ToSlash(path), "docs/")
		if path != docsIndex && listed[name] != 1 {
			t.Errorf("%s names %s %d times", docsIndex, name, listed[name])
		}
	}
}

func TestAnchors(t *testing.T) {
	got := anchors("# One `two`, [three](x.md): 4\n```sh\n# no heading\n```\n## Same\n## Same\n### dead_letter\n")
	for _, want := range []string{"one-two-three-4", "same", "same-1", "dead_letter"} {
		if !got[want] {
			t.Errorf("no anchor %s in %v", want, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("%d anchors, want 4: %v", len(got), got)
	}
}

// anchors are the names under which a page's headings are found, as GitHub makes
// them.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	times := map[string]int{}
	for _, m := range headline.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		words := strings.ToLower(linked.ReplaceAllString(m[1], "$1"))
		name := strings.ReplaceAll(noAnchor.ReplaceAllString(words, ""), " ", "-")
		if n := times[name]; n > 0 {
			found[fmt.Sprintf("%s-%d", name, n)] = true
		} else {
			found[name] = true
		}
		times[name]++
	}
	return found
}

// markdown are all pages of the tree.
func markdown(t *testing.T) (found []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != "." && (name == "node_modules" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

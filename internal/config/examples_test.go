package config_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
)

var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	firstKey  = regexp.MustCompile(`(?m)^( *)([a-z_]+):`)
	fromFile  = regexp.MustCompile(`\$\{file:[^}]*\}`)
)

// What the pages show as a configuration is one: whoever copies it can start.
func TestExamplesOfThePagesAreRead(t *testing.T) {
	top := map[string]bool{}
	for f := range reflect.TypeFor[config.Config]().Fields() {
		top[f.Tag.Get("yaml")] = true
	}
	// A value that does for every secret, a key of 32 bytes among them.
	value := base64.StdEncoding.EncodeToString(make([]byte, 32))
	env := func(string) (string, bool) { return value, true }
	read := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			example := fromFile.ReplaceAllString(m[1], "$${FILE}")
			key := firstKey.FindStringSubmatch(example)
			switch {
			case key == nil:
				continue
			case key[1] == "  ": // An entry of what the page showed before.
				example = "sources:\n" + example
			case !top[key[2]]:
				continue // Prometheus's, or a description of an upstream.
			}
			if key[2] == "fronts" { // The page goes on from a configuration with this upstream.
				example += "upstreams: {studio: {preset: media-v2}}\n"
			}
			read++
			if _, err := config.Parse("example.yaml", []byte(example), env); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, m[1])
			}
		}
	}
	if read < 14 {
		t.Fatalf("%d examples found: the pattern no longer fits the pages", read)
	}
}

func pages(t *testing.T) (found []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/guides/*.md", "docs/decisions/*.md", "examples/*/*.md"} {
		some, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, some...)
	}
	return found
}

package upstream

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// The description that docs/upstreams.md shows whole can be used.
func TestDocumentedDescription(t *testing.T) {
	page, err := os.ReadFile("../../docs/upstreams.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "```yaml\nname: tracks\n")
	text, _, closed := strings.Cut(text, "\n```\n")
	if !found || !closed {
		t.Fatal("docs/upstreams.md does not show it")
	}
	s, err := Parse([]byte("name: tracks\n" + text))
	if err != nil || s.Adapter() != "tracks/1" || s.Callback == nil || s.Read == nil {
		t.Errorf("%+v %v", s, err)
	}
	for _, key := range keysOf(reflect.TypeFor[Spec](), nil) {
		if !strings.Contains(string(page), key) {
			t.Errorf("docs/upstreams.md does not name the key %s", key)
		}
	}
}

// keysOf are the keys of a description, whatever they are in.
func keysOf(of reflect.Type, keys []string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return keys
	}
	for f := range of.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" {
			keys = append(keys, name)
		}
		keys = keysOf(f.Type, keys)
	}
	return keys
}

package config

import (
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl"
)

var row = regexp.MustCompile("^\\| `([^`]+)` \\| ([^|]+) \\| ([^|]*) \\| \\S.*\\|$")

// The table of docs/configuration.md has one row for every key of the types,
// with its type and default, in the same order.
func TestDocumentationListsEveryKey(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for line := range strings.Lines(string(page)) {
		if m := row.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			documented = append(documented, strings.Join([]string{m[1], m[2], strings.TrimSpace(m[3])}, " | "))
		}
	}
	if diff := cmp.Diff(describe("", reflect.ValueOf(Default())), documented); diff != "" {
		t.Errorf("docs/configuration.md differs from the types (-types +page):\n%s", diff)
	}
}

// describe gives "key | type | default" for every leaf under v.
func describe(key string, v reflect.Value) []string {
	if word, ok := leaf(v.Type()); ok {
		return []string{fmt.Sprintf("%s | %s | %s", key, word, defaultText(v))}
	}
	switch v.Kind() {
	case reflect.Pointer:
		return describe(key, reflect.New(v.Type().Elem()).Elem())
	case reflect.Map:
		start, ok := defaults[v.Type().Elem()]
		if !ok {
			start = reflect.New(v.Type().Elem()).Elem()
		}
		return describe(key+".<name>", start)
	}
	var rows []string
	for i := range v.NumField() {
		if name, ok := v.Type().Field(i).Tag.Lookup("yaml"); ok {
			rows = append(rows, describe(strings.TrimPrefix(key+"."+name, "."), v.Field(i))...)
		}
	}
	return rows
}

// leaf names the types of single values and lists of them.
func leaf(t reflect.Type) (string, bool) {
	words := map[reflect.Type]string{
		reflect.TypeFor[string]():         "text",
		reflect.TypeFor[int]():            "whole number",
		reflect.TypeFor[float64]():        "number",
		reflect.TypeFor[bool]():           "true or false",
		reflect.TypeFor[time.Duration]():  "duration",
		reflect.TypeFor[pawl.Amount]():    "amount",
		reflect.TypeFor[*pawl.Amount]():   "amount",
		reflect.TypeFor[Size]():           "size",
		reflect.TypeFor[Secret]():         "secret",
		reflect.TypeFor[[]Secret]():       "list of secrets",
		reflect.TypeFor[[]DatedSecret]():  "list of dated secrets",
		reflect.TypeFor[[]string]():       "list of texts",
		reflect.TypeFor[[]netip.Prefix](): "list of address ranges",
	}
	word, ok := words[t]
	return word, ok
}

// defaultText is how the page writes a default; nothing for a zero value.
func defaultText(v reflect.Value) string {
	if v.IsZero() {
		return ""
	}
	text := fmt.Sprint(v.Interface())
	if _, ok := v.Interface().(time.Duration); ok {
		text = strings.TrimSuffix(strings.TrimSuffix(text, "0s"), "0m")
		if v.Interface().(time.Duration)%time.Minute != 0 {
			text = fmt.Sprint(v.Interface())
		}
	}
	return "`" + text + "`"
}

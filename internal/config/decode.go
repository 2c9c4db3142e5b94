package config

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/pawlhq/pawl"
)

// maxDuration bounds every duration; longer ones are typing errors.
const maxDuration = 366 * 24 * time.Hour

// defaults are the values that entries of a map start from.
var defaults = map[reflect.Type]reflect.Value{
	reflect.TypeFor[Upstream](): reflect.ValueOf(DefaultUpstream()),
}

// keyShape is what a key must look like to be repeated in a message, and
// settingShape what an unknown setting must: a mistyped one has letters only.
var (
	keyShape     = regexp.MustCompile(`^[A-Za-z0-9_.\-/]{1,40}$`)
	settingShape = regexp.MustCompile(`^[A-Za-z][a-z_]{0,30}$`)
)

// decoder fills the configuration from a YAML tree and collects what is wrong.
// It is our own because it must name the line and the full key of every
// problem at once, expand references inside scalars, and read money from its
// text.
type decoder struct {
	expander
	origin   *origin
	problems Problems
}

func (d *decoder) report(n ast.Node, key, what string) {
	d.problems = append(d.problems, Problem{File: d.origin.file, Line: line(n), Key: key, What: what})
}

// value decodes one node into out; key is the node's full path.
func (d *decoder) value(n ast.Node, key string, out reflect.Value) {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		d.report(n, key, "anchors (&), aliases (*) and tags (!) are not supported; write the value out")
		return
	case *ast.NullNode:
		d.report(n, key, "has no value; give one or remove the key")
		return
	}
	if out.Kind() == reflect.Pointer {
		d.pointer(n, key, out)
		return
	}
	if out.Type() == reflect.TypeFor[DatedSecret]() {
		if _, mapping := n.(*ast.MappingNode); !mapping {
			out = out.FieldByName("Key")
		}
	}
	if _, scalar := d.scalarOf(out); scalar {
		d.scalar(n, key, out)
		return
	}
	switch out.Kind() {
	case reflect.Struct:
		d.fields(n, key, out)
	case reflect.Map:
		d.entries(n, key, out)
	case reflect.Slice:
		d.items(n, key, out)
	default:
		panic("config: no decoding for " + out.Type().String())
	}
}

// pointer makes the value that an optional key sets.
func (d *decoder) pointer(n ast.Node, key string, out reflect.Value) {
	target := reflect.New(out.Type().Elem())
	if out.Type() == reflect.TypeFor[*Idempotent]() {
		if b, ok := n.(*ast.BoolNode); ok {
			if b.Value {
				d.report(n, key, "true says too little; write {header: NAME, window: DURATION}, or false")
			}
			out.Set(target)
			return
		}
	}
	d.value(n, key, target.Elem())
	out.Set(target)
}

// pairs calls each for every entry of a mapping, after refusing duplicates and
// merge keys.
func (d *decoder) pairs(n ast.Node, key, want string, each func(name, path string, at ast.Node, value ast.Node)) {
	mapping, ok := n.(*ast.MappingNode)
	if !ok {
		d.report(n, key, "must be "+want)
		return
	}
	seen := map[string]int{}
	for _, pair := range mapping.Values {
		switch pair.Key.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		default:
			d.report(pair.Key, key, "a key must be a plain word; anchors, aliases, tags and << are not supported")
			continue
		}
		name := pair.Key.GetToken().Value
		path := join(key, name)
		if first, dup := seen[name]; dup {
			d.report(pair.Key, path, fmt.Sprintf("is given twice, first on line %d; keep one", first))
			continue
		}
		seen[name] = line(pair.Key)
		d.origin.lines[path] = line(pair.Key)
		each(name, path, pair.Key, pair.Value)
	}
}

// join appends a key to a path; a key of a strange shape is not repeated.
func join(key, name string) string {
	if !keyShape.MatchString(name) {
		name = "(key)"
	}
	if key == "" {
		return name
	}
	return key + "." + name
}

// fields decodes a mapping with fixed keys.
func (d *decoder) fields(n ast.Node, key string, out reflect.Value) {
	known := map[string]int{}
	var names []string
	for i := range out.NumField() {
		if name, ok := out.Type().Field(i).Tag.Lookup("yaml"); ok {
			known[name] = i
			names = append(names, name)
		}
	}
	want := "a mapping with the keys " + strings.Join(names, ", ")
	d.pairs(n, key, want, func(name, path string, at, value ast.Node) {
		i, ok := known[name]
		switch {
		case ok:
			d.value(value, path, out.Field(i))
		default:
			if !settingShape.MatchString(name) {
				path = join(key, "") // It may be a value in the wrong place.
			}
			d.report(at, path, "unknown key; the keys here are "+strings.Join(names, ", "))
		}
	})
}

// entries decodes a mapping with free keys.
func (d *decoder) entries(n ast.Node, key string, out reflect.Value) {
	out.Set(reflect.MakeMap(out.Type()))
	elem := out.Type().Elem()
	d.pairs(n, key, "a mapping from names to settings", func(name, path string, _, value ast.Node) {
		entry := reflect.New(elem).Elem()
		if start, ok := defaults[elem]; ok {
			entry.Set(start)
		}
		d.value(value, path, entry)
		out.SetMapIndex(reflect.ValueOf(name), entry)
	})
}

// items decodes a sequence.
func (d *decoder) items(n ast.Node, key string, out reflect.Value) {
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		d.report(n, key, "must be a list; write [a, b], also for one entry")
		return
	}
	list := reflect.MakeSlice(out.Type(), len(sequence.Values), len(sequence.Values))
	for i, item := range sequence.Values {
		path := fmt.Sprintf("%s[%d]", key, i)
		d.origin.lines[path] = line(item)
		d.value(item, path, list.Index(i))
	}
	out.Set(list)
}

// scalar decodes one value from its source text, so that 0.15 never becomes a
// float on its way to an amount.
func (d *decoder) scalar(n ast.Node, key string, out reflect.Value) {
	var source string
	switch v := n.(type) {
	case *ast.StringNode:
		source = v.Value
	case *ast.LiteralNode:
		source = v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		source = n.GetToken().Value
	default:
		d.report(n, key, "must be one value, not a list or a mapping")
		return
	}
	text, err := d.expand(source)
	if err != nil {
		d.report(n, key, err.Error())
		return
	}
	set, _ := d.scalarOf(out)
	if err := set(text); err != nil {
		d.report(n, key, err.Error())
	}
}

// scalarOf gives the reading of a scalar type, false for all others.
func (d *decoder) scalarOf(out reflect.Value) (set func(text string) error, ok bool) {
	switch target := out.Addr().Interface().(type) {
	case *string:
		return func(text string) error { *target = text; return nil }, true
	case *int:
		return into(target, readInt), true
	case *float64:
		return into(target, readFloat), true
	case *bool:
		return into(target, readBool), true
	case *time.Duration:
		return into(target, readDuration), true
	case *Size:
		return into(target, readSize), true
	case *pawl.Amount:
		return into(target, readAmount), true
	case *netip.Prefix:
		return into(target, readPrefix), true
	case *Secret:
		return into(target, NewSecret), true
	case *time.Time:
		return into(target, readMoment), true
	}
	return nil, false
}

func into[T any](target *T, read func(string) (T, error)) func(string) error {
	return func(text string) error {
		v, err := read(text)
		if err == nil {
			*target = v
		}
		return err
	}
}

func readInt(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, errors.New("not a whole number; write digits such as 16")
	}
	return n, nil
}

func readBool(text string) (bool, error) {
	if text != "true" && text != "false" {
		return false, errors.New("must be true or false")
	}
	return text == "true", nil
}

func readFloat(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, errors.New("not a number; write one such as 1.5")
	}
	return f, nil
}

func readDuration(text string) (time.Duration, error) {
	if v, ok := readDays(text); ok {
		return v, nil
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("not a duration; write a number and a unit, such as 300ms, 1.5s or 2h")
	}
	return v, nil
}

// readAmount keeps the reason of the root package and says what to write.
func readAmount(text string) (pawl.Amount, error) {
	a, err := pawl.ParseAmount(text)
	if err != nil {
		return 0, fmt.Errorf("%w; write a plain decimal with at most nine places, in quotes, such as \"0.15\"", err)
	}
	return a, nil
}

func readPrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		return netip.Prefix{}, fmt.Errorf("an address without a prefix length; write /%d after it for this one address", addr.BitLen())
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, errors.New("not an address range; write one such as 10.0.0.0/8 or \"fd00::/8\"")
	}
	return p, nil
}

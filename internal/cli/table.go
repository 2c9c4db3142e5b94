package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// plain writes what a terminal could act on, or what turns text around, as
// escapes: names and errors come from outside.
func plain(text string) string {
	if !strings.ContainsFunc(text, unprintable) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if unprintable(r) {
			quoted := strconv.QuoteToASCII(text[:n])
			out.WriteString(quoted[1 : len(quoted)-1])
		} else {
			out.WriteString(text[:n])
		}
		text = text[n:]
	}
	return out.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }

// cell is a JSON value as a table shows it.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return plain(short(v))
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case []any:
		return joined(v)
	case map[string]any:
		return object(v)
	}
	return plain(fmt.Sprint(v))
}

// joined lists plain values with commas, objects by their members.
func joined(values []any) string {
	words, between := make([]string, len(values)), ","
	for i, v := range values {
		if inner, nested := v.(map[string]any); nested {
			words[i], between = pairs(inner), "; "
		} else {
			words[i] = cell(v)
		}
	}
	return strings.Join(words, between)
}

// pairs are an object's members that say something.
func pairs(v map[string]any) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if text := cell(v[name]); text != "" {
			words = append(words, plain(name)+"="+text)
		}
	}
	return strings.Join(words, " ")
}

// object shows money in short, everything else as JSON.
func object(v map[string]any) string {
	value, isText := v["amount"].(string)
	currency, hasCurrency := v["currency"].(string)
	if !isText || !hasCurrency {
		return compact(v)
	}
	text := plain(shortAmount(value) + " " + currency)
	if settled, ok := v["settled"].(bool); ok && !settled {
		text += " (not settled)"
	}
	return text
}

func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return plain(string(text))
}

// short drops the fraction of a second of the API's times, and zeros beyond
// two places of its amounts.
func short(text string) string {
	if at, err := time.Parse("2006-01-02T15:04:05.000000Z", text); err == nil {
		return at.Format("2006-01-02 15:04:05Z")
	}
	if amount.MatchString(text) {
		return shortAmount(text)
	}
	return text
}

// amount is the API's form of amounts (2-contracts §1).
var amount = regexp.MustCompile(`^-?[0-9]+\.[0-9]{9}$`)

func shortAmount(text string) string {
	dot := strings.IndexByte(text, '.')
	for dot >= 0 && len(text) > dot+3 && text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	return text
}

// decode reads JSON for printing; numbers stay as they were written.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the server's answer is not the JSON that was expected: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("the server's answer is not the JSON that was expected: there is more behind it")
	}
	return nil
}

// at follows a path such as "cost.amount" into an object.
func at(row map[string]any, path string) any {
	var v any = row
	for name := range strings.SplitSeq(path, ".") {
		inner, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = inner[name]
	}
	return v
}

// table is aligned text with a heading; columns are paths into the rows.
func table(rows []map[string]any, columns ...string) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for i, c := range columns {
		fmt.Fprint(w, separator(i), strings.ToUpper(strings.NewReplacer("_", " ", ".", " ").Replace(c)))
	}
	for _, row := range rows {
		fmt.Fprintln(w)
		for i, c := range columns {
			fmt.Fprint(w, separator(i), firstOf(cell(at(row, c)), "-"))
		}
	}
	fmt.Fprintln(w)
	_ = w.Flush() // A strings.Builder takes everything.
	return out.String()
}

func separator(i int) string {
	if i == 0 {
		return ""
	}
	return "\t"
}

// details prints an object, one member a line, in the order of its text; lists
// of objects follow as tables.
func details(text []byte) (string, error) {
	names, values, err := members(text)
	if err != nil {
		return "", err
	}
	var row map[string]any
	if err := decode(text, &row); err != nil {
		return "", err
	}
	var out, below strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, name := range names {
		if rows := nested(values[name]); rows != "" {
			fmt.Fprintf(&below, "\n%s\n%s", plain(name), rows)
		} else if v := cell(row[name]); v != "" {
			fmt.Fprintf(w, "%s\t%s\n", plain(name), v)
		}
	}
	_ = w.Flush()
	return out.String() + below.String(), nil
}

// nested is a list of objects as a table, with the members that any of them has
// something in; empty for every other value.
func nested(text []byte) string {
	var items []json.RawMessage
	if json.Unmarshal(text, &items) != nil {
		return ""
	}
	var rows []map[string]any
	var columns []string
	for _, item := range items {
		names, _, err := members(item)
		var row map[string]any
		if err != nil || decode(item, &row) != nil {
			return ""
		}
		for _, name := range names {
			if cell(row[name]) != "" && !slices.Contains(columns, name) {
				columns = append(columns, name)
			}
		}
		rows = append(rows, row)
	}
	if len(columns) == 0 {
		return ""
	}
	return table(rows, columns...)
}

// members are an object's members, and their names as they come.
func members(text []byte) (names []string, values map[string]json.RawMessage, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, fmt.Errorf("the server's answer is not a JSON object")
	}
	values = make(map[string]json.RawMessage)
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, nil, err
		}
		names = append(names, name.(string))
		values[name.(string)] = value
	}
	return names, values, nil
}

// lineTable prints rows one at a time, under a heading; each column is as wide
// as its widest cell so far.
type lineTable struct {
	columns []string
	widths  []int
}

// line is the next row, the first time with the heading before it.
func (t *lineTable) line(row map[string]any) string {
	cells := make([]string, len(t.columns))
	for i, c := range t.columns {
		cells[i] = firstOf(cell(at(row, c)), "-")
	}
	if t.widths != nil {
		return t.padded(cells)
	}
	t.widths = make([]int, len(t.columns))
	heading := make([]string, len(t.columns))
	for i, c := range t.columns {
		heading[i] = strings.ToUpper(strings.NewReplacer("_", " ", ".", " ").Replace(c))
		t.widths[i] = utf8.RuneCountInString(cells[i])
	}
	return t.padded(heading) + t.padded(cells)
}

func (t *lineTable) padded(cells []string) string {
	var out strings.Builder
	for i, text := range cells {
		n := utf8.RuneCountInString(text)
		t.widths[i] = max(t.widths[i], n)
		out.WriteString(text)
		if i < len(cells)-1 {
			out.WriteString(strings.Repeat(" ", t.widths[i]-n+2))
		}
	}
	return out.String() + "\n"
}

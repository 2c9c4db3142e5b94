package cli

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// exporting is the part of lists that can be written as CSV.
type exporting struct {
	CSV bool `name:"csv" help:"Print everything that is found, page after page, as CSV (RFC 4180) for a spreadsheet."`
}

// moneyColumns are columns of tables that are several in CSV.
var moneyColumns = map[string][]string{
	"cost":   {"cost.amount", "cost.currency", "cost.settled"},
	"amount": {"amount.amount", "amount.currency"},
}

// export prints every page of a list as CSV: a heading of names, then the
// API's values, unshortened.
func (s *session) export(c *client, path string, query url.Values, columns []string) error {
	var names []string
	for _, name := range columns {
		if parts, ok := moneyColumns[name]; ok {
			names = append(names, parts...)
		} else {
			names = append(names, name)
		}
	}
	w := csv.NewWriter(s.Stdout)
	w.UseCRLF = true
	if err := w.Write(names); err != nil {
		return err
	}
	if query.Has("page_size") {
		query.Set("page_size", "200")
	}
	for {
		a, err := s.patiently(c, http.MethodGet, path, query)
		if err != nil {
			return err
		}
		var p page
		if err := decode(a.body, &p); err != nil {
			return err
		}
		for _, row := range p.Items {
			record := make([]string, len(names))
			for i, name := range names {
				record[i] = csvCell(at(row, name))
			}
			if err := w.Write(record); err != nil {
				return err
			}
		}
		w.Flush()
		if err := w.Error(); err != nil || p.Next == "" {
			return err
		}
		if query == nil {
			query = url.Values{}
		}
		query.Set("page_token", p.Next)
	}
}

// csvCell is a JSON value as a cell that no spreadsheet takes for a formula:
// what begins like one gets an apostrophe before it, as OWASP advises on CSV
// injection, and so does what follows on a semicolon: where the comma is the decimal
// sign, a spreadsheet begins a cell there, whatever the quotes say. Plain numbers
// are none. Characters that a terminal could act on are written as escapes.
func csvCell(v any) string {
	text := ""
	switch v := v.(type) {
	case nil:
	case string:
		text = v
	case bool:
		text = strconv.FormatBool(v)
	case json.Number:
		text = v.String()
	case []any:
		text = joinedValues(v)
	default:
		text = compact(v)
	}
	if formula.MatchString(text) && !plainNumber.MatchString(text) {
		text = "'" + text
	}
	return plain(laterFormula.ReplaceAllString(text, ";'$1"))
}

// formula is what a spreadsheet may take for one, in full-width forms too;
// laterFormula is one in a later cell.
var (
	formula      = regexp.MustCompile("^ *[=+\\-@\t\r\n＝＋－＠]")
	laterFormula = regexp.MustCompile(`;([ "]*[=+\-@＝＋－＠])`)
)

// plainNumber is what a spreadsheet reads as a number and nothing else.
var plainNumber = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// joinedValues lists plain values with commas, unshortened; what holds objects
// stays JSON.
func joinedValues(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case string:
			words[i] = v
		case map[string]any, []any:
			return compact(values)
		default:
			words[i] = cell(v)
		}
	}
	return strings.Join(words, ",")
}

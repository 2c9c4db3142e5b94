package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// page is a list as the API sends it.
type page struct {
	Items []map[string]any `json:"items"`
	Next  string           `json:"next_page_token"`
}

// query is the list's own part of a query; members without a value are left
// out. Pairs are names and values.
func (l listing) query(pairs ...string) url.Values {
	q := url.Values{}
	pairs = append(pairs, "tenant", l.Tenant, "page_token", l.PageToken)
	if l.PageSize > 0 {
		pairs = append(pairs, "page_size", strconv.Itoa(l.PageSize))
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// list fetches a page and prints it as a table with the given columns.
func (s *session) list(path string, query url.Values, columns ...string) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	if s.csv {
		return s.export(c, path, query, columns)
	}
	a, err := c.call(s.ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	if s.flags.JSON {
		return s.printJSON(a.body)
	}
	var p page
	if err := decode(a.body, &p); err != nil {
		return err
	}
	if len(p.Items) == 0 {
		s.say("nothing found")
		return nil
	}
	if err := s.print(table(p.Items, columns...)); err != nil {
		return err
	}
	if p.Next != "" {
		s.say("there is more: --page-token %s", plain(p.Next))
	}
	return nil
}

// show fetches one thing and prints its members.
func (s *session) show(path string) error { return s.send(http.MethodGet, path, nil) }

// send makes one call and prints the answer. A nil body sends none.
func (s *session) send(method, path string, body any, header ...string) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	text, err := encode(body)
	if err != nil {
		return err
	}
	a, err := c.call(s.ctx, method, path, nil, text, header...)
	if err != nil {
		return err
	}
	return s.answer(a)
}

// answer prints an object, or that it is done where there is none.
func (s *session) answer(a *answer) error {
	switch {
	case len(bytes.TrimSpace(a.body)) == 0 && s.flags.JSON:
		return s.printJSON([]byte(`{"done":true}`))
	case len(bytes.TrimSpace(a.body)) == 0:
		s.say("done")
		return nil
	case s.flags.JSON:
		return s.printJSON(a.body)
	}
	text, err := details(a.body)
	if err != nil {
		return err
	}
	return s.print(text)
}

// oneLine is JSON without the white space between its tokens.
func oneLine(text []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}

// printJSON prints the API's JSON as it is, with one line break at its end.
func (s *session) printJSON(text []byte) error {
	_, err := s.Stdout.Write(append(bytes.TrimRight(text, "\n"), '\n'))
	return err
}

func encode(body any) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(body)
	return bytes.TrimRight(out.Bytes(), "\n"), err
}

// id puts an identifier into a path.
func id(text string) string { return url.PathEscape(text) }

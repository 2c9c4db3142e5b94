package console

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/api"
	"github.com/pawlhq/pawl/internal/ledger"
)

//go:embed templates
var templateFiles embed.FS

// pages are the templates by the name of their file, each with the layout and
// the parts around it.
type pages map[string]*template.Template

// loadPages reads them all: a mistake in one stops the first test.
func loadPages(a assets) pages {
	base := template.Must(template.New("layout.html").Funcs(functions(a)).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html"))
	files, err := fs.ReadDir(templateFiles, "templates")
	if err != nil {
		panic(err) // They are part of the program.
	}
	all := make(pages)
	for _, f := range files {
		if name := strings.TrimSuffix(f.Name(), ".html"); name != "layout" && name != "parts" {
			all[name] = template.Must(template.Must(base.Clone()).ParseFS(templateFiles, "templates/"+f.Name()))
		}
	}
	return all
}

// view is what the layout shows around a page's own content.
type view struct {
	Page, Title string
	Nav         []navItem
	Person      *api.Person
	Flash       string
	Version     string
	// Live is where the page listens for changes, empty where it does not.
	Live string
	// Here is the page's own address, for forms that come back to it.
	Here string
	// Once is an idempotency key for each form of the page to send.
	Once string
	Body any
}

// May reports whether the session's key has a scope, by its word.
func (v view) May(scope string) bool {
	if v.Person == nil {
		return false
	}
	words := map[string]ledger.Scopes{
		"submit": ledger.ScopeSubmit, "read": ledger.ScopeRead, "operate": ledger.ScopeOperate, "payloads": ledger.ScopePayloads, "admin": ledger.ScopeAdmin,
	}
	return v.Person.May(words[scope])
}

type navItem struct {
	Path, Name string
	Now        bool
	// admin is set for what admin keys alone may see.
	admin bool
}

// menu are the pages that every page leads to.
var menu = [...]navItem{
	{Path: "/console", Name: "Overview"},
	{Path: "/console/operations", Name: "Operations"},
	{Path: "/console/reviews", Name: "Reviews"},
	{Path: "/console/upstreams", Name: "Upstreams"},
	{Path: "/console/events", Name: "Events"},
	{Path: "/console/deliveries", Name: "Deliveries"},
	{Path: "/console/replays", Name: "Replays"},
	{Path: "/console/endpoints", Name: "Endpoints"},
	{Path: "/console/accounts", Name: "Accounts"},
	{Path: "/console/keys", Name: "Keys"},
	{Path: "/console/audit", Name: "Audit"},
	{Path: "/console/nodes", Name: "Nodes", admin: true},
}

// show answers with a page; it is whole or it is an error.
func (v *visit) show(status int, page, title string, body any) error {
	return v.showLive(status, page, title, "", body)
}

// showLive is [visit.show] for a page that makes itself anew when it is told to.
func (v *visit) showLive(status int, page, title, live string, body any) error {
	shown := view{Page: page, Title: title, Version: v.o.Version, Live: live, Here: v.r.URL.RequestURI(), Once: "console-" + rand.Text(), Body: body}
	if v.person.Key != "" {
		shown.Person = &v.person
		for _, item := range menu {
			if item.admin && !v.may(ledger.ScopeAdmin) {
				continue
			}
			item.Now = item.Path == v.r.URL.Path || item.Path != home && strings.HasPrefix(v.r.URL.Path, item.Path+"/")
			shown.Nav = append(shown.Nav, item)
		}
		if !refreshes(v.r) {
			shown.Flash = v.sessions.told(v.token)
		}
	}
	var out bytes.Buffer
	if err := v.pages[page].ExecuteTemplate(&out, "layout.html", shown); err != nil {
		return fmt.Errorf("page %s: %w", page, err)
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(out.Bytes()) // The browser is gone: nobody is left to tell.
	return nil
}

// functions are those of the templates.
func functions(a assets) template.FuncMap {
	return template.FuncMap{
		"asset": a.link, "when": when, "ago": ago, "iso": iso, "to": to, "short": short, "text": text, "json": indented, "plain": plain,
		"words": func(s string) string { return strings.ReplaceAll(s, "_", " ") },
		"of":    func(base any, more any) pair { return pair{base, more} },
		"join":  strings.Join, "brief": brief,
	}
}

// pair hands two things to a part of a page.
type pair struct{ View, Of any }

// moment reads a time of whatever kind; false for one that is not set.
func moment(v any) (time.Time, bool) {
	switch t := v.(type) {
	case pawl.Time:
		return t.Std(), t.IsSet()
	case *pawl.Time:
		if t != nil {
			return t.Std(), t.IsSet()
		}
	case time.Time:
		return t.UTC(), !t.IsZero()
	}
	return time.Time{}, false
}

// when writes a time to the second, in UTC.
func when(v any) string {
	t, ok := moment(v)
	if !ok {
		return "–"
	}
	return t.Format("2006-01-02 15:04:05")
}

// iso writes a time for machines.
func iso(v any) string {
	t, _ := moment(v)
	return t.Format(time.RFC3339Nano)
}

// ago says how far a time is from now.
func ago(v any) string {
	t, ok := moment(v)
	if !ok {
		return "–"
	}
	d := time.Since(t)
	if d < 0 {
		return "in " + span(-d)
	}
	return span(d) + " ago"
}

// span writes a duration with its largest unit, or two of them where that says
// much more.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// brief is a duration's text without the units that say nothing.
func brief(text string) string {
	for _, none := range [...]string{"m0s", "h0m"} {
		if strings.HasSuffix(text, none) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// places are the pages of ids by their prefix.
var places = map[string]string{
	"op": "operations", "rev": "reviews", "evt": "events", "dlv": "deliveries", "ep": "endpoints", "acct": "accounts", "rpl": "replays", "key": "keys",
}

// to is the page of an id, empty where it has none.
func to(id string) string {
	place := placeOf(id)
	if place == "" {
		return ""
	}
	return "/console/" + place + "/" + id
}

// placeOf is the part of a path that goes before an id, of the console and of the
// API alike; empty for what is no id of ours, whatever it begins with.
func placeOf(id string) string {
	prefix, _, _ := strings.Cut(id, "_")
	if _, err := pawl.ParseID(prefix, id); err != nil {
		return ""
	}
	return places[prefix]
}

// short is an id with its middle left out.
func short(id string) string {
	if len(id) <= 16 {
		return id
	}
	prefix, _, _ := strings.Cut(id, "_")
	return prefix + "_…" + id[len(id)-7:]
}

// text is a word that may be missing.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// indented is JSON for people.
func indented(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
		return string(raw)
	}
	return out.String()
}

// plain is an amount without the places that say nothing: at least two stay.
func plain(amount string) string {
	whole, places, ok := strings.Cut(amount, ".")
	if !ok {
		return amount
	}
	places = strings.TrimRight(places, "0")
	for len(places) < 2 {
		places += "0"
	}
	return cmp.Or(whole, "0") + "." + places
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// many is a count with the word that goes with it.
func many(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return itoa(int64(n)) + " " + more
}

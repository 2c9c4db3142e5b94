package canary_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The pages of the console are sinks named "console PATH" by what they are about.
const consolePage = "console "

// What is true of the API is true of the console, which shows what it answers, of
// what is exported, and of what the installation is told.
func TestPages(t *testing.T) {
	w := newWorld(t)
	w.keys()
	w.notes()
	w.endpoints()
	for _, do := range []string{"read ends", "read fails", "create 422", "wait for a callback", "take callbacks"} {
		w.submit("up", do)
	}
	w.files()
	w.others()
	w.callbacks()
	w.deliveries()
	w.console()
	w.exports()
	w.notified()
	w.stop()
	w.look(logs, w.log.String())
	w.judge(mustOfPages)
}

// notes makes the endpoint of the installation.
func (w *world) notes() {
	w.need(http.StatusCreated, w.call(theAdminKey, http.MethodPost, "/v1/endpoints", "/v1/endpoints", map[string]any{
		"url": w.receiver.URL + "/ok/notices", "installation": true,
	}))
}

// anyID is an identifier in the address of a page.
var anyID = regexp.MustCompile(`/[a-z]+_[0-9a-hjkmnp-tv-z]{26}`)

// href is a link of a page.
var href = regexp.MustCompile(`href="(/console[^"#]*)"`)

// mostOfAKind is how many pages of one kind are read.
const mostOfAKind = 60

// console reads every page of the console that a link leads to, as three people:
// one who may do everything, one who may read, and one who may read payloads.
func (w *world) console() {
	made := w.need(http.StatusCreated, w.call(theAdminKey, http.MethodPost, "/v1/keys", "/v1/keys", map[string]any{"name": "looker", "scopes": []string{"read", "operate", "payloads"}}))
	w.add(tenantKey, strings.TrimPrefix(made.text("secret"), "pawl_sk_"))
	w.add(keySecret, strings.TrimPrefix(made.text("webhook_secret"), "whsec_"))
	for _, key := range []string{theAdminKey, w.reader, made.text("secret")} {
		v := w.login(key)
		kinds := v.crawl()
		for _, kind := range []string{
			"/console", "/console/operations", "/console/operations/{id}", "/console/reviews", "/console/reviews/{id}", "/console/events", "/console/events/{id}",
			"/console/deliveries", "/console/deliveries/{id}", "/console/endpoints", "/console/endpoints/{id}", "/console/accounts", "/console/accounts/{id}", "/console/upstreams",
		} {
			if kinds[kind] == 0 {
				w.Errorf("no page %s was read", kind)
			}
		}
		// A search repeats what was typed into it, and nothing else.
		v.read("/console/search?q=order")
		v.read("/console/operations?metadata_name=customer&metadata_value=" + url.QueryEscape(theMetadata))
		v.read("/console/nowhere")
	}
	v := w.login(theAdminKey)
	// Those who come with a wrong key, and what is shown once.
	v.send(http.MethodPost, "/console/login", url.Values{"key": {theAdminKey + "x"}, "next": {"/console"}})
	shown := v.send(http.MethodPost, "/console/keys", url.Values{"name": {"by hand"}, "tenant": {"default"}, "scope": {"read"}, "reason": {"a canary"}})
	shown = html.UnescapeString(shown)
	for of, begins := range map[class]string{tenantKey: "pawl_sk_", keySecret: "whsec_"} {
		secret := regexp.MustCompile(begins + `([A-Za-z0-9+/_-]{20,}=*)`).FindStringSubmatch(shown)
		if secret == nil {
			w.Fatalf("the console shows no %s: %s", of, shown)
		}
		w.add(of, secret[1])
	}
	v.crawl()
}

// browser is one who has logged in to the console.
type browser struct {
	*world
	client *http.Client
}

func (w *world) login(key string) browser {
	w.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.Fatal(err)
	}
	client := *w.client
	client.Jar = jar
	v := browser{w, &client}
	v.send(http.MethodPost, "/console/login", url.Values{"key": {key}})
	if len(jar.Cookies(&url.URL{Scheme: "http", Host: strings.TrimPrefix(w.node.AdminURL(), "http://"), Path: "/console"})) == 0 {
		w.Fatal("the console let nobody in")
	}
	return v
}

// kind is what a page is about: its path without ids.
func kind(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return anyID.ReplaceAllString(path, "/{id}")
}

// crawl follows the links, from the overview on, and counts the pages by kind.
func (v browser) crawl() map[string]int {
	seen, kinds := map[string]bool{"/console": true}, make(map[string]int)
	for waiting := []string{"/console"}; len(waiting) > 0; waiting = waiting[1:] {
		page := waiting[0]
		kinds[kind(page)]++
		for _, link := range href.FindAllStringSubmatch(v.read(page), -1) {
			to := html.UnescapeString(link[1])
			if seen[to] || strings.HasPrefix(to, "/console/static") || kinds[kind(to)]+waits(waiting, kind(to)) >= mostOfAKind {
				continue
			}
			seen[to] = true
			waiting = append(waiting, to)
		}
	}
	return kinds
}

func waits(pages []string, of string) (n int) {
	for _, p := range pages {
		if kind(p) == of {
			n++
		}
	}
	return n
}

func (v browser) read(path string) string {
	v.Helper()
	return v.send(http.MethodGet, path, nil)
}

// send asks for a page and looks at it: an error belongs to nobody.
func (v browser) send(method, path string, form url.Values) string {
	v.Helper()
	w := *v.world
	w.client = v.client
	h := http.Header{"Sec-Fetch-Site": {"same-origin"}}
	if form != nil {
		h.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	s := sink(consolePage + kind(path))
	if method != http.MethodGet {
		s = sink(consolePage + method + " " + kind(path))
	}
	got := w.ask(s, method, w.node.AdminURL()+path, []byte(form.Encode()), h)
	return got.body
}

// exports writes every list as CSV, and the ledger into a backup.
func (w *world) exports() {
	env := map[string]string{"PAWL_SERVER": w.node.APIURL(), "PAWL_KEY": theAdminKey, "PAWL_STATE_DIR": w.TempDir()}
	for _, list := range []string{"op", "event", "delivery", "review", "endpoint", "account", "key", "upstream", "source", "audit"} {
		w.command(0, sink("pawl "+list+" list --csv"), env, "", list, "list", "--csv")
	}
	w.command(0, "pawl audit list", env, "", "audit", "list", "--page-size", "200")
	w.command(0, "pawl audit list", env, "", "audit", "list", "--page-size", "200", "--json")
	out := filepath.Join(w.TempDir(), "backup.db")
	w.command(0, "pawl backup", env, "", "backup", "--data", w.dir, "--out", out)
	info, err := os.Stat(out)
	if err != nil || info.Mode().Perm() != 0o600 {
		w.Errorf("the backup may be read by others: %v %v", info, err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		w.Fatal(err)
	}
	w.look(atRest, string(text))
}

// notified tells the installation of what has happened: ids and words, nothing of
// what tenants sent or got.
func (w *world) notified() {
	if !slices.ContainsFunc(noticeTypes, func(of string) bool { return w.noted(of) }) {
		w.Errorf("no notice came: %v", noticeTypes)
	}
}

var noticeTypes = []string{"review.opened", "delivery.dead", "upstream.paused", "endpoint.disabled"}

// noted reports whether a notice of a type came.
func (w *world) noted(of string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for text := range w.texts[notices] {
		if strings.Contains(text, fmt.Sprintf("%q", of)) {
			return true
		}
	}
	return false
}

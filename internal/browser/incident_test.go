package browser

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/sim"
	"github.com/pawlhq/pawl/webhook"
)

// incident is a town of two providers and two receivers, of which one each fails
// for a while.
type incident struct {
	*town
	render    *sim.Server
	web       *sim.Receiver
	webID     string
	mobileID  string
	begun     []string // operations that the failing provider had taken
	unclear   []string // operations whose creates it answered 500
	submitted int
	elsewhere int
}

// TestIncident: an upstream answers 500 for a while, its callbacks are lost, and
// one endpoint is down. Whoever is woken finds cause and effect from the overview
// by links and buttons alone, does what the runbook says, and sees it over.
func TestIncident(t *testing.T) {
	t.Parallel()
	i := startIncident(t)
	tab := i.operator()
	tab.Wait("#health.good") // Before it.
	i.happens()
	i.understands(tab)
	i.pauses(tab)
	i.render.Fail()
	i.web.Fail(false)
	i.resumes(tab)
	i.decides(tab)
	i.replaysDead(tab)
	i.goesOn(10)
	i.isOver(tab)
}

func startIncident(t *testing.T) *incident {
	t.Helper()
	// The task of the first operations ends while the provider is down.
	long := sim.Script{
		Dialect: sim.Native, Final: pawl.Succeeded, Price: pawl.AmountScale, Cost: pawl.AmountScale, Start: time.Second, End: 5 * time.Second, Settle: 5 * time.Second,
		Callbacks: []sim.Callback{{Event: "end", Kind: sim.TellsEnd, At: 5 * time.Second}},
	}
	render, renderAt := provider(t, sim.NewScripts(sim.Options{Price: pawl.AmountScale}, long, long, long), sim.Config{})
	studio, studioAt := provider(t, sim.NewScripts(sim.Options{Price: pawl.AmountScale}), sim.Config{})
	w := newTown(t, fmt.Sprintf(`egress: {allow: [127.0.0.0/8]}
tenants: {default: {account: {currency: USD, credit: "1000"}}}
upstreams:
  render: {preset: sim, base_url: %q, key: %q, webhook_keys: [%q], deadline: 1h, timeout: 2s, owner: media team, read: {first: 500ms, max: 1s, rate: 50}}
  studio: {preset: media-v2, base_url: %q, key: %q, webhook_keys: [%q], deadline: 1h, timeout: 2s, owner: media team, read: {first: 500ms, max: 1s, rate: 50}}
`, renderAt, render.Key(), render.Secret(sim.Native), studioAt, studio.Key(), studio.Secret(sim.MediaV2)))
	i := &incident{town: w, render: render}
	i.web, i.webID = i.receiver("web team")
	_, i.mobileID = i.receiver("mobile team")
	return i
}

// receiver is one that verifies, and its endpoint, which gives up quickly.
func (i *incident) receiver(owner string) (*sim.Receiver, string) {
	i.Helper()
	secret, err := webhook.NewSecret(nil)
	if err != nil {
		i.Fatal(err)
	}
	r, err := sim.NewReceiver(sim.ReceiverConfig{Secrets: []string{secret}})
	if err != nil {
		i.Fatal(err)
	}
	i.Cleanup(func() { _ = r.Close() })
	at, err := r.Start()
	if err != nil {
		i.Fatal(err)
	}
	body := fmt.Sprintf(`{"url":"%s/hook","secret":%q,"owner":%q,"types":["operation.succeeded"],"policy":{"attempts":2,"schedule":["0s","200ms"]}}`, at, secret, owner)
	return r, i.call(http.MethodPost, "/v1/endpoints", body)["id"].(string)
}

// submits hands in an operation; those beyond the scripts go well at once.
func (i *incident) submits(upstream string) string {
	i.Helper()
	i.submitted++
	return i.order(upstream, i.submitted-1)
}

func (i *incident) state(op string) string {
	i.Helper()
	return i.call(http.MethodGet, "/v1/operations/"+op, "")["state"].(string)
}

// reach waits until operations are in a state.
func (i *incident) reach(state string, ops ...string) {
	i.Helper()
	for _, op := range ops {
		i.until(op+" is not "+state, func() bool { return i.state(op) == state })
	}
}

// happens is what the operator has not seen.
func (i *incident) happens() {
	for range 3 {
		i.begun = append(i.begun, i.submits("render"))
	}
	i.reach("running", i.begun...)
	i.render.Fail(sim.Native)
	i.web.Fail(true)
	for range 4 {
		i.unclear = append(i.unclear, i.submits("render"))
	}
	i.reach("unconfirmed", i.unclear...)
	for range 6 { // The other provider's jobs succeed, and one of two receivers is not told.
		i.reach("succeeded", i.submits("studio"))
		i.elsewhere++
	}
}

// understands: the overview alone says what fails, whom it concerns and whom not.
func (i *incident) understands(tab *Tab) {
	i.Helper()
	tab.Wait("#health li.bad")
	tab.Wait(fmt.Sprintf("#endpoints tr[data-id=%s]", i.webID))
	i.until("the overview does not say how many are unconfirmed", func() bool {
		return strings.Contains(tab.Text("#health"), "4 operations are unconfirmed")
	})
	health := tab.Text("#health")
	for _, words := range []string{"Upstream render fails", "7 unfinished operations there", "1 other upstream works", "of web team", "dead letters", "answered HTTP 500 last"} {
		if !strings.Contains(health, words) {
			i.Errorf("the overview does not say %q: %s", words, health)
		}
	}
	if n := tab.Count("#endpoints tr[data-id]"); n != 1 {
		i.Errorf("%d endpoints are said to fail, want 1", n)
	}
	if text := tab.Text("#upstreams tr[data-name=studio]"); !strings.Contains(text, "fine") {
		i.Errorf("the other upstream: %s", text)
	}
	i.shot(tab, "incident")
}

// pauses: from the finding to the upstream, and no more creates come to nothing.
func (i *incident) pauses(tab *Tab) {
	tab.follow("#health a[href*='#upstream-render']")
	if text := tab.Text("#upstream-render"); !strings.Contains(text, "failing") || !strings.Contains(text, "failed") {
		i.Errorf("the upstream's card: %s", text)
	}
	tab.act("form[action$='render/pause']", "they answer 500")
	tab.Wait("#upstream-render .state.expired")
	held := i.submits("render")
	i.unclear = append(i.unclear, held) // Not unclear, and not lost.
	if text := tab.Text("#upstream-render"); !strings.Contains(text, "stands still: they answer 500") {
		i.Errorf("the paused upstream: %s", text)
	}
}

// resumes: what waited goes on, and what had been begun is read, since no callback
// will ever come; one is asked for by hand.
func (i *incident) resumes(tab *Tab) {
	tab.act("form[action$='render/resume']", "their status page says that it is over")
	tab.follow("#upstream-render .acts a[href*='unfinished']")
	for _, op := range i.begun {
		if i.state(op) == "running" {
			tab.follow("a[href='/console/operations/" + op + "']")
			if tab.Count("form[action$=read]") > 0 {
				tab.act("form[action$=read]", "its callback is lost")
			}
			break
		}
	}
	i.reach("succeeded", i.begun...)
	i.reach("succeeded", i.unclear[len(i.unclear)-1])
}

// decides: the operations whose creates are unclear are looked up at the provider,
// which has none of them.
func (i *incident) decides(tab *Tab) {
	for _, op := range i.unclear[:len(i.unclear)-1] {
		tab.follow(".brand")
		tab.follow("#health a[href$='state=unconfirmed']")
		tab.follow("td:first-child a[href='/console/operations/" + op + "']")
		form := "form[action$=resolve]"
		tab.Run(fmt.Sprintf("document.querySelector(%q).closest('details').open = true", form))
		tab.Fill(form+" [name=decision]", pawl.DecideNotCreated)
		tab.act(form, "their list has no task of that time")
	}
	i.reach("succeeded", i.unclear...)
	created := 0
	for _, page := range i.render.Snapshot().Operations {
		if created += len(page.Tasks); len(page.Tasks) > 1 {
			i.Errorf("%d tasks of one operation", len(page.Tasks))
		}
	}
	if want := len(i.begun) + len(i.unclear); created != want {
		i.Errorf("%d tasks were made, want %d", created, want)
	}
}

// replaysDead: from the finding to the endpoint, count first, then all of them.
func (i *incident) replaysDead(tab *Tab) {
	tab.follow(".brand")
	tab.follow("#health a[href*='/console/endpoints/" + i.webID + "']")
	tab.follow("#replay-all")
	tab.Fill("#replay [name=reason]", "the web team says that it is up again")
	tab.Click("#replay [name=dry_run]")
	tab.Wait("#count b")
	dead := i.dead()
	if text := tab.Text("#count b"); text != fmt.Sprint(dead) || dead == 0 {
		i.Errorf("the count says %s, and %d are dead", text, dead)
	}
	tab.Fill("#again [name=reason]", "the web team says that it is up again")
	tab.Submit("#again")
	tab.Wait("h1 .state.done")
	i.until("dead letters are left", func() bool { return i.dead() == 0 })
	tab.follow(".brand")
	tab.follow("#reviews a[href$='reason=dead_letter']")
	tab.follow("tbody tr[data-id] td:first-child a")
	tab.Click("#decide [value=retry]")
	tab.Fill("#decide [name=reason]", "all were sent again")
	tab.Submit("#decide form")
	tab.Wait("h1 .state.succeeded")
}

func (i *incident) dead() int {
	i.Helper()
	items, _ := i.call(http.MethodGet, "/v1/deliveries?state=dead&page_size=200&endpoint="+url.QueryEscape(i.webID), "")["items"].([]any)
	return len(items)
}

// goesOn submits to both providers, as before.
func (i *incident) goesOn(times int) {
	for range times {
		i.reach("succeeded", i.submits("render"), i.submits("studio"))
		i.elsewhere++
	}
}

// isOver: nothing needs anybody, and everybody was told everything.
func (i *incident) isOver(tab *Tab) {
	tab.follow(".brand")
	tab.Wait("#health.good")
	i.shot(tab, "incident-over")
	if text := tab.Text("#upstreams tr[data-name=render]"); !strings.Contains(text, "fine") {
		i.Errorf("the upstream that failed: %s", text)
	}
	want := len(i.begun) + len(i.unclear) + i.elsewhere + 10
	for _, ep := range []string{i.webID, i.mobileID} {
		i.until("not everything is delivered to "+ep, func() bool {
			items, _ := i.call(http.MethodGet, "/v1/deliveries?state=delivered&page_size=200&endpoint="+ep, "")["items"].([]any)
			return len(items) == want
		})
	}
	for _, act := range []string{"upstream.pause", "upstream.resume", "operation.resolve", "replay.create", "review.resolve"} {
		i.first("/v1/audit?action=" + act)
	}
}

// shot writes a picture, if they are asked for.
func (w *town) shot(tab *Tab, name string) {
	w.Helper()
	if *screenshots == "" {
		return
	}
	for _, look := range Looks() {
		tab.As(look)
		tab.Open(tab.Path()) // What is new is not on its way from one colour to another.
		tab.Screenshot(*screenshots, name+"-"+look.Name)
	}
	tab.As(Looks()[0])
}

package server

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/sim"
)

// file fetches a link of the API.
func (w *world) file(link string) (int, string) {
	w.Helper()
	r, err := w.client.Get(link)
	if err != nil {
		w.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		w.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// artifact is what the API answers about a file, without following it.
func (w *world) artifact(id string) reply {
	w.Helper()
	follow := w.client.CheckRedirect
	w.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	defer func() { w.client.CheckRedirect = follow }()
	return w.call(http.MethodGet, "/v1/artifacts/"+id, nil)
}

// From the provider's link to a file of ours: the success says pending, one event
// says ready, the provider's link is nowhere, and our own ends (1-product G1, G2).
func TestResultIsCaptured(t *testing.T) {
	simulate(t, scripted(), func(p *play) {
		p.endpoint()
		op := p.order()
		p.pass(12 * time.Second)
		p.told(op, "operation.running", "operation.succeeded", "operation.artifacts.ready")
		r := p.now(op, "succeeded")
		id := r.at("artifacts.0.id")
		if !strings.HasPrefix(id, "art_") || r.at("result.url") != id || r.at("artifacts.0.state") != "captured" || r.at("artifacts.0.filename") != "result.txt" {
			p.Fatalf("%s", r.body)
		}
		for n, want := range map[int]string{1: "pending", 2: "captured"} {
			body := p.sink.attempts()[n].body
			if !strings.Contains(body, `"id":"`+id+`","state":"`+want+`"`) || strings.Contains(body, "Signature") {
				t.Errorf("event %d: %s", n, body)
			}
		}
		link := p.want(http.StatusFound, p.artifact(id))
		status, text := p.file(link.at("url"))
		if status != 200 || !strings.HasPrefix(text, "result of ") || link.header.Get("Location") != link.at("url") {
			t.Errorf("%d %.80q", status, text)
		}
		p.pass(16 * time.Minute)
		if status, _ := p.file(link.at("url")); status != http.StatusGone {
			t.Errorf("after its end the link is answered %d", status)
		}
		if got := p.metric("pawl_captures_total{outcome=\"captured\"}"); got != "1" {
			t.Errorf("captures %s", got)
		}
		if strings.Contains(p.log.String(), "Signature") || strings.Contains(p.log.String(), "/artifacts/") {
			t.Error("the link is in the log")
		}
	})
}

// A link that has ended before its turn costs one read, and nothing else
// (1-product G3, O-075).
func TestO075EndedLinkIsReadAnew(t *testing.T) {
	simulate(t, scripted(func(s *sim.Script) { s.Result = sim.LinkEnded }), func(p *play) {
		p.endpoint()
		op := p.order()
		p.pass(time.Minute)
		p.told(op, "operation.running", "operation.succeeded", "operation.artifacts.ready")
		if n := p.page().Tasks[0].Reads; n > 3 {
			t.Errorf("%d reads", n)
		}
		p.money("99.4", "0")
		p.review(op)
	})
}

// Without a fresh link the operation stays what it is, and a person is asked
// (7-rules R32, O-075).
func TestO075LostLink(t *testing.T) {
	simulate(t, scripted(func(s *sim.Script) { s.Result = sim.LinkGone }), func(p *play) {
		p.endpoint()
		op := p.order()
		p.pass(time.Minute)
		p.told(op, "operation.running", "operation.succeeded", "operation.artifacts.failed", "operation.review.opened")
		p.now(op, "succeeded")
		p.money("99.4", "0")
		p.review(op, "capture")
		review := p.get("/v1/reviews?reason=capture").items()[0]
		if !strings.Contains(review.at("detail"), "status 403") || strings.Contains(review.at("detail"), "http") {
			t.Errorf("%s", review.at("detail"))
		}
	})
}

// Of a held result nothing comes out before it is released, by any way
// (1-product G4).
func TestHeldResultStaysInside(t *testing.T) {
	hold := func(_ *config.Config, u *config.Upstream) { u.Release = config.ReleaseHold }
	simulate(t, scripted(), func(p *play) {
		p.endpoint()
		op := p.order()
		p.pass(time.Minute)
		p.told(op, "operation.running", "operation.succeeded", "operation.review.opened")
		p.money("99.4", "0")
		places := []string{
			"/v1/operations/" + op, "/v1/operations", "/v1/operations/" + op + "/timeline", "/v1/operations/" + op + "/artifacts",
			"/v1/events?operation=" + op, "/v1/reviews", "/v1/audit", "/v1/deliveries",
		}
		var events struct{ Items []struct{ ID string } }
		if err := json.Unmarshal([]byte(p.get("/v1/events?operation="+op).body), &events); err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			places = append(places, "/v1/events/"+e.ID)
		}
		for _, place := range places {
			if text := string(p.get(place).body); strings.Contains(text, "art_") || strings.Contains(text, "Signature") || strings.Contains(text, "artifacts.ready") || strings.Contains(text, "result.txt") {
				t.Errorf("%s: %s", place, text)
			}
		}
		for _, d := range p.sink.attempts() {
			if strings.Contains(d.body, "art_") || strings.Contains(d.body, "Signature") {
				t.Errorf("told: %s", d.body)
			}
		}
		if p.get("/v1/operations/"+op).at("release") != "hold" {
			t.Error("it is not shown that it is held")
		}
		released := p.want(http.StatusOK, p.call(http.MethodPost, "/v1/operations/"+op+"/release", `{"note":"rights checked"}`))
		if released.at("result.url") == "" || released.at("artifacts.0.state") != "captured" {
			t.Errorf("%s", released.body)
		}
		p.told(op, "operation.running", "operation.succeeded", "operation.review.opened", "operation.released", "operation.review.closed", "operation.artifacts.ready")
		if link := p.want(http.StatusFound, p.artifact(released.at("artifacts.0.id"))); link.at("url") == "" {
			t.Errorf("%s", link.body)
		}
	}, hold)
}

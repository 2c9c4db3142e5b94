package console

import (
	"net/url"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// TestSearchTakesAnyID holds that each kind of id leads to the operation.
func TestSearchTakesAnyID(t *testing.T) {
	s := newStory(t)
	v := s.as("operator")
	for _, id := range []string{s.succeeded, " " + s.succeeded + " ", "job_1", "order-1", s.request, "provider-request-job_1", "e1"} {
		p := v.get("/console/search?q=" + url.QueryEscape(id)).want(303)
		if to := p.header.Get("Location"); to != "/console/operations/"+s.succeeded {
			t.Errorf("%q leads to %q", id, to)
		}
	}
	for id, want := range map[string]string{s.event: "/console/events/" + s.event, s.delivery: "/console/deliveries/" + s.delivery, s.orphan: "/console/reviews/" + s.orphan} {
		if to := s.as("admin").get("/console/search?q=" + id).want(303).header.Get("Location"); to != want {
			t.Errorf("%q leads to %q", id, to)
		}
	}
	// An id of the application's own may look like one of ours.
	lookalike := s.submit("held", `,"correlation_id":"op_order123"`)
	spaced := s.submit("held", `,"correlation_id":" order 7"`)
	for asked, id := range map[string]string{
		"op_order123": lookalike, " order 7": spaced, strings.ToUpper(s.succeeded): s.succeeded, "https://pawl.example/v1/operations/" + s.succeeded + "?x=1": s.succeeded,
	} {
		if to := v.get("/console/search?q=" + url.QueryEscape(asked)).want(303).header.Get("Location"); to != "/console/operations/"+id {
			t.Errorf("%q leads to %q", asked, to)
		}
	}
	v.get("/console/search?q=op_01h455vb4pex5vsknk084sn02q").want(404).shows("Nothing that your key may see has the id")
	v.get("/console/search?q=nobody").want(404).shows("Nothing that your key may see has the id")
}

// TestSearchTakesIDsThatLookLikeOurs holds that an id which a provider gave, and
// which begins as ours do or is even one of another ledger, leads to what it is of.
func TestSearchTakesIDsThatLookLikeOurs(t *testing.T) {
	s := newStory(t)
	v := s.as("operator")
	for n, id := range []string{"evt_1NG8Du2eZvKYlo2C", store.NewID().Text(pawl.PrefixEvent), "key_7", "op_9"} {
		op := s.submit("studio", `,"correlation_id":"`+id+`-c"`)
		row, err := pawl.ParseID(pawl.PrefixOperation, op)
		if err != nil {
			t.Fatal(err)
		}
		s.do(ledger.ReceiveEvent{Header: head(), Up: s.policy("studio"), Token: row, Event: id, Obs: ledger.Observation{
			Task: id + "-t", Word: "processing", State: pawl.Running, Progress: int32(n),
		}})
		for _, asked := range []string{id, id + "-t", id + "-c"} {
			if to := v.get("/console/search?q=" + asked).want(303).header.Get("Location"); to != "/console/operations/"+op {
				t.Errorf("%q leads to %q", asked, to)
			}
		}
	}
}

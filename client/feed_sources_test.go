package client_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/pawlhq/pawl/client"
)

// What came from a source says so in a feed as in a webhook, and what the key may
// not see is not taken for an event without content.
func TestEventsFromSources(t *testing.T) {
	c, _ := against(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Pawl-Endpoint-Sequence", "2")
		_, _ = io.WriteString(w, `{"items":[
			{"id":"evt_1","direction":"inbound","external_id":"theirs","type":"paid","source":"shop","at":"2026-01-02T03:04:05.000000Z","sequence":1,"delivery_id":"dlv_1","body_withheld":true},
			{"id":"evt_2","direction":"inbound","type":"paid","source":"shop","at":"2026-01-02T03:04:05.000000Z","sequence":2,"delivery_id":"dlv_2","data":"YSBsaW5l","content_type":"text/plain"}]}`)
	})
	var got []client.Event
	ctx, end := context.WithCancel(t.Context())
	for e, err := range c.Feed(ctx, "ep_1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e); len(got) == 2 {
			end()
			break
		}
	}
	end()
	if e := got[0]; e.ID != "evt_1" || e.Source != "shop" || !e.Withheld || e.Data != nil {
		t.Errorf("withheld: %+v", e)
	}
	if e := got[1]; e.Source != "shop" || e.Withheld || string(e.Data) != `"YSBsaW5l"` || e.ContentType != "text/plain" {
		t.Errorf("text: %+v", e)
	}
	e, err := client.ParseEvent([]byte(`{"id":"evt_2","type":"paid","source":"shop","timestamp":"2026-01-02T03:04:05.000000Z","sequence":2,"data":"YSBsaW5l","content_type":"text/plain"}`))
	if err != nil || e.Source != got[1].Source || string(e.Data) != string(got[1].Data) || e.ContentType != got[1].ContentType || e.Timestamp != got[1].Timestamp {
		t.Errorf("%+v, delivered %+v, %v", got[1], e, err)
	}
}

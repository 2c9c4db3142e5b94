package outbox_test

import (
	"crypto/sha256"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/webhook"
)

// An endpoint with message signatures gets the native body, signed together with
// the address and the content type that are sent (1-product H2, RFC 9421).
func TestDeliveryWithMessageSignatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{}
		b := newBench(t, x)
		ep := b.endpoint("http://a.example/hook", func(ep *ledger.Endpoint) { ep.Scheme = "rfc9421" })
		b.accept(b.submit())
		stop := b.run()
		defer stop()
		time.Sleep(time.Millisecond)
		all := x.requests()
		if len(all) != 1 {
			t.Fatalf("%d requests", len(all))
		}
		v, err := verify(t, "rfc9421", secretOf(1), all[0])
		if row := b.only(ep.ID); err != nil || v.ID != row.Event.Text("evt") || row.State != pawl.DeliveryDelivered {
			t.Errorf("verified %+v, %v", v, err)
		}
		all[0].path = "/other"
		if _, err := verify(t, "rfc9421", secretOf(1), all[0]); !errors.Is(err, webhook.ReasonNoMatch) {
			t.Errorf("at another address: %v", err)
		}
	})
}

// An event in the form in which it was received is signed with the content type
// that it is sent with, and goes without one as JSON, since the scheme must sign one.
func TestOriginalWithMessageSignatures(t *testing.T) {
	for sent, want := range map[string]string{"text/plain": "text/plain", "": "application/json"} {
		synctest.Test(t, func(t *testing.T) {
			x := &receiver{}
			b := newBench(t, x)
			ep := b.endpoint("http://a.example/hook", func(ep *ledger.Endpoint) { ep.Scheme, ep.Content = "rfc9421", ledger.OriginalContent })
			headers := "{}"
			if sent != "" {
				headers = `{"content-type":"` + sent + `"}`
			}
			b.do(ledger.ReceiveEvent{
				Header: b.header(), Up: ledger.Upstream{Name: "shop", Tenant: ep.Tenant, Generic: true}, Event: "e", Type: "paid",
				Obs: ledger.Observation{Progress: -1}, Body: "a line", Digest: sha256.Sum256([]byte("a line")), Headers: headers,
			})
			stop := b.run()
			defer stop()
			time.Sleep(time.Millisecond)
			all := x.requests()
			if len(all) != 1 {
				t.Fatalf("%d requests", len(all))
			}
			if _, err := verify(t, "rfc9421", secretOf(1), all[0]); err != nil || all[0].body != "a line" || all[0].header.Get("Content-Type") != want {
				t.Errorf("%q: %v, %q, %v", sent, err, all[0].body, all[0].header)
			}
		})
	}
}

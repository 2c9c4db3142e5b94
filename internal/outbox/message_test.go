package outbox_test

import (
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

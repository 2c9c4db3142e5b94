package outbox_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/outbox"
	"github.com/pawlhq/pawl/internal/vault"
)

// A secret that cannot be opened sends nothing, and says why and what to do,
// without anything of it.
func TestSecretThatDoesNotOpen(t *testing.T) {
	stranger := newVault(t)
	for name, c := range map[string]struct {
		change func(*bench, *ledger.Endpoint)
		want   string
	}{
		"damaged":        {func(_ *bench, ep *ledger.Endpoint) { ep.Secret = ep.Secret[:len(ep.Secret)-4] }, "cannot be opened: rotate it"},
		"of another row": {func(b *bench, ep *ledger.Endpoint) { ep.Secret = b.seal(pawl.NewID(1, 9), secretOf(1)) }, "cannot be opened: rotate it"},
		"never sealed":   {func(_ *bench, ep *ledger.Endpoint) { ep.Secret = ledger.Sealed(secretOf(1)) }, "cannot be opened: rotate it"},
		"another wrapping key": {func(_ *bench, ep *ledger.Endpoint) {
			ep.Secret, _ = stranger.Seal(t.Context(), ep.ID, secretOf(1))
		}, "the wrapping key " + stranger.Key() + ", which is not given: put the key back or rotate the secret"},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := &receiver{}
			b := newBench(t, x)
			ep := b.endpoint("http://a.example/hook", func(ep *ledger.Endpoint) { ep.Types = pawl.TypeSucceeded })
			was := ledger.SealedPair{Current: ep.Secret}
			c.change(b, &ep)
			b.do(ledger.Rewrap{Header: b.header(), Endpoint: ep.ID, Was: was, Now: ledger.SealedPair{Current: ep.Secret}})
			b.observe(b.accept(b.submit()), ledger.Observation{State: pawl.Succeeded, Result: `{}`})
			stop := b.run()
			time.Sleep(time.Hour)
			stop()
			row := b.only(ep.ID)
			if row.State != pawl.DeliveryDead || row.Reason != "unsendable" || !strings.Contains(row.LastError, c.want) || len(x.requests()) != 0 {
				t.Errorf("%s: %s %s, %q", name, row.State, row.Reason, row.LastError)
			}
			if text := row.LastError + b.log.String(); strings.Contains(text, "whsec_") || strings.Contains(text, string(ep.Secret)) {
				t.Errorf("%s: %s", name, text)
			}
		})
	}
}

// A delivery that is under way while its secret is sealed anew with another key
// is signed with the same secret, and so is the next one.
func TestRewrapInMidDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{}
		older, newer := vault.NewKey(), vault.NewKey()
		both, err := vault.New(t.Context(), vault.URL(newer), vault.URL(older))
		if err != nil {
			t.Fatal(err)
		}
		was, err := vault.New(t.Context(), vault.URL(older))
		if err != nil {
			t.Fatal(err)
		}
		b := newBench(t, x, func(o *outbox.Options) { o.Vault = was })
		ep := b.endpoint("http://a.example/hook")
		b.opts.Vault = both
		b.box = newBox(b)
		op := b.accept(b.submit())
		time.Sleep(time.Millisecond)
		jobs, err := b.box.Claim(t.Context(), time.Now())
		if err != nil || len(jobs) != 1 {
			t.Fatalf("%d jobs, %v", len(jobs), err)
		}
		again, err := both.Reseal(t.Context(), ep.ID, ep.Secret)
		if err != nil || again == ep.Secret {
			t.Fatal(err)
		}
		b.do(ledger.Rewrap{Header: b.header(), Endpoint: ep.ID, Was: ledger.SealedPair{Current: ep.Secret}, Now: ledger.SealedPair{Current: again}})
		b.box.Record(t.Context(), b.box.Act(t.Context(), jobs[0], time.Now()))
		b.observe(op, ledger.Observation{State: pawl.Succeeded, Result: `{}`})
		stop := b.run()
		time.Sleep(time.Minute)
		stop()
		all := x.requests()
		if len(all) != 2 {
			t.Fatalf("%d requests, want 2", len(all))
		}
		for _, g := range all {
			if _, err := verify(t, "standard-webhooks", secretOf(1), g); err != nil {
				t.Error(err)
			}
		}
	})
}

// Opening is not on the way of each delivery: what was opened is remembered,
// here beyond the end of the keeper.
func TestOpenedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{}
		b := newBench(t, x)
		first, second := b.endpoint("http://a.example/hook"), b.endpoint("http://b.example/hook", func(ep *ledger.Endpoint) { ep.Types = pawl.TypeSucceeded })
		stop := b.run()
		defer stop()
		op := b.accept(b.submit())
		b.box.Wake()
		time.Sleep(time.Second)
		b.opts.Vault.Close()
		b.observe(op, ledger.Observation{State: pawl.Succeeded, Result: `{}`})
		b.box.Wake()
		time.Sleep(time.Second)
		for _, row := range b.deliveries(first.ID) {
			if row.State != pawl.DeliveryDelivered {
				t.Errorf("%s %s", row.State, row.LastError)
			}
		}
		if row := b.only(second.ID); row.State == pawl.DeliveryDelivered {
			t.Error("the vault was not closed: this test proves nothing")
		}
	})
}

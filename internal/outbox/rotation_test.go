package outbox_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/webhook"
)

// signingKey is a fresh Ed25519 key and its public half.
func signingKey(t *testing.T) (secret, public string) {
	t.Helper()
	scheme, _ := webhook.Lookup("standard-webhooks-v1a")
	secret, err := scheme.NewSecret(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := scheme.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return secret, key.PublicKey()
}

// An endpoint with Ed25519 gets the native body, which its public key verifies.
func TestDeliveryWithEd25519(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{}
		b := newBench(t, x)
		secret, public := signingKey(t)
		ep := b.endpoint("http://a.example/hook", func(ep *ledger.Endpoint) {
			ep.Scheme, ep.Secret = "standard-webhooks-v1a", ledger.Sealed(secret)
		})
		b.accept(b.submit())
		stop := b.run()
		defer stop()
		time.Sleep(time.Millisecond)
		all := x.requests()
		if len(all) != 1 || !strings.Contains(all[0].body, `"type":"operation.running"`) {
			t.Fatalf("%d requests", len(all))
		}
		v, err := verify(t, "standard-webhooks-v1a", public, all[0])
		if row := b.only(ep.ID); err != nil || v.ID != row.Event.Text("evt") || row.State != pawl.DeliveryDelivered {
			t.Errorf("verified %+v, %v", v, err)
		}
		if signature := all[0].header.Get("Webhook-Signature"); !strings.HasPrefix(signature, "v1a,") || strings.Contains(signature, " ") {
			t.Errorf("signature %s", signature)
		}
	})
}

// Both Ed25519 keys sign while they overlap, and so do the secrets of both
// schemes while an endpoint goes over from one to the other (7-rules R39), each
// in the one header. At its end, and not before, the former one no longer signs.
func TestOverlapEndsToTheMicrosecond(t *testing.T) {
	oldKey, oldPublic := signingKey(t)
	newKey, newPublic := signingKey(t)
	for _, tt := range []struct {
		name, scheme, next            string // schemes before and after
		former, current               string
		verifiesFormer, verifiesAfter string
	}{
		{"two of Ed25519", "standard-webhooks-v1a", "", oldKey, newKey, oldPublic, newPublic},
		{"over to Ed25519", "standard-webhooks", "standard-webhooks-v1a", secretOf(1), newKey, secretOf(1), newPublic},
		{"back from Ed25519", "standard-webhooks-v1a", "standard-webhooks", oldKey, secretOf(2), oldPublic, secretOf(2)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &receiver{}
				b := newBench(t, x)
				ep := b.endpoint("http://a.example/hook", func(ep *ledger.Endpoint) {
					ep.Scheme, ep.Secret = tt.scheme, ledger.Sealed(tt.former)
				})
				until := time.Now().Add(time.Hour)
				b.do(ledger.ChangeEndpoint{Header: b.header(), Tenant: "acme", ID: ep.ID, Action: "rotate_secret", Change: ledger.EndpointChange{
					Secret: b.seal(ep.ID, tt.current), Scheme: tt.next, FormerUntil: pawl.TimeOf(until),
				}})
				time.Sleep(time.Hour - time.Second)
				b.accept(b.submit())
				b.accept(b.submit())
				time.Sleep(time.Millisecond)
				jobs, err := b.box.Claim(t.Context(), time.Now())
				if err != nil || len(jobs) != 2 {
					t.Fatalf("%d jobs, %v", len(jobs), err)
				}
				b.box.Record(t.Context(), b.box.Act(t.Context(), jobs[0], until.Add(-time.Microsecond)))
				b.box.Record(t.Context(), b.box.Act(t.Context(), jobs[1], until))
				all := x.requests()
				if len(all) != 2 {
					t.Fatalf("%d requests", len(all))
				}
				for i, want := range []bool{true, false} {
					if n := len(strings.Fields(all[i].header.Get("Webhook-Signature"))); n != map[bool]int{true: 2, false: 1}[want] {
						t.Errorf("request %d: %d signatures", i+1, n)
					}
					if n := len(all[i].header.Values("Webhook-Signature")); n != 1 {
						t.Errorf("request %d: %d headers", i+1, n)
					}
					scheme := standardWebhooks(tt.verifiesFormer)
					if _, err := verify(t, scheme, tt.verifiesFormer, all[i]); (err == nil) != want || !want && !errors.Is(err, webhook.ReasonNoMatch) {
						t.Errorf("request %d, former secret: %v", i+1, err)
					}
					if _, err := verify(t, standardWebhooks(tt.verifiesAfter), tt.verifiesAfter, all[i]); err != nil {
						t.Errorf("request %d, present secret: %v", i+1, err)
					}
				}
			})
		})
	}
}

func standardWebhooks(secret string) string {
	scheme, _ := webhook.Lookup("standard-webhooks")
	return scheme.ForSecret(secret).Name()
}

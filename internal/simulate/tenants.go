package simulate

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// currency is that of all accounts.
const currency = "USD"

// tenant is a customer: an account, an API key, some endpoints.
type tenant struct {
	name    string
	key     pawl.ID
	secret  string
	account pawl.ID
	// opening is the credit that it began with.
	opening pawl.Amount
	// limited: its key has been given limits at some time.
	limited   bool
	endpoints []*endpointBook
}

// id makes an id for what its maker names before it is decided.
func (w *world) id() pawl.ID { return pawl.NewID(w.databaseNow(), w.Uint64()) }

// settle makes what is there before anything happens: tenants with credit,
// keys, endpoints.
func (w *world) settle() {
	n := w.nodes[0]
	for i := range 1 + w.IntN(3) {
		t := &tenant{name: fmt.Sprint("tenant", i+1), key: w.id(), secret: w.standardSecret()}
		w.tenants = append(w.tenants, t)
		opening := pick(w.dice, pawl.Amount(2), 20, 1000) * pawl.AmountScale
		out := w.must(n, ledger.EnsureTenant{Name: t.name, Currency: currency, Opening: opening})
		t.account, t.opening = out.Value.(ledger.Tenant).Account, opening
		w.must(n, ledger.CreateKey{Key: ledger.APIKey{
			ID: t.key, Tenant: t.name, Hash: ledger.Digest{byte(i + 1)}, Scopes: ledger.ScopeSubmit | ledger.ScopeRead,
			WebhookSecret: w.seal(t.key, t.secret),
		}})
		for range w.IntN(3) {
			w.newEndpoint(t)
			ep := t.endpoints[len(t.endpoints)-1]
			ep.made = true
			w.must(n, ledger.CreateEndpoint{Endpoint: ep.row})
		}
	}
}

// must decides a command of the set-up, to which nothing happens.
func (w *world) must(n *node, c ledger.Command) ledger.Outcome {
	r := n.batcher.Run(noLimit, w.stamp(c))[0]
	if r.Err != nil || r.Outcome.Err != nil {
		panic(fmt.Sprintf("simulate: set-up: %T: %v %v", c, r.Err, r.Outcome.Err))
	}
	w.now += pawl.Time(time.Millisecond / time.Microsecond)
	return r.Outcome
}

// seal seals a secret for the row that holds it.
func (w *world) seal(owner pawl.ID, secret string) ledger.Sealed {
	s, err := w.vault.Seal(noLimit, owner, secret)
	if err != nil {
		panic(err)
	}
	return s
}

package simulate

import (
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// changeKey has a tenant's API key limited, freed, or its webhook secret
// replaced.
func (w *world) changeKey() {
	t := pick(w.dice, w.tenants...)
	if w.percent(50) {
		w.rotateKey(t)
		return
	}
	limits := ledger.KeyLimits{}
	if w.percent(60) {
		limits.Budget, limits.Currency = pick[pawl.Amount](w.dice, 0, pawl.AmountScale, 20*pawl.AmountScale), currency
	}
	t.limited = true
	w.person("limit a key", func(n *node) {
		_, _ = n.Do(noLimit, ledger.ChangeKey{Tenant: t.name, ID: t.key, Limits: &limits})
	})
}

func (w *world) rotateKey(t *tenant) {
	secret := w.newSecret()
	r := w.callbackReceiver(t)
	r.keys = append(r.keys, parseKey(r.scheme, secret))
	c := ledger.RotateWebhookSecret{
		Tenant: t.name, ID: t.key, Secret: w.seal(t.key, secret), FormerUntil: w.databaseNow().Add(w.between(time.Minute, time.Hour)),
	}
	w.person("rotate a key's webhook secret", func(n *node) { _, _ = n.Do(noLimit, c) })
}

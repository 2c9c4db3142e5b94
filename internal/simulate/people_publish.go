package simulate

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// publish has a tenant give an event of its own to its endpoints, perhaps twice.
func (w *world) publish() {
	t := pick(w.dice, w.tenants...)
	data := fmt.Sprintf(`{"n":%d}`, w.IntN(3))
	c := ledger.PublishEvent{Tenant: t.name, Type: "order.paid", Data: data, Digest: sha256.Sum256([]byte(data))}
	if w.percent(60) {
		c.ID = fmt.Sprint("own-", w.IntN(4))
	}
	c.Once = ledger.Once{APIKey: t.key, KeyTenant: t.name, Key: fmt.Sprint("publish-", w.steps), Window: window}
	first, since := pawl.ID{}, w.latest
	ask := func(n *node) {
		out, err := n.Do(noLimit, c)
		if err != nil || out.Err != nil {
			return
		}
		id := out.Value.(pawl.ID)
		w.books.promiseOutbound(id)
		if first = firstOf(first, id); id != first && !w.expired(since) {
			w.violate("one idempotency key is one event", "%s and %s", first.Suffix(), id.Suffix())
		}
	}
	w.person("publish", ask)
	if w.percent(40) {
		w.after(w.between(0, time.Minute), func() { w.person("publish again", ask) })
	}
}

func firstOf(a, b pawl.ID) pawl.ID {
	if a.IsZero() {
		return b
	}
	return a
}

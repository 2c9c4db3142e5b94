package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// newEndpoint draws an endpoint of a tenant with somebody who answers there.
func (w *world) newEndpoint(t *tenant) {
	scheme := pick(w.dice, "standard-webhooks", "standard-webhooks", "media-v2", "body-timestamp")
	secret := w.newSecret()
	r := w.newReceiver(scheme, secret)
	row := ledger.Endpoint{ID: w.id(), Tenant: t.name, URL: "https://" + r.name + "/events", Scheme: scheme, Owner: "ops"}
	row.Secret = w.seal(row.ID, secret)
	if w.percent(25) {
		row.Types = strings.Join([]string{pawl.TypeSucceeded, pawl.TypeFailed, pawl.TypeProgress}, ",")
	}
	t.endpoints = append(t.endpoints, &endpointBook{row: row, receiver: r})
}

// addEndpoint has a tenant make a further endpoint.
func (w *world) addEndpoint() {
	t := pick(w.dice, w.tenants...)
	w.newEndpoint(t)
	ep := t.endpoints[len(t.endpoints)-1]
	w.person("add an endpoint", func(n *node) {
		out, err := n.Do(noLimit, ledger.CreateEndpoint{Endpoint: ep.row})
		ep.made = ep.made || err == nil && out.Err == nil
	})
}

// changeEndpoint has a tenant change one of its endpoints.
func (w *world) changeEndpoint() {
	t := pick(w.dice, w.tenants...)
	if len(t.endpoints) == 0 {
		return
	}
	ep := pick(w.dice, t.endpoints...)
	c := ledger.ChangeEndpoint{Tenant: t.name, ID: ep.row.ID}
	on, off := false, true
	switch c.Action = pick(w.dice, "disable", "enable", "enable", "rotate", "types", "delete"); c.Action {
	case "disable":
		c.Change.Disabled, c.Change.DisabledReason = &off, "by_hand"
	case "enable":
		c.Change.Disabled = &on
	case "rotate":
		secret := w.newSecret()
		ep.receiver.keys = append(ep.receiver.keys, parseKey(ep.receiver.scheme, secret))
		c.Change.Secret, c.Change.FormerUntil = w.seal(ep.row.ID, secret), w.databaseNow().Add(w.between(time.Minute, time.Hour))
	case "types":
		types := pick(w.dice, "", pawl.TypeSucceeded+","+pawl.TypeRunning)
		c.Change.Types = &types
	case "delete":
		if w.percent(60) {
			return
		}
		c.Change.Delete = true
	}
	w.person("change an endpoint", func(n *node) {
		w.trace("%s: %s", c.ID.Suffix(), c.Action)
		_, _ = n.Do(noLimit, c)
	})
}

// enableEndpoints has every tenant turn its endpoints on again.
func (w *world) enableEndpoints() {
	all, err := w.driver.Endpoints(noLimit, store.EndpointFilter{}, wide)
	if err != nil {
		panic(err)
	}
	on := false
	for _, ep := range all {
		if ep.Disabled {
			w.person("enable", func(n *node) {
				_, _ = n.Do(noLimit, ledger.ChangeEndpoint{Tenant: ep.Tenant, ID: ep.ID, Action: "enable", Change: ledger.EndpointChange{Disabled: &on}})
			})
		}
	}
}

// retryDelivery has somebody send a delivery again.
func (w *world) retryDelivery() {
	f := store.DeliveryFilter{}
	if w.percent(50) {
		f.State = pawl.DeliveryDead
	}
	all, err := w.driver.Deliveries(noLimit, f, wide)
	if err != nil || len(all) == 0 {
		return
	}
	row := pick(w.dice, all...)
	c := ledger.RetryDelivery{Tenant: row.Tenant, Delivery: row.ID, Endpoint: row.Endpoint}
	c.Once = ledger.Once{KeyTenant: row.Tenant, Key: fmt.Sprint("again-", w.steps), Window: window}
	w.person("send again", func(n *node) { _, _ = n.Do(noLimit, c) })
}

package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// asks is a command that names some keys.
type asks ledger.Keys

func (asks) Head() ledger.Header                     { return ledger.Header{} }
func (a asks) Keys(k *ledger.Keys)                   { k.Merge(ledger.Keys(a)) }
func (asks) Decide(*ledger.Draft) (o ledger.Outcome) { return o }

// TestLaneOfTenant: whatever way a command names its tenant, it goes to the same
// lane, by an operation or endpoint as soon as a commit has shown that; tenants
// are spread over all lanes, and what is of no tenant is in the first.
func TestLaneOfTenant(t *testing.T) {
	l := NewLanes(nil, 3, Options{})
	defer func() {
		if err := l.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	lane := func(keys ledger.Keys) *Committer { return l.lane(newRequest(asks(keys))) }
	op, ep := pawl.NewID(1, 1), pawl.NewID(1, 2)
	byOp := ledger.Keys{Operations: []pawl.ID{op}, Tasks: []ledger.TaskID{{Upstream: "up", Task: "task"}}}
	byEndpoint := ledger.Keys{Deliveries: []pawl.ID{pawl.NewID(1, 3)}, Endpoints: []pawl.ID{ep}}
	byQueue := ledger.Keys{Queues: []ledger.QueueID{ledger.DeliveryQueueID(ep)}}
	for name, keys := range map[string]ledger.Keys{
		"source": {Sources: []string{"s"}}, "gate": {Queues: []ledger.QueueID{ledger.GateID("up")}},
		"unknown operation": byOp, "unknown endpoint": byEndpoint, "unknown queue": byQueue, "nothing": {},
	} {
		if lane(keys) != l.lanes[0] {
			t.Errorf("%s is not in the first lane", name)
		}
	}
	used := map[*Committer]bool{}
	for n := range 30 {
		tenant := fmt.Sprint("tenant", n)
		home := lane(ledger.Keys{Tenants: []string{tenant}})
		used[home] = true
		rows := new(ledger.Rows)
		rows.Operations.Loaded(op, ledger.Operation{ID: op, Tenant: tenant}, true)
		rows.Endpoints.Loaded(ep, ledger.Endpoint{ID: ep, Tenant: tenant}, true)
		l.homes.learn(rows)
		for name, keys := range map[string]ledger.Keys{
			"idempotency key": {IdempotencyKeys: []ledger.IdempotencyKeyID{{Tenant: tenant, Value: "k"}}},
			"endpoint set":    {EndpointSets: []string{tenant}},
			"work queue":      {Queues: []ledger.QueueID{ledger.WorkQueueID(ledger.ReadQueue, "up", tenant)}},
			"operation":       byOp, "endpoint": byEndpoint, "delivery queue": byQueue,
		} {
			if lane(keys) != home {
				t.Errorf("%s of %s is in another lane", name, tenant)
			}
		}
	}
	if len(used) != 3 {
		t.Errorf("30 tenants use %d lanes of 3", len(used))
	}
}

// TestHomesAreBounded: what was learned last is known, however much there was.
func TestHomesAreBounded(t *testing.T) {
	var h homes
	for n := range 5 * maxHomes / 2 {
		h.put(pawl.NewID(1, uint64(n)), "t")
	}
	if n := len(h.young) + len(h.aged); n > 2*maxHomes {
		t.Errorf("%d are remembered", n)
	}
	for n := 5*maxHomes/2 - maxHomes; n < 5*maxHomes/2; n++ {
		if h.tenant(pawl.NewID(1, uint64(n))) != "t" {
			t.Fatalf("number %d is forgotten", n)
		}
	}
}

package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// testAging holds the lists of what may be old, each with ids after one and below
// another.
func testAging(t *testing.T, open Open) {
	p := newPair(t, open)
	var ops []ledger.Operation
	for n, kept := range []ledger.Kept{3, 1, 3, 0, 3, 2} {
		o := operation(n, "t", at(n))
		o.Kept = kept
		ops = append(ops, o)
	}
	putOperations(t, p, ops...)
	p.put(t, func(d *ledger.Draft) {
		for n := range 5 {
			e := ledger.Event{ID: id(n), Direction: ledger.Inbound, Source: "up", At: at(n)}
			switch n {
			case 1:
				e.Operation = id(1)
			case 2:
				e.RemovedAt = at(9)
			}
			d.Events.Put(e.ID, e)
			k := ledger.IdempotencyKey{ID: ledger.IdempotencyKeyID{Tenant: "t", Value: string(rune('z' - n))}, For: "credit", Operation: id(n)}
			d.IdempotencyKeys.Put(k.ID, k)
		}
	})
	for _, tc := range []struct {
		kept          ledger.Kept
		before, limit int
		after         int
		want          []int
	}{{3, 9, 9, -1, []int{0, 2, 4}}, {3, 4, 9, -1, []int{0, 2}}, {3, 9, 1, -1, []int{0}}, {3, 9, 9, 0, []int{2, 4}}, {1, 9, 9, -1, []int{1}}, {4, 9, 9, -1, nil}} {
		page := store.Page{Limit: tc.limit}
		if tc.after >= 0 {
			page.After = id(tc.after)
		}
		same(t, "kept operations", numbered(tc.want...), ids(ask(t, p, "kept operations", func(ctx context.Context, d store.Driver) ([]ledger.Operation, error) {
			return d.KeptOperations(ctx, tc.kept, id(tc.before), page)
		}), operationID))
	}
	kept := func(before, after int) []ledger.Event {
		return ask(t, p, "kept events", func(ctx context.Context, d store.Driver) ([]ledger.Event, error) {
			return d.KeptEvents(ctx, id(before), store.Page{After: id(after), Limit: 2})
		})
	}
	same(t, "kept events", numbered(3, 4), ids(kept(9, 0), eventID))
	same(t, "kept events below", numbered(3), ids(kept(4, 0), eventID))
	keys := ask(t, p, "old keys", func(ctx context.Context, d store.Driver) ([]ledger.IdempotencyKey, error) {
		return d.OldKeys(ctx, id(4), store.Page{After: id(0), Limit: 2})
	})
	if len(keys) != 2 || keys[0].Operation != id(1) || keys[1].Operation != id(2) {
		t.Errorf("old keys are %v", keys)
	}
}

// testRemoved: what is removed is gone, and nothing else is; what one batch adds
// under the same id after that stays.
func testRemoved(t *testing.T, open Open) {
	p := newPair(t, open)
	var logs ledger.Rows
	for n := range 3 {
		h, a, u := sample[ledger.History](n), sample[ledger.Attempt](n), sample[ledger.Audit](n)
		h.Operation, a.Delivery, u.Tenant = id(1+n%2), id(1+n%2), "t"
		logs.History, logs.Attempts, logs.Audits = append(logs.History, h), append(logs.Attempts, a), append(logs.Audits, u)
		logs.Payloads = append(logs.Payloads, ledger.Payload{ID: ledger.PayloadID{Owner: id(1), Kind: ledger.PayloadKind(n + 1)}, Body: "body"})
	}
	p.save(t, rows{logs: logs})
	claim, other := sample[ledger.IdempotencyKey](1), sample[ledger.IdempotencyKey](2)
	words, words2 := sample[ledger.Correlation](1), sample[ledger.Correlation](2)
	p.put(t, func(d *ledger.Draft) {
		d.IdempotencyKeys.Put(claim.ID, claim)
		d.IdempotencyKeys.Put(other.ID, other)
		d.Correlations.Put(words.ID, words)
		d.Correlations.Put(words2.ID, words2)
	})
	keys := ledger.Keys{IdempotencyKeys: []ledger.IdempotencyKeyID{claim.ID, other.ID}, Correlations: []ledger.CorrelationID{words.ID, words2.ID}}
	added := logs.Payloads[0]
	added.Body = "again"
	p.save(t, rows{keys: keys, put: func(d *ledger.Draft) {
		d.IdempotencyKeys.Remove(claim.ID)
		d.Correlations.Remove(words.ID)
	}, logs: ledger.Rows{Payloads: []ledger.Payload{added}, Removed: ledger.Removals{
		Payloads: []ledger.PayloadID{logs.Payloads[0].ID, logs.Payloads[1].ID, {Owner: id(7), Kind: 1}},
		Attempts: numbered(1, 7), Words: numbered(1, 7), Audits: ids(logs.Audits[:1], func(a ledger.Audit) pawl.ID { return a.ID }),
	}}})

	left := load(t, p, keys)
	if _, ok := left.IdempotencyKeys.Get(claim.ID); ok {
		t.Error("a removed key is still there")
	}
	if _, ok := left.Correlations.Get(words.ID); ok {
		t.Error("a removed correlation is still there")
	}
	got, _ := left.IdempotencyKeys.Get(other.ID)
	same(t, "another key", other, got)
	got2, _ := left.Correlations.Get(words2.ID)
	same(t, "another correlation", words2, got2)

	payloads, err := p.Payloads(t.Context(), logs.Payloads[0].ID, logs.Payloads[1].ID, logs.Payloads[2].ID)
	same(t, "payloads", map[ledger.PayloadID]string{added.ID: "again", logs.Payloads[2].ID: "body"}, payloads)
	attempts, err2 := p.Attempts(t.Context(), id(1))
	same(t, "attempts that were removed", []ledger.Attempt(nil), attempts)
	attempts, err3 := p.Attempts(t.Context(), id(2))
	same(t, "other attempts", logs.Attempts[1:2], attempts)
	audits, err4 := p.Audits(t.Context(), store.AuditFilter{Tenant: "t"}, store.Page{Limit: 10})
	same(t, "audits", reversed(logs.Audits[1:]), audits)
	history, err5 := p.History(t.Context(), id(1))
	for _, h := range history {
		if h.Detail != "" {
			t.Errorf("a line still says %q", h.Detail)
		}
	}
	other2, err6 := p.History(t.Context(), id(2))
	same(t, "another timeline", logs.History[1:2], other2)
	if err := errors.Join(err, err2, err3, err4, err5, err6); err != nil || len(history) != 2 {
		t.Errorf("%d lines, %v", len(history), err)
	}
	// What was removed can be made anew.
	p.save(t, rows{keys: keys, put: func(d *ledger.Draft) { d.IdempotencyKeys.Put(claim.ID, claim) }})
	back, _ := load(t, p, keys).IdempotencyKeys.Get(claim.ID)
	same(t, "the key made anew", claim, back)
}

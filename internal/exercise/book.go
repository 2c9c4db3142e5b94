package exercise

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// book is ledger.json: what the ledger held at the end, and what was counted on
// the way there.
type book struct {
	// Run is what the throw-away secrets of the run are derived from.
	Run        string          `json:"run"`
	Source     string          `json:"source"`
	Operations []bookOperation `json:"operations"`
	Tasks      []bookTask      `json:"tasks"`
	// Events are those that were received and verified, in that order.
	Events []bookEvent `json:"events"`
	// Emitted are the outbound events.
	Emitted []bookEmitted `json:"emitted"`
	Reads   []bookRead    `json:"status_reads"`
	Counts  bookCounts    `json:"counts"`
	Crashes []bookCrash   `json:"crashes"`
}

type bookOperation struct {
	ID            string `json:"id"`
	TaskID        string `json:"task_id"`
	State         string `json:"state"`
	UpstreamState string `json:"upstream_state"`
	Version       int64  `json:"version"`
	StatusReads   int32  `json:"status_reads"`
}

type bookTask struct {
	Upstream    string `json:"upstream"`
	TaskID      string `json:"task_id"`
	OperationID string `json:"operation_id"`
}

type bookEvent struct {
	// ID is the id by which the source's description knows the event.
	ID      string `json:"id"`
	TaskID  string `json:"task_id"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason,omitempty"`
	// Exchange is where it is in wire/, Stored the ledger's id of it.
	Exchange string `json:"exchange"`
	Stored   string `json:"stored"`
}

type bookEmitted struct {
	TaskID  string `json:"task_id"`
	Type    string `json:"type"`
	Version int64  `json:"version"`
}

type bookRead struct {
	TaskID   string `json:"task_id"`
	Verdict  string `json:"verdict"`
	Recovery bool   `json:"recovery"`
	Exchange string `json:"exchange"`
}

type bookCounts struct {
	StatusReads               int `json:"status_reads"`
	StatusReadsDuringRecovery int `json:"status_reads_during_recovery"`
	CreateCalls               int `json:"create_calls"`
	CreateCallsDuringRecovery int `json:"create_calls_during_recovery"`
}

func wireName(x exchange) string { return fmt.Sprintf("wire/%03d-%s.json", x.Number, x.Kind) }

// write fills a book from the ledger and from what was played on it.
func (s *stage) write(ctx context.Context, all []played) (book, error) {
	b := book{Run: s.ring.String(), Source: s.fix.spec.Name, Crashes: []bookCrash{}, Reads: []bookRead{}}
	facts, err := s.driver.OperationFacts(ctx, store.Page{Limit: len(s.operations) + 1})
	if err != nil {
		return b, err
	}
	for _, f := range facts {
		b.addOperation(f)
	}
	if b.Events, err = s.arrivals(ctx, all); err != nil {
		return b, err
	}
	for _, p := range all {
		if p.step.Read != nil {
			b.Reads = append(b.Reads, bookRead{p.step.Read.Task, p.verdict, p.step.Recovery, wireName(p.exchange)})
		}
	}
	b.Counts = countWire(s.wire.exchanges())
	return b, nil
}

func (b *book) addOperation(f ledger.Facts) {
	op := f.Operation
	id := op.ID.Text(pawl.PrefixOperation)
	b.Operations = append(b.Operations, bookOperation{id, op.Task, op.State.String(), op.UpstreamState, op.Version, op.Reads})
	for _, t := range f.Tasks {
		b.Tasks = append(b.Tasks, bookTask{t.ID.Upstream, t.ID.Task, t.Operation.Text(pawl.PrefixOperation)})
	}
	slices.SortFunc(f.Outbound, func(x, y ledger.Event) int { return cmp.Compare(x.Version, y.Version) })
	for _, e := range f.Outbound {
		b.Emitted = append(b.Emitted, bookEmitted{op.Task, e.Type, e.Version})
	}
}

// countWire counts what reached the provider. All that follows the binding of
// the operations is recovery as far as creates are concerned.
func countWire(all []exchange) (c bookCounts) {
	for _, x := range all {
		switch x.Kind {
		case read:
			c.StatusReads++
			if x.Phase == phaseRecovery {
				c.StatusReadsDuringRecovery++
			}
		case create:
			c.CreateCalls++
			c.CreateCallsDuringRecovery++
		}
	}
	return c
}

// arrivals puts the events that were answered beside those that the ledger
// stored: each but a duplicate is the next stored one.
func (s *stage) arrivals(ctx context.Context, all []played) ([]bookEvent, error) {
	stored, err := s.driver.Events(ctx, store.EventFilter{Direction: ledger.Inbound, Source: s.fix.spec.Name}, store.Page{Limit: 2 * maxSteps})
	if err != nil {
		return nil, err
	}
	slices.Reverse(stored)
	events := []bookEvent{}
	first := make(map[string]bookEvent)
	for _, p := range all {
		if p.step.Event == nil || p.verdict == "" {
			continue
		}
		e := bookEvent{ID: p.step.Event.ID, Verdict: p.verdict, Reason: p.reason, Exchange: wireName(p.exchange)}
		if p.verdict == pawl.Duplicate.String() {
			was := first[answeredID(p.exchange)]
			e.ID, e.TaskID, e.Stored = was.ID, was.TaskID, was.Stored
			events = append(events, e)
			continue
		}
		if len(stored) == 0 {
			return events, fmt.Errorf("%s was answered with %s and is not stored", e.ID, e.Verdict)
		}
		row := stored[0]
		stored = stored[1:]
		e.ID, e.TaskID, e.Reason, e.Stored = row.ExternalID, row.Task, row.Reason, row.ID.Text(pawl.PrefixEvent)
		if row.Verdict.String() != e.Verdict {
			return events, fmt.Errorf("%s was answered with %s and is stored with %s", e.ID, e.Verdict, row.Verdict)
		}
		first[e.Stored] = e
		events = append(events, e)
	}
	if len(stored) > 0 {
		return events, fmt.Errorf("%d stored events were never answered", len(stored))
	}
	return events, nil
}

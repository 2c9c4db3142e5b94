package storetest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// play is a command of the suite's own, small enough to see what it does.
type play struct {
	ledger.Header
	keys   ledger.Keys
	decide func(*ledger.Draft) ledger.Outcome
}

func (p play) Head() ledger.Header                   { return p.Header }
func (p play) Keys(k *ledger.Keys)                   { k.Merge(p.keys) }
func (p play) Decide(d *ledger.Draft) ledger.Outcome { return p.decide(d) }

// plays are the suite's own kinds of commands over a few sources, tasks and
// operations. They meet each other in every way that matters to batches: later
// ones read what earlier ones left, refuse, panic and miss.
var plays = []Generator{
	{Name: "claim", Make: makeClaim, Lawless: true},
	{Name: "count", Make: makeCount, Lawless: true, Repeat: []string{"*"}},
	{Name: "move", Make: makeMove, Lawless: true, Repeat: []string{"*"}},
	{Name: "record", Make: makeRecord, Lawless: true, Repeat: []string{"*"}},
	{Name: "crash", Make: makeCrash, Lawless: true, Panics: true},
	{Name: "chase", Make: makeChase, Lawless: true, Repeat: []string{"*"}},
}

func drawSource(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, label)
}

func drawTask(t *rapid.T) ledger.TaskID {
	return ledger.TaskID{Upstream: "up", Task: fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "task"))}
}

func refused(fate ledger.Fate, reason string) ledger.Outcome {
	return ledger.Outcome{Fate: fate, Reason: reason, Err: &pawl.Error{Kind: pawl.Conflicting, Reason: reason}}
}

// makeClaim: a task is taken once, by a new operation.
func makeClaim(t *rapid.T, live Live) ledger.Command {
	task := drawTask(t)
	return play{live.Header, ledger.Keys{Tasks: []ledger.TaskID{task}}, func(d *ledger.Draft) ledger.Outcome {
		if _, taken := d.Tasks.Get(task); taken {
			return refused(ledger.Dropped, "taken")
		}
		op := operation(0, "t", d.Now)
		op.ID = d.NewID()
		d.Tasks.Put(task, ledger.Task{ID: task, Operation: op.ID, ClaimedAt: d.Now})
		d.Operations.Put(op.ID, op)
		return ledger.Outcome{Reason: "claimed", Value: op}
	}}
}

// makeCount: a counter rises.
func makeCount(t *rapid.T, live Live) ledger.Command {
	name := drawSource(t, "source")
	return play{live.Header, ledger.Keys{Sources: []string{name}}, func(d *ledger.Draft) ledger.Outcome {
		s, _ := d.Sources.Get(name)
		s.Name, s.Parked = name, s.Parked+1
		d.Sources.Put(name, s)
		return ledger.Outcome{Reason: "counted", Value: s.Parked}
	}}
}

// makeMove: one counter falls and another rises, or nothing happens; the
// first is written before the refusal.
func makeMove(t *rapid.T, live Live) ledger.Command {
	from, to := drawSource(t, "from"), drawSource(t, "to")
	return play{live.Header, ledger.Keys{Sources: []string{from, to}}, func(d *ledger.Draft) ledger.Outcome {
		a, _ := d.Sources.Get(from)
		a.Name, a.Parked = from, a.Parked-1
		d.Sources.Put(from, a)
		if a.Parked < 0 {
			return refused(ledger.Dropped, "too few")
		}
		b, _ := d.Sources.Get(to)
		b.Name, b.Parked = to, b.Parked+1
		d.Sources.Put(to, b)
		return ledger.Outcome{Reason: "moved", Value: [2]int64{a.Parked, b.Parked}}
	}}
}

// makeRecord: a refusal that keeps its record, new each time.
func makeRecord(_ *rapid.T, live Live) ledger.Command {
	queue := ledger.WorkQueueID(ledger.ReadQueue, "up", fmt.Sprint(int64(live.Now)))
	return play{live.Header, ledger.Keys{Sources: []string{"a"}, UnknownTypes: []ledger.UnknownTypesID{{Source: "a"}}, Queues: []ledger.QueueID{queue}}, func(d *ledger.Draft) ledger.Outcome {
		s, _ := d.Sources.Get("a")
		odd := ledger.UnknownTypes{ID: ledger.UnknownTypesID{Source: "a"}, Review: d.NewID()}
		d.UnknownTypes.Put(odd.ID, odd)
		q, _ := d.Queues.Get(queue)
		q.ID, q.NextDue, q.Sequence = queue, d.Now, q.Sequence+s.Parked
		d.Queues.Put(queue, q)
		return refused(ledger.Refused, "recorded")
	}}
}

// makeCrash: a change and a panic.
func makeCrash(t *rapid.T, live Live) ledger.Command {
	name := drawSource(t, "source")
	return play{live.Header, ledger.Keys{Sources: []string{name}}, func(d *ledger.Draft) ledger.Outcome {
		d.Sources.Put(name, ledger.Source{Name: name, Parked: -1})
		panic("crash")
	}}
}

// makeChase: it goes from a task to its operation. Where the task was claimed
// in the same batch the operation is known, and another one it touches is a
// miss; where it was not, a source is.
func makeChase(t *rapid.T, live Live) ledger.Command {
	task, name := drawTask(t), drawSource(t, "source")
	return play{live.Header, ledger.Keys{Tasks: []ledger.TaskID{task}}, func(d *ledger.Draft) ledger.Outcome {
		claim, ok := d.Tasks.Get(task)
		if !ok {
			return refused(ledger.Dropped, "nobody's")
		}
		s, _ := d.Sources.Get(name)
		op, _ := d.Operations.Get(claim.Operation)
		op.Version += s.Parked + 1
		op.UpdatedAt = d.Now
		d.Operations.Put(op.ID, op)
		return ledger.Outcome{Reason: "chased", Value: op.Version}
	}}
}

package ledger

import "github.com/pawlhq/pawl"

// Finding is what an entry of a provider's or sender's list comes to when it is
// held against the ledger (1-product E3).
type Finding uint8

// The findings about one entry.
const (
	// Matched: what the entry tells has arrived.
	Matched Finding = iota + 1
	// Missing: it has not.
	Missing
	// ForeignTask: no operation of ours has the task. It is never adopted (R25).
	ForeignTask
)

// String is the stable word.
func (f Finding) String() string {
	return [...]string{"", "matched", "missing", "foreign_task"}[f]
}

// Listed is an entry of the list of one source, as far as it is compared.
type Listed struct {
	Source string
	// Generic says that the source is no upstream: its events have no task.
	Generic     bool
	Task, Event string
	// State is what the entry tells; zero if it tells none that is known.
	State pawl.State
}

// Compared is what an entry comes to, and why in a stable word. The operation is
// zero where none has the task.
type Compared struct {
	Finding   Finding
	Reason    string
	Operation pawl.ID
}

func (l Listed) keyID() EventKeyID { return EventKeyID{l.Source, l.Task, l.Event} }

// Keys names the rows that the comparison needs.
func (l Listed) Keys(k *Keys) {
	if l.Event != "" {
		k.EventKeys = add(k.EventKeys, l.keyID())
	}
	if l.Task != "" {
		k.Tasks = add(k.Tasks, TaskID{l.Source, l.Task})
	}
}

// Compare holds the entry against the rows. It changes nothing.
//
// An event has arrived if it has taken its key. One that has not is not missing
// where a read has told what it would have: the provider's several tries of one
// event, or a list that is read again after its gaps were filled, find nothing
// (O-023).
func (l Listed) Compare(rows *Rows) Compared {
	_, arrived := rows.EventKeys.Get(l.keyID())
	arrived = arrived && l.Event != ""
	if l.Generic {
		if arrived {
			return Compared{Finding: Matched, Reason: "arrived"}
		}
		return Compared{Finding: Missing, Reason: "event"}
	}
	claim, known := rows.Tasks.Get(TaskID{l.Source, l.Task})
	op, ours := rows.Operations.Get(claim.Operation)
	switch {
	case !known:
		return Compared{Finding: ForeignTask, Reason: "unknown_task"}
	case claim.Operation.IsZero() || !ours:
		return Compared{Finding: ForeignTask, Reason: "parked"}
	case arrived:
		return Compared{Matched, "arrived", op.ID}
	case l.State == 0 && l.Event == "":
		return Compared{Matched, "known_task", op.ID}
	case l.State == 0:
		return Compared{Missing, "event", op.ID}
	case op.State == l.State, op.State.Terminal() && !l.State.Terminal():
		return Compared{Matched, "known_state", op.ID}
	case op.State.Terminal():
		return Compared{Missing, "other_end", op.ID}
	case l.State.Terminal():
		return Compared{Missing, "end", op.ID}
	case l.State.Rank() <= op.State.Rank():
		return Compared{Matched, "known_state", op.ID}
	}
	return Compared{Missing, "state", op.ID}
}

// MissedLine is the kind of a timeline's line that says that something of the
// provider's never arrived.
const MissedLine = "missed"

// ReadMissed makes a read of an operation due because the provider lists what
// never arrived. Nothing is made of the list itself: what the read answers is
// observed as ever.
type ReadMissed struct {
	ReadNow
	// Event is the provider's id of what is missing, empty if it names none, and
	// Reason that of [Compared].
	Event, Reason string
}

// Decide makes the read due and answers with the operation. One that is due or
// under way already has its reason.
func (c ReadMissed) Decide(d *Draft) Outcome {
	was, _ := d.Operations.Get(c.Operation)
	out := c.ReadNow.Decide(d)
	op, ok := out.Value.(Operation)
	if ok && out.Reason == "due" && op.DueAt != was.DueAt {
		d.note(op, History{Kind: MissedLine, Reason: c.Reason, Detail: c.Event, Version: op.Version})
	}
	return out
}

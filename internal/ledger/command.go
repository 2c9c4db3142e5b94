package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"runtime/debug"

	"github.com/pawlhq/pawl"
)

// Header comes with every command: the moment it is decided at, the seed of
// the ids it may make, and who asked.
type Header struct {
	// Now is left zero by callers: the committer sets it, a microsecond apart
	// for the commands of one batch. Tests that cut batches anew set it.
	Now pawl.Time
	// Seed makes ids unique: it is drawn at random by whoever makes the command.
	Seed [16]byte
	// Actor is who did it: a key's id, an operator, or empty for the system.
	Actor string
	// Why is what the actor says of it, for the audit; empty where nothing is said.
	Why string
}

// Command is one decision to be taken. Decide must be deterministic and free
// of side effects outside the draft; it may run more than once.
type Command interface {
	// Head is the command's header.
	Head() Header
	// Keys names the rows it needs.
	Keys(*Keys)
	// Decide reads and changes rows through the draft.
	Decide(*Draft) Outcome
}

// Alone is a command that can tell whether it most likely needs nothing but its
// operation and what is the operation's own. Such commands wait for no other of
// the tenant, on whatever node it is decided. One that told wrongly misses a row
// and is decided anew with all that follows.
type Alone interface {
	Command
	// Alone reports whether it does.
	Alone() bool
}

// Fate says what happens to a command's draft.
type Fate uint8

// The fates.
const (
	// Done: everything in the draft is applied.
	Done Fate = iota
	// Refused: the command is refused, and what its draft holds is the record
	// of that (audit, review, rejected event); it is applied.
	Refused
	// Dropped: the command is refused and leaves nothing.
	Dropped
)

// Outcome is what a command came to. Reason is a stable word that reaches the
// answer, the log, the metric and the screen.
type Outcome struct {
	Fate   Fate
	Reason string
	// Err says why a command was refused.
	Err *pawl.Error
	// Value is what the command answers with; its type is the command's own.
	Value any
}

func done(reason string, value any) Outcome { return Outcome{Reason: reason, Value: value} }

func dropped(kind pawl.Kind, reason, message string) Outcome {
	return Outcome{Fate: Dropped, Reason: reason, Err: &pawl.Error{Kind: kind, Reason: reason, Message: message}}
}

// Draft is a command's view of the batch's rows and the change it makes.
type Draft struct {
	Header
	IdempotencyKeys View[IdempotencyKeyID, IdempotencyKey]
	Correlations    View[CorrelationID, Correlation]
	EventKeys       View[EventKeyID, EventKey]
	Tasks           View[TaskID, Task]
	Sources         View[string, Source]
	UnknownTypes    View[UnknownTypesID, UnknownTypes]
	Tenants         View[string, Tenant]
	APIKeys         View[pawl.ID, APIKey]
	WrappingKeys    View[string, WrappingKey]
	AuditSeals      View[int64, AuditSeal]
	Replays         View[pawl.ID, Replay]
	Operations      View[pawl.ID, Operation]
	Events          View[pawl.ID, Event]
	Reviews         View[pawl.ID, Review]
	Accounts        View[pawl.ID, Account]
	Budgets         View[BudgetID, Budget]
	Endpoints       View[pawl.ID, Endpoint]
	Queues          View[QueueID, Queue]
	Deliveries      View[pawl.ID, Delivery]
	Artifacts       View[pawl.ID, Artifact]

	rows     *Rows
	ids      uint64
	payloads []Payload
	history  []History
	entries  []Entry
	attempts []Attempt
	audits   []Audit
	removed  Removals
}

// NewDraft is an empty draft over a batch's rows; it is reused for each
// command of the batch by [Draft.Run].
func NewDraft(rows *Rows) *Draft {
	d := &Draft{rows: rows}
	d.IdempotencyKeys = View[IdempotencyKeyID, IdempotencyKey]{table: &rows.IdempotencyKeys, miss: func(k IdempotencyKeyID) Keys { return Keys{IdempotencyKeys: []IdempotencyKeyID{k}} }}
	d.Correlations = View[CorrelationID, Correlation]{table: &rows.Correlations, miss: func(k CorrelationID) Keys { return Keys{Correlations: []CorrelationID{k}} }}
	d.EventKeys = View[EventKeyID, EventKey]{table: &rows.EventKeys, miss: func(k EventKeyID) Keys { return Keys{EventKeys: []EventKeyID{k}} }}
	d.Tasks = View[TaskID, Task]{table: &rows.Tasks, miss: func(k TaskID) Keys { return Keys{Tasks: []TaskID{k}} }}
	d.Sources = View[string, Source]{table: &rows.Sources, miss: func(k string) Keys { return Keys{Sources: []string{k}} }}
	d.UnknownTypes = View[UnknownTypesID, UnknownTypes]{table: &rows.UnknownTypes, miss: func(k UnknownTypesID) Keys { return Keys{UnknownTypes: []UnknownTypesID{k}} }}
	d.Tenants = View[string, Tenant]{table: &rows.Tenants, miss: func(k string) Keys { return Keys{Tenants: []string{k}} }}
	d.APIKeys = View[pawl.ID, APIKey]{table: &rows.APIKeys, miss: func(k pawl.ID) Keys { return Keys{APIKeys: []pawl.ID{k}} }}
	d.WrappingKeys = View[string, WrappingKey]{table: &rows.WrappingKeys, miss: func(k string) Keys { return Keys{WrappingKeys: []string{k}} }}
	d.AuditSeals = View[int64, AuditSeal]{table: &rows.AuditSeals, miss: func(k int64) Keys { return Keys{AuditSeals: []int64{k}} }}
	d.Replays = View[pawl.ID, Replay]{table: &rows.Replays, miss: func(k pawl.ID) Keys { return Keys{Replays: []pawl.ID{k}} }}
	d.Operations = View[pawl.ID, Operation]{table: &rows.Operations, miss: func(k pawl.ID) Keys { return Keys{Operations: []pawl.ID{k}} }}
	d.Events = View[pawl.ID, Event]{table: &rows.Events, miss: func(k pawl.ID) Keys { return Keys{Events: []pawl.ID{k}} }}
	d.Reviews = View[pawl.ID, Review]{table: &rows.Reviews, miss: func(k pawl.ID) Keys { return Keys{Reviews: []pawl.ID{k}} }}
	d.Accounts = View[pawl.ID, Account]{table: &rows.Accounts, miss: func(k pawl.ID) Keys { return Keys{Accounts: []pawl.ID{k}} }}
	d.Budgets = View[BudgetID, Budget]{table: &rows.Budgets, miss: func(k BudgetID) Keys { return Keys{Budgets: []BudgetID{k}} }}
	d.Endpoints = View[pawl.ID, Endpoint]{table: &rows.Endpoints, miss: func(k pawl.ID) Keys { return Keys{Endpoints: []pawl.ID{k}} }}
	d.Queues = View[QueueID, Queue]{table: &rows.Queues, miss: func(k QueueID) Keys { return Keys{Queues: []QueueID{k}} }}
	d.Deliveries = View[pawl.ID, Delivery]{table: &rows.Deliveries, miss: func(k pawl.ID) Keys { return Keys{Deliveries: []pawl.ID{k}} }}
	d.Artifacts = View[pawl.ID, Artifact]{table: &rows.Artifacts, miss: func(k pawl.ID) Keys { return Keys{Artifacts: []pawl.ID{k}} }}
	return d
}

// Run decides one command and applies or discards its change. A [Miss] is
// returned with nothing changed; any other panic of Decide is that command's
// error alone.
func (d *Draft) Run(c Command, now pawl.Time) (out Outcome, miss *Miss) {
	d.Header, d.ids = c.Head(), 0
	if d.Now == 0 {
		d.Now = now
	}
	defer func() {
		if p := recover(); p != nil {
			d.discard()
			if m, ok := p.(Miss); ok {
				out, miss = Outcome{}, &m
				return
			}
			out = dropped(pawl.Internal, "panic", "the command failed by a fault of ours")
			out.Value = Panic{Type: fmt.Sprintf("%T", p), Stack: string(debug.Stack())}
		}
	}()
	out = c.Decide(d)
	if out.Fate == Dropped {
		d.discard()
	} else {
		d.countBudgets()
		d.apply()
	}
	return out, nil
}

// Panic is the value of an outcome whose command panicked: what the log needs,
// without the panic's own value, which may hold anything.
type Panic struct{ Type, Stack string }

// NewID makes the next id of this command.
func (d *Draft) NewID() pawl.ID {
	var text [24]byte
	copy(text[:], d.Seed[:])
	binary.BigEndian.PutUint64(text[16:], d.ids)
	// The count comes first: ids of one command sort as they were made.
	count := min(d.ids, 0xff)
	d.ids++
	sum := sha256.Sum256(text[:])
	return pawl.NewID(d.Now, count<<54|binary.BigEndian.Uint64(sum[:])>>10)
}

func (d *Draft) apply() {
	d.IdempotencyKeys.apply()
	d.Correlations.apply()
	d.EventKeys.apply()
	d.Tasks.apply()
	d.Sources.apply()
	d.UnknownTypes.apply()
	d.Tenants.apply()
	d.APIKeys.apply()
	d.WrappingKeys.apply()
	d.AuditSeals.apply()
	d.Replays.apply()
	d.Operations.apply()
	d.Events.apply()
	d.Reviews.apply()
	d.Accounts.apply()
	d.Budgets.apply()
	d.Endpoints.apply()
	d.Queues.apply()
	d.Deliveries.apply()
	d.Artifacts.apply()
	d.rows.remove(d.removed)
	d.rows.Payloads = append(d.rows.Payloads, d.payloads...)
	d.rows.History = append(d.rows.History, d.history...)
	d.rows.Entries = append(d.rows.Entries, d.entries...)
	d.rows.Attempts = append(d.rows.Attempts, d.attempts...)
	d.rows.Audits = append(d.rows.Audits, d.audits...)
	d.clear()
}

func (d *Draft) discard() {
	d.IdempotencyKeys.discard()
	d.Correlations.discard()
	d.EventKeys.discard()
	d.Tasks.discard()
	d.Sources.discard()
	d.UnknownTypes.discard()
	d.Tenants.discard()
	d.APIKeys.discard()
	d.WrappingKeys.discard()
	d.AuditSeals.discard()
	d.Replays.discard()
	d.Operations.discard()
	d.Events.discard()
	d.Reviews.discard()
	d.Accounts.discard()
	d.Budgets.discard()
	d.Endpoints.discard()
	d.Queues.discard()
	d.Deliveries.discard()
	d.Artifacts.discard()
	d.clear()
}

func (d *Draft) clear() {
	d.payloads, d.history, d.entries = d.payloads[:0], d.history[:0], d.entries[:0]
	d.attempts, d.audits = d.attempts[:0], d.audits[:0]
	d.removed = Removals{}
}

func (d *Draft) keep(owner pawl.ID, kind PayloadKind, body string) {
	if body != "" {
		d.payloads = append(d.payloads, Payload{PayloadID{owner, kind}, body})
	}
}

// audit adds a line about what the actor does, with the reason that was given.
func (d *Draft) audit(tenant, action, subject, detail string) {
	switch {
	case detail == "":
		detail = d.Why
	case d.Why != "" && d.Why != detail:
		detail += ": " + d.Why
	}
	d.audits = append(d.audits, Audit{ID: d.NewID(), Tenant: tenant, At: d.Now, Actor: d.Actor, Action: action, Subject: subject, Detail: detail})
}

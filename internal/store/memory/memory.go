// Package memory is the store in maps, under one mutex and gone with the
// process: what the simulator runs on, and the second opinion that the other
// drivers are compared with. It is simple rather than fast: lists and windows
// look at every row.
package memory

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Step is a point of a transaction at which [Options.Fault] may fail it.
type Step uint8

// The steps.
const (
	// OnLoad and OnSave: before the transaction's Load and Save.
	OnLoad Step = iota + 1
	OnSave
	// BeforeCommit: the commit fails and takes no effect.
	BeforeCommit
	// AfterCommit: the commit takes effect and fails nevertheless.
	AfterCommit
	// OnCommitted: before a commit's outcome is looked up.
	OnCommitted
)

// Options are what a test or the simulator decides.
type Options struct {
	// Now is the clock of the transactions; nil is that of the machine.
	Now func() pawl.Time
	// Fault is asked at each step; the error it returns is that step's. Errors
	// of the commit are wrapped in [store.CommitError]. It is called by one
	// goroutine at a time.
	Fault func(Step) error
}

// Store is a [store.Driver] in memory.
type Store struct {
	opts Options

	mu      sync.Mutex
	closed  bool
	tables  tables
	batches map[pawl.ID]bool
}

var _ store.Driver = (*Store)(nil)

// tables are the rows; the logs are in the order of their saving.
type tables struct {
	idempotencyKeys map[ledger.IdempotencyKeyID]ledger.IdempotencyKey
	correlations    map[ledger.CorrelationID]ledger.Correlation
	eventKeys       map[ledger.EventKeyID]ledger.EventKey
	tasks           map[ledger.TaskID]ledger.Task
	sources         map[string]ledger.Source
	unknownTypes    map[ledger.UnknownTypesID]ledger.UnknownTypes
	tenants         map[string]ledger.Tenant
	apiKeys         map[pawl.ID]ledger.APIKey
	wrappingKeys    map[string]ledger.WrappingKey
	auditSeals      map[int64]ledger.AuditSeal
	replays         map[pawl.ID]ledger.Replay
	operations      map[pawl.ID]ledger.Operation
	events          map[pawl.ID]ledger.Event
	reviews         map[pawl.ID]ledger.Review
	accounts        map[pawl.ID]ledger.Account
	budgets         map[ledger.BudgetID]ledger.Budget
	endpoints       map[pawl.ID]ledger.Endpoint
	queues          map[ledger.QueueID]ledger.Queue
	deliveries      map[pawl.ID]ledger.Delivery
	artifacts       map[pawl.ID]ledger.Artifact

	payloads map[ledger.PayloadID]string
	history  []ledger.History
	entries  []ledger.Entry
	attempts []ledger.Attempt
	audits   []ledger.Audit
}

// New is an empty store.
func New(opts Options) *Store {
	if opts.Now == nil {
		opts.Now = func() pawl.Time { return pawl.TimeOf(time.Now()) }
	}
	if opts.Fault == nil {
		opts.Fault = func(Step) error { return nil }
	}
	return &Store{opts: opts, batches: make(map[pawl.ID]bool), tables: tables{
		idempotencyKeys: make(map[ledger.IdempotencyKeyID]ledger.IdempotencyKey),
		correlations:    make(map[ledger.CorrelationID]ledger.Correlation),
		eventKeys:       make(map[ledger.EventKeyID]ledger.EventKey),
		tasks:           make(map[ledger.TaskID]ledger.Task),
		sources:         make(map[string]ledger.Source),
		unknownTypes:    make(map[ledger.UnknownTypesID]ledger.UnknownTypes),
		tenants:         make(map[string]ledger.Tenant),
		apiKeys:         make(map[pawl.ID]ledger.APIKey),
		wrappingKeys:    make(map[string]ledger.WrappingKey),
		auditSeals:      make(map[int64]ledger.AuditSeal),
		replays:         make(map[pawl.ID]ledger.Replay),
		operations:      make(map[pawl.ID]ledger.Operation),
		events:          make(map[pawl.ID]ledger.Event),
		reviews:         make(map[pawl.ID]ledger.Review),
		accounts:        make(map[pawl.ID]ledger.Account),
		budgets:         make(map[ledger.BudgetID]ledger.Budget),
		endpoints:       make(map[pawl.ID]ledger.Endpoint),
		queues:          make(map[ledger.QueueID]ledger.Queue),
		deliveries:      make(map[pawl.ID]ledger.Delivery),
		artifacts:       make(map[pawl.ID]ledger.Artifact),
		payloads:        make(map[ledger.PayloadID]string),
	}}
}

// Close makes every later use return [store.ErrClosed].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Committed reports whether the batch's transaction took effect.
func (s *Store) Committed(ctx context.Context, batch pawl.ID) (bool, error) {
	var took bool
	var fault error
	err := s.read(ctx, func(*tables) {
		if fault = s.opts.Fault(OnCommitted); fault == nil {
			took = s.batches[batch]
		}
	})
	return took, errors.Join(err, fault)
}

// read runs fn on the rows as they are between two transactions.
func (s *Store) read(ctx context.Context, fn func(*tables)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	fn(&s.tables)
	return nil
}

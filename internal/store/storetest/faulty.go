package storetest

import (
	"context"
	"errors"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// fault is what goes wrong once in a batch.
type fault int

const (
	noFault fault = iota
	// failLoad and failSave: a database error before the decisions, and after
	// they were written.
	failLoad
	failSave
	// loseCommit: the commit fails and took no effect.
	loseCommit
	// hideCommit: the commit fails and took effect.
	hideCommit
	lastFault = hideCommit
)

var errInjected = errors.New("storetest: an injected fault")

// faulty is a driver that fails once, at the next fault.
type faulty struct {
	store.Driver
	next fault
}

// strikes reports whether the fault is due, and uses it up.
func (d *faulty) strikes(f fault) bool {
	if d.next != f {
		return false
	}
	d.next = noFault
	return true
}

// Update is the driver's own with the fault in it.
func (d *faulty) Update(ctx context.Context, batch pawl.ID, fn func(store.Tx) error) error {
	err := d.Driver.Update(ctx, batch, func(tx store.Tx) error {
		if err := fn(faultyTx{tx, d}); err != nil {
			return err
		}
		if d.strikes(loseCommit) {
			return &store.CommitError{Err: errInjected}
		}
		return nil
	})
	if err == nil && d.strikes(hideCommit) {
		return &store.CommitError{Err: errInjected}
	}
	return err
}

type faultyTx struct {
	store.Tx
	driver *faulty
}

func (t faultyTx) Load(k *ledger.Keys, r *ledger.Rows) error {
	if t.driver.strikes(failLoad) {
		return errInjected
	}
	return t.Tx.Load(k, r)
}

func (t faultyTx) Save(r *ledger.Rows) error {
	if err := t.Tx.Save(r); err != nil {
		return err
	}
	if t.driver.strikes(failSave) {
		return errInjected
	}
	return nil
}

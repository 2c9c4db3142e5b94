package storetest

import (
	"context"
	"reflect"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
)

// Books hold what a driver must hold: the rows of every commit that it
// acknowledged, kept apart from it in memory. A test of crashes compares the
// two afterwards. They are used by one goroutine at a time.
type Books struct {
	reference *memory.Store
	known     known
	commits   int
}

// NewBooks are the books of an empty ledger.
func NewBooks() *Books { return &Books{reference: memory.New(memory.Options{})} }

// Commits is how many were booked.
func (b *Books) Commits() int { return b.commits }

// Book takes down the rows of one commit. It fails where a changed row had not
// been loaded as the books have it: the driver had lost or invented something.
func (b *Books) Book(ctx context.Context, batch pawl.ID, rows *ledger.Rows) error {
	b.commits++
	b.known.learn(rows)
	return b.reference.Update(ctx, batch, func(tx store.Tx) error { return tx.Save(rows) })
}

// Differ compares every row of a driver with the books and says how the first
// table differs that does; an empty text means that none does.
func (b *Books) Differ(ctx context.Context, d store.Driver) (string, error) {
	want, err := dumped(ctx, b.reference, &b.known)
	if err != nil {
		return "", err
	}
	got, err := dumped(ctx, d, &b.known)
	if err != nil {
		return "", err
	}
	tables := reflect.ValueOf(want).Elem()
	for i := range tables.NumField() {
		w, g := tables.Field(i).Interface(), reflect.ValueOf(got).Elem().Field(i).Interface()
		// Equal rows are the rule, and found much faster so.
		if reflect.DeepEqual(w, g) {
			continue
		}
		if diff := cmp.Diff(w, g, cmpopts.EquateEmpty()); diff != "" {
			return tables.Type().Field(i).Name + " (-booked +found):\n" + diff, nil
		}
	}
	return "", nil
}

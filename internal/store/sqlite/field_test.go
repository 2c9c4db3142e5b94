package sqlite

import (
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Times are whole microseconds in an integer column: what is due earlier is
// claimed earlier, however it would be written (O-118).
func TestO118DueTimesInTheirOrder(t *testing.T) {
	d := openTest(t, Options{})
	s := newShop(t, d)
	noon := time.Date(2026, 10, 14, 12, 0, 0, 0, time.UTC)
	moments := []string{".7", ".735", ".5", ".500001"}
	dues := make(map[string]string)
	for _, text := range moments {
		at, err := time.Parse("15:04:05.999999999", "12:00:00"+text)
		if err != nil {
			t.Fatal(err)
		}
		s.now = pawl.TimeOf(noon.Add(time.Duration(at.Nanosecond()) - time.Second)) // head adds the second
		op := s.submit("m"+text, 0, "")
		dues[op.ID.Text(pawl.PrefixOperation)] = text
	}
	s.now = pawl.TimeOf(noon.Add(time.Second))
	leases := s.do(ledger.LeaseWork{Header: s.head(), Queue: ledger.WorkQueueID(ledger.SubmitQueue, s.up.Name, shopTenant), Limit: 9, Up: s.up})
	var got []string
	for _, l := range leases.Value.([]ledger.Lease) {
		got = append(got, dues[l.Operation.ID.Text(pawl.PrefixOperation)])
	}
	if want := []string{".5", ".500001", ".7", ".735"}; !slices.Equal(got, want) {
		t.Errorf("claimed in the order %v, want %v", got, want)
	}
}

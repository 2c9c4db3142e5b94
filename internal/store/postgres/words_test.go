package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
)

// Each stored form is what words.go says: the escape and the byte in
// hexadecimal digits.
func TestWords(t *testing.T) {
	for text, stored := range map[string]string{
		"": "", "plain ü €": "plain ü €", "a\x00b": "a\x1b00b", "\x1b": "\x1b1b", "\x1b00": "\x1b1b00", "\xff": "\x1bff",
		"\xe2\x82": "\x1be2\x1b82", "\ufffd": "\ufffd",
	} {
		if got := toText(text); got != stored {
			t.Errorf("%q is stored as %q, want %q", text, got, stored)
		}
		if got := fromText([]byte(stored)); got != text {
			t.Errorf("%q is read as %q, want %q", stored, got, text)
		}
	}
	// What nobody wrote is read as it is.
	for _, stored := range []string{"\x1b", "\x1b0", "\x1bzz", "a\x1bg0"} {
		if got := fromText([]byte(stored)); got != stored {
			t.Errorf("%q is read as %q", stored, got)
		}
	}
}

func FuzzWords(f *testing.F) {
	for _, s := range []string{"", "a", "\x00", "\x1b", "\x1b00", "\xff\x1b", "€\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		stored := toText(s)
		if !utf8.ValidString(stored) || strings.ContainsRune(stored, 0) {
			t.Errorf("%q is stored as %q, which PostgreSQL refuses", s, stored)
		}
		if got := fromText([]byte(stored)); got != s {
			t.Errorf("%q came back as %q", s, got)
		}
	})
}

// TestO043NULInText: a zero in a provider's words, in a key and in a body
// neither fails the event nor is lost.
func TestO043NULInText(t *testing.T) {
	t.Parallel()
	d := openTest(t, pgtest.Database(t))
	leases := prepare(t, d, 1)
	b := store.NewBatcher(d, store.Options{})
	const odd = "bad\x00word\xff"
	run(t, b, ledger.RecordCreate{
		Header: store.NewHeader(""), Up: upstream, Operation: leases[0].Operation.ID, Fence: leases[0].Fence,
		Outcome: ledger.CreateAccepted, Task: "t\x00ask", Status: 200,
	})
	e := callback(1)
	e.Event, e.Body, e.Obs.Task, e.Obs.Result = "e\x00", "{\"message\":\"a\\u0000b\"}\x00\xff", "t\x00ask", ""
	e.Obs.State, e.Obs.Word, e.Obs.ErrorMessage, e.Obs.ErrorCode = pawl.Failed, odd, odd, pawl.FailureCode("upstream_failed")
	got := run(t, b, e)[0].Value.(ledger.Received)
	if got.Verdict != pawl.Applied {
		t.Fatalf("%+v", got)
	}
	if again := run(t, b, e)[0].Value.(ledger.Received); again.Verdict != pawl.Duplicate {
		t.Errorf("the repeat: %v", again.Verdict)
	}
	ops, err := d.Operations(t.Context(), store.OperationFilter{Task: "t\x00ask"}, store.Page{Limit: 9})
	if err != nil || len(ops) != 1 || ops[0].ErrorMessage != odd || ops[0].State != pawl.Failed {
		t.Errorf("%v, %+v", err, ops)
	}
	id := ledger.PayloadID{Owner: got.Event, Kind: ledger.BodyPayload}
	bodies, err := d.Payloads(t.Context(), id)
	if err != nil || bodies[id] != e.Body {
		t.Errorf("the body came back as %q, %v", bodies[id], err)
	}
	check(t, d)
}

// TestO127TimesAreCutToMicroseconds: a time is a whole number of microseconds
// before it is used, and PostgreSQL keeps exactly that, whatever the digits
// behind it were; 10,000 of them, and those that are no times.
func TestO127TimesAreCutToMicroseconds(t *testing.T) {
	t.Parallel()
	d := openTest(t, pgtest.Database(t))
	base := testTime.Std()
	want := map[string]pawl.Time{"unset": 0, "never": pawl.Never, "before": -1, "last": pawl.TimeOf(base.AddDate(7000, 0, 0))}
	for n := range 10_000 {
		nanoseconds := []int{0, 1, 499, 500, 501, 999}[n%6]
		at := base.Add(time.Duration(n)*1_000_007*time.Microsecond + time.Duration(nanoseconds))
		name := fmt.Sprint("n", n)
		// Cut, not rounded.
		if cut := pawl.TimeOf(at); cut.Std().Nanosecond() != at.Nanosecond()/1000*1000 {
			t.Fatalf("%v became %v", at, cut.Std())
		}
		want[name] = pawl.TimeOf(at)
	}
	write := func(part map[string]pawl.Time) {
		t.Helper()
		err := d.Update(t.Context(), store.NewID(), func(tx store.Tx) error {
			rows := new(ledger.Rows)
			var keys ledger.Keys
			for name := range part {
				keys.Tenants = append(keys.Tenants, name)
			}
			if err := tx.Load(&keys, rows); err != nil {
				return err
			}
			ledger.NewDraft(rows).Run(told(func(d *ledger.Draft) {
				for name, at := range part {
					if row, ok := d.Tenants.Get(name); ok && row.CreatedAt != at {
						t.Errorf("%s: %d was kept as %d", name, at, row.CreatedAt)
					}
					d.Tenants.Put(name, ledger.Tenant{Name: name, CreatedAt: at})
				}
			}), 1)
			return tx.Save(rows)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		// As many at once as a batch holds, about.
		for names := range slices.Chunk(slices.Sorted(maps.Keys(want)), 500) {
			part := make(map[string]pawl.Time)
			for _, name := range names {
				part[name] = want[name]
			}
			write(part)
		}
	}
}

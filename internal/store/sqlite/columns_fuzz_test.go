package sqlite

import (
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// FuzzColumns: every value comes back from the file as it was given, whatever
// bytes a sender put into it.
func FuzzColumns(f *testing.F) {
	for _, seed := range []string{"", "text", "a\x00b", "\xff\xfe", "\ufeff", "'; --", "1", "0x00", "é\u2028", "null"} {
		f.Add(seed, []byte(seed), int64(len(seed)), seed == "")
	}
	f.Add("", []byte{}, int64(-1<<63), true)
	d, err := Open(f.Context(), f.TempDir(), Options{Readers: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = d.Close() })
	if err := d.write.db.Exec("PRAGMA synchronous = OFF"); err != nil {
		f.Fatal(err)
	}
	n := 0
	f.Fuzz(func(t *testing.T, text string, octets []byte, number int64, flag bool) {
		n++
		want := ledger.Event{
			ID: testID(n), Direction: ledger.Inbound, Tenant: text, Type: text, Source: text, Task: text, ExternalID: text, Word: text,
			Verdict: pawl.Applied, Reason: text, Headers: text, Version: number, At: pawl.Time(number), Parked: flag, Snapshot: text,
		}
		copy(want.Digest[:], octets)
		copy(want.Operation[:], octets)
		payload := ledger.Payload{ID: ledger.PayloadID{Owner: want.ID, Kind: ledger.InputPayload}, Body: string(octets)}
		err := d.Update(t.Context(), want.ID, func(tx store.Tx) error {
			rows := new(ledger.Rows)
			ledger.NewDraft(rows).Run(changeCommand(func(d *ledger.Draft) { d.Events.Put(want.ID, want) }), 1)
			rows.Payloads = append(rows.Payloads, payload)
			return tx.Save(rows)
		})
		if err != nil {
			t.Fatal(err)
		}
		rows := new(ledger.Rows)
		if err := d.Load(t.Context(), &ledger.Keys{Events: []pawl.ID{want.ID}}, rows); err != nil {
			t.Fatal(err)
		}
		if got, ok := rows.Events.Get(want.ID); !ok || got != want {
			t.Fatalf("%+v came back as %+v", want, got)
		}
		bodies, err := d.Payloads(t.Context(), payload.ID)
		if err != nil || bodies[payload.ID] != payload.Body {
			t.Fatalf("%q came back as %q, %v", payload.Body, bodies[payload.ID], err)
		}
	})
}

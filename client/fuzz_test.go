package client_test

import (
	"encoding/json"
	"math/big"
	"reflect"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/client"
)

// FuzzParseEvent holds that what is taken for an event is one: it is JSON, and
// what was read of it reads the same when it is written again.
func FuzzParseEvent(f *testing.F) {
	f.Add([]byte(`{"id":"evt_1","type":"operation.succeeded","timestamp":"2026-01-02T00:00:00.000000Z","sequence":17,"data":{"id":"op_1","state":"succeeded","cost":{"amount":"0.120000000","currency":"USD","settled":true}}}`))
	f.Add([]byte(`{"id":"order-7","type":"order.paid","test":true,"sequence":1,"data":[1.0]}`))
	f.Add([]byte(`{"id":"a","type":"b","timestamp":"yesterday"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := client.ParseEvent(body)
		if err != nil {
			return
		}
		if !json.Valid(body) || e.ID == "" || e.Type == "" {
			t.Fatalf("%q is no event", body)
		}
		if e.Data == nil {
			e.Data = json.RawMessage("null") // Absent or null.
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		again, err := client.ParseEvent(text)
		if err != nil {
			t.Fatal(err)
		}
		first, err := json.Marshal(again)
		if err != nil || string(first) != string(text) {
			t.Fatalf("%s became %s", text, first)
		}
		if op, ok := e.Operation(); ok && op.State.String() == "" && op.State != 0 {
			t.Fatal("a state without a word")
		}
	})
}

// FuzzMoney holds amounts against rationals: what is read is exact, in each of the
// forms that the API writes money in.
func FuzzMoney(f *testing.F) {
	for _, text := range []string{"0.120000000", "-9223372036.854775807", "1e3", "0.1234567891", "", "0x1", "1_0", " 1", "１"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(quoted, &text); err != nil {
			t.Fatal(err)
		}
		var m client.Money
		errMoney := json.Unmarshal([]byte(`{"amount":`+string(quoted)+`,"currency":"USD"}`), &m)
		var c client.Cost
		errCost := json.Unmarshal([]byte(`{"amount":`+string(quoted)+`,"currency":"USD","settled":true}`), &c)
		var a client.Account
		errAccount := json.Unmarshal([]byte(`{"balance":`+string(quoted)+`,"reserved":"0","available":"0"}`), &a)
		if (errMoney == nil) != (errCost == nil) || errMoney == nil != (errAccount == nil) {
			t.Fatalf("%q: %v, %v, %v", text, errMoney, errCost, errAccount)
		}
		if errMoney != nil {
			return
		}
		want, ok := new(big.Rat).SetString(text)
		got := new(big.Rat).SetFrac64(int64(m.Amount), pawl.AmountScale)
		if !ok || want.Cmp(got) != 0 || c.Amount != m.Amount || a.Balance != m.Amount || !c.Settled {
			t.Fatalf("%q is read as %s, %s and %s", text, got, c.Amount, a.Balance)
		}
		for _, v := range []any{m, c} {
			written, err := json.Marshal(v)
			again := reflect.New(reflect.TypeOf(v))
			if err != nil || json.Unmarshal(written, again.Interface()) != nil || again.Elem().Interface() != v {
				t.Fatalf("%s is not %v", written, v)
			}
		}
	})
}

package sqlite

import (
	"crypto/sha256"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// leaves are the fields of a row that hold no further fields.
func leaves(v reflect.Value) (out []reflect.Value) {
	if v.Kind() != reflect.Struct {
		return []reflect.Value{v}
	}
	for i := range v.NumField() {
		out = append(out, leaves(v.Field(i))...)
	}
	return out
}

// distinct sets a field to a value that no other number gives.
func distinct(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", n))
	case reflect.Bool:
		v.SetBool(n%2 == 1)
	case reflect.Array:
		sum := sha256.Sum256([]byte{byte(n), byte(n >> 8)})
		reflect.Copy(v, reflect.ValueOf(sum[:v.Len()]))
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(uint64(n))
	default:
		v.SetInt(int64(n))
	}
}

func highest(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("a\x00b\xff\xfe'\"%_ü")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(0xff)
		}
	case reflect.Uint8:
		v.SetUint(math.MaxUint8)
	case reflect.Uint32:
		v.SetUint(math.MaxUint32)
	case reflect.Int32:
		v.SetInt(math.MaxInt32)
	default:
		v.SetInt(math.MaxInt64)
	}
}

func lowest(v reflect.Value) {
	switch v.Kind() {
	case reflect.Int32:
		v.SetInt(math.MinInt32)
	case reflect.Int64:
		v.SetInt(math.MinInt64)
	default:
		v.SetZero()
	}
}

// written sets every field of a new row.
func written[R any](set func(reflect.Value, int)) (row R) {
	for i, v := range leaves(reflect.ValueOf(&row).Elem()) {
		set(v, i+1)
	}
	return row
}

func TestRoundTripOfTables(t *testing.T) {
	tableTrip(t, &idempotencyKeys, 2)
	tableTrip(t, &eventKeys, 3)
	tableTrip(t, &tasks, 2)
	tableTrip(t, &sources, 1)
	tableTrip(t, &tenants, 1)
	tableTrip(t, &apiKeys, 1)
	tableTrip(t, &operations, 1)
	tableTrip(t, &events, 1)
	tableTrip(t, &reviews, 1)
	tableTrip(t, &accounts, 1)
	tableTrip(t, &endpoints, 1)
	tableTrip(t, &queues, 4)
	tableTrip(t, &deliveries, 1)
}

// tableTrip stores rows with all fields set, then changes one field after the
// other: a column that is missing or mixed up with another shows.
func tableTrip[K, R comparable](t *testing.T, tab *table[K, R], keys int) {
	t.Run(tab.name, func(t *testing.T) {
		c := openTest(t, Options{}).write
		for name, row := range samples[R]() {
			if err := add(c, &tab.relation, &row); err != nil {
				t.Fatal(name, err)
			}
			expectRow(t, c, tab, name, row)
			if name != "distinct" {
				continue
			}
			for i := keys; i < len(leaves(reflect.ValueOf(&row).Elem())); i++ {
				now := row
				distinct(leaves(reflect.ValueOf(&now).Elem())[i], i+100)
				if now == row {
					distinct(leaves(reflect.ValueOf(&now).Elem())[i], i+101)
				}
				if err := change(c, tab, ledger.Change[R]{Was: row, Now: now, Existed: true}); err != nil {
					t.Fatal(name, i, err)
				}
				expectRow(t, c, tab, fmt.Sprint(name, " changed in field ", i), now)
				row = now
			}
		}
	})
}

func samples[R any]() map[string]R {
	return map[string]R{
		"distinct": written[R](distinct),
		"highest":  written[R](func(v reflect.Value, _ int) { highest(v) }),
		"lowest":   written[R](func(v reflect.Value, _ int) { lowest(v) }),
	}
}

func expectRow[K, R comparable](t *testing.T, c *conn, tab *table[K, R], what string, want R) {
	t.Helper()
	got, err := query(c, &tab.relation, tab.where, append([]value(nil), write(c, &tab.relation, &want, tab.keys)...)...)
	if err != nil {
		t.Fatal(what, err)
	}
	if len(got) != 1 || got[0] != want {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func TestRoundTripOfLogs(t *testing.T) {
	logTrip(t, &payloads)
	logTrip(t, &history)
	logTrip(t, &entries)
	logTrip(t, &attempts)
	logTrip(t, &audits)
}

func logTrip[R comparable](t *testing.T, rel *relation[R]) {
	t.Run(rel.name, func(t *testing.T) {
		c := openTest(t, Options{}).write
		want := samples[R]()
		for name, row := range want {
			if err := add(c, rel, &row); err != nil {
				t.Fatal(name, err)
			}
		}
		got, err := query(c, rel, "")
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d rows, error %v", len(got), err)
		}
		for _, row := range got {
			for name, w := range want {
				if row == w {
					delete(want, name)
				}
			}
		}
		if len(want) != 0 {
			t.Errorf("not found again: %+v\ngot %+v", want, got)
		}
	})
}

func TestChangeOfVanishedRow(t *testing.T) {
	c := openTest(t, Options{}).write
	ch := ledger.Change[ledger.Source]{Was: ledger.Source{Name: "a"}, Now: ledger.Source{Name: "a", Parked: 1}, Existed: true}
	if err := change(c, &sources, ch); err == nil {
		t.Error("the change of a row that is not there was taken for done")
	}
}

func TestZeroIDIsNull(t *testing.T) {
	c := openTest(t, Options{}).write
	if err := add(c, &events.relation, &ledger.Event{ID: testID(1)}); err != nil {
		t.Fatal(err)
	}
	rows, err := query(c, &events.relation, "WHERE operation IS NULL AND digest IS NULL AND review IS NULL")
	if err != nil || len(rows) != 1 || rows[0].Operation != (pawl.ID{}) {
		t.Errorf("rows %v, error %v", rows, err)
	}
}

// Two changes that set different columns are never the same statement.
func TestColumnSets(t *testing.T) {
	seen := make(map[columnSet]int)
	for i := range maxColumns {
		var s columnSet
		s.add(i)
		if was, ok := seen[s]; ok {
			t.Errorf("columns %d and %d are one set", was, i)
		}
		seen[s] = i
		for j := range maxColumns {
			if s.has(j) != (i == j) {
				t.Errorf("the set of %d has %d: %v", i, j, s.has(j))
			}
		}
	}
}

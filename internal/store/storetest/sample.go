package storetest

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// epoch is when the samples happen.
const epoch pawl.Time = 1_760_000_000_000_000

// at is n seconds after the epoch.
func at(n int) pawl.Time { return epoch.Add(time.Duration(n) * time.Second) }

// id is the n-th id: a higher n is a later one.
func id(n int) pawl.ID { return pawl.NewID(at(n), uint64(n)) }

// sample is a row with every field set to something that differs from field to
// field and from n to n.
func sample[R any](n int) R {
	var row R
	fill(reflect.ValueOf(&row).Elem(), "", n*100)
	return row
}

func fill(v reflect.Value, name string, n int) {
	switch v.Interface().(type) {
	case pawl.ID:
		v.Set(reflect.ValueOf(pawl.NewID(at(n), uint64(n))))
		return
	case pawl.Time:
		v.SetInt(int64(at(n)) + int64(n))
		return
	case time.Duration:
		v.SetInt(int64(time.Duration(n+1) * time.Millisecond))
		return
	case ledger.Bucket:
		v.SetString(string([]ledger.Bucket{ledger.Funding, ledger.Available, ledger.Reserving, ledger.Spent}[n%4]))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Name, n+i)
		}
	case reflect.Array:
		sum := sha256.Sum256(fmt.Append(nil, n))
		reflect.Copy(v, reflect.ValueOf(sum[:v.Len()]))
	case reflect.String:
		v.SetString(sampleText(name, n))
	case reflect.Int64:
		v.SetInt(1<<62 + int64(n))
	case reflect.Int32:
		v.SetInt(1<<30 + int64(n))
	case reflect.Uint32:
		v.SetUint(1<<17 + uint64(n))
	case reflect.Uint8:
		// Every enumeration has at least two values.
		v.SetUint(1 + uint64(n/100%2))
	case reflect.Bool:
		v.SetBool(n/100%2 == 0)
	default:
		panic("storetest: a row has a field of a kind that it should not have: " + v.Kind().String())
	}
}

func sampleText(name string, n int) string {
	switch name {
	case "Currency":
		return []string{"USD", "EUR"}[n/100%2]
	case "Snapshot", "Policy":
		// Kept byte for byte: order, blanks and repeated members are not ours.
		return fmt.Sprintf(`{"b": %d,  "a":1e2, "a":"ü\u00fc"}`, n)
	case "For":
		return "operation"
	}
	return fmt.Sprintf("%s %d: ü€😀 '\"\\%%\t%s", name, n, "{}$1?")
}

// sampleQueue has an id of the kind that its kind allows.
func sampleQueue(n int) ledger.Queue {
	q := sample[ledger.Queue](n)
	q.ID = ledger.WorkQueueID(ledger.SubmitQueue, fmt.Sprint("up", n), fmt.Sprint("tenant", n))
	if n%2 == 1 {
		q.ID = ledger.DeliveryQueueID(id(n))
	}
	return q
}

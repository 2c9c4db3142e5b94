package ledger_test

import (
	"reflect"
	"testing"

	"github.com/pawlhq/pawl/internal/ledger"
)

// A kind of keys that is forgotten in one of these would be lost on the way
// from a miss to the next try.
func TestKeysOfEveryKindAreMergedAndCounted(t *testing.T) {
	kinds := reflect.TypeFor[ledger.Keys]()
	for i := range kinds.NumField() {
		var one, all ledger.Keys
		field := reflect.ValueOf(&one).Elem().Field(i)
		if field.Kind() != reflect.Slice {
			continue // TestAloneOnlyTogether
		}
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		all.Merge(one)
		all.Merge(one)
		if !reflect.DeepEqual(all, one) {
			t.Errorf("Merge of %s gives %+v", kinds.Field(i).Name, all)
		}
		if n := one.Len(); n != 1 {
			t.Errorf("Len of one of %s is %d", kinds.Field(i).Name, n)
		}
	}
}

// One command that needs all that follows is enough.
func TestAloneOnlyTogether(t *testing.T) {
	for _, tt := range []struct{ a, b, want bool }{{true, true, true}, {true, false, false}, {false, true, false}, {false, false, false}} {
		all := ledger.Keys{Alone: tt.a}
		all.Merge(ledger.Keys{Alone: tt.b})
		if all.Alone != tt.want {
			t.Errorf("%v and %v give %v", tt.a, tt.b, all.Alone)
		}
	}
}

package exercise

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// FuzzKeyring: a run's number is 32 hexadecimal digits, and is written back.
func FuzzKeyring(f *testing.F) {
	for _, seed := range []string{newKeyring().String(), strings.Repeat("A", 32), strings.Repeat("0", 31), "", strings.Repeat("0", 34), strings.Repeat("g", 32), " " + strings.Repeat("0", 31)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := parseKeyring(text)
		if err == nil && k.String() != strings.ToLower(text) || err != nil && k != (keyring{}) {
			t.Fatalf("%q is read as %v, %v", text, k, err)
		}
	})
}

// FuzzFolder: a file of receipts is one JSON text whose members are all known,
// and it is read whole.
func FuzzFolder(f *testing.F) {
	for _, seed := range []string{`{}`, `{} {}`, `{"run":"x","unknown":1}`, `{"run":"a"}x`, `null`, ``, `{"operations":[{}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got, want book
		if err := (folder{fileLedger: text}).decode(fileLedger, &got); err != nil {
			return
		}
		if err := json.Unmarshal(text, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is read as %+v; package json: %+v, %v", text, got, want, err)
		}
	})
}

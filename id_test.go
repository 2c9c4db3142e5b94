package pawl_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"go.jetify.com/typeid"
)

// TestIDText compares the text form with the TypeID library both ways.
func TestIDText(t *testing.T) {
	for _, prefix := range []string{pawl.PrefixOperation, pawl.PrefixEvent, pawl.PrefixDelivery, pawl.PrefixAccount} {
		for range 200 {
			theirs, err := typeid.WithPrefix(prefix)
			if err != nil {
				t.Fatal(err)
			}
			id, err := pawl.ParseID(prefix, theirs.String())
			if err != nil {
				t.Fatalf("%s: %v", theirs, err)
			}
			if got := id.Text(prefix); got != theirs.String() {
				t.Errorf("text %s, want %s", got, theirs)
			}
			if [16]byte(id) != [16]byte(theirs.UUIDBytes()) {
				t.Errorf("bytes %x, want %x", id, theirs.UUIDBytes())
			}
		}
	}
	if got := (pawl.ID{}).Text("op"); got != "" {
		t.Errorf("the zero id is %q", got)
	}
}

// FuzzParseID: what is accepted is what the TypeID library accepts, and is
// written back as it was read.
func FuzzParseID(f *testing.F) {
	f.Add("op_01h455vb4pex5vsknk084sn02q")
	f.Add("op_7zzzzzzzzzzzzzzzzzzzzzzzzz")
	f.Add("op_80000000000000000000000000")
	f.Add("op_01H455VB4PEX5VSKNK084SN02Q")
	f.Add("op_")
	f.Add("evt_01h455vb4pex5vsknk084sn02q")
	f.Add("op_01h455vb4pex5vsknk084sn02i")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := pawl.ParseID("op", text)
		theirs, theirErr := typeid.FromString(text)
		wanted := theirErr == nil && theirs.Prefix() == "op"
		if (err == nil) != wanted {
			t.Fatalf("%q: our error %v, theirs %v", text, err, theirErr)
		}
		if err == nil && !id.IsZero() && id.Text("op") != text {
			t.Errorf("%q is written back as %q", text, id.Text("op"))
		}
	})
}

// TestNewID is the layout of RFC 9562 §5.7 with microseconds in rand_a, and
// the order of ids.
func TestNewID(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 34, 56, 789_123_000, time.UTC)
	id := pawl.NewID(pawl.TimeOf(at), ^uint64(0))
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	if ms != at.UnixMilli() {
		t.Errorf("milliseconds %d, want %d", ms, at.UnixMilli())
	}
	if id[6]>>4 != 7 {
		t.Errorf("version %d", id[6]>>4)
	}
	if id[8]>>6 != 0b10 {
		t.Errorf("variant %b", id[8]>>6)
	}
	// 123 µs of the millisecond, in the 12 bits after the version.
	if frac := int(id[6]&0x0f)<<8 | int(id[7]); frac != 123<<2 {
		t.Errorf("fraction %d, want %d", frac, 123<<2)
	}
	base := pawl.TimeOf(at)
	var ids []pawl.ID
	for us := range pawl.Time(3000) {
		ids = append(ids, pawl.NewID(base+us, uint64(us)*0x9e3779b97f4a7c15))
	}
	if !slices.IsSortedFunc(ids, pawl.ID.Compare) {
		t.Error("ids of later microseconds do not sort later")
	}
	if !slices.IsSortedFunc(ids, func(a, b pawl.ID) int { return compareText(a.Suffix(), b.Suffix()) }) {
		t.Error("text does not sort as bytes do")
	}
	if before := pawl.NewID(-1, 0); before[6]>>4 != 7 {
		t.Error("a time before 1970 breaks the layout")
	}
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

package pawl_test

import (
	"errors"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// FuzzParseAmount: what callers write is exact to the last digit, or an error
// that says why.
func FuzzParseAmount(f *testing.F) {
	for _, seed := range []string{"12", "-0.5", "0.120000000", "0.1234567891", "9223372036.854775807", "-9223372036.854775808", "1e3", ".5", "1.", "-", "", "00.10", "0.0000000000", "٣"} {
		f.Add(seed)
	}
	plain := regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
	most := big.NewInt(1<<63 - 1)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := pawl.ParseAmount(text)
		if !plain.MatchString(text) {
			if !errors.Is(err, pawl.ErrAmount) {
				t.Fatalf("%q: %d %v", text, got, err)
			}
			return
		}
		exact, _ := new(big.Rat).SetString(text)
		exact.Mul(exact, big.NewRat(pawl.AmountScale, 1))
		inRange := new(big.Int).Quo(exact.Num(), exact.Denom()).CmpAbs(most) <= 0
		switch {
		case inRange && exact.IsInt() != (err == nil), err == nil && exact.Num().Int64() != int64(got),
			err != nil && got != 0, !inRange && exact.IsInt() && !errors.Is(err, pawl.ErrAmountRange):
			t.Fatalf("%q: %d %v", text, got, err)
		}
	})
}

// FuzzTimeText: a time has one spelling, the one that is written.
func FuzzTimeText(f *testing.F) {
	for _, seed := range []string{
		"2026-01-02T03:04:05.123456Z", "", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05,123456Z", "1970-01-01T00:00:00.000000Z", "2026-02-30T00:00:00.000000Z",
		"0000-01-01T00:00:00.000000Z", "2026-01-02T3:04:05.123456Z",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var at pawl.Time
		if err := at.UnmarshalText([]byte(text)); err != nil {
			if at != 0 {
				t.Fatalf("%q: %d beside %v", text, at, err)
			}
			return
		}
		if at.String() != text {
			t.Fatalf("%q is read, and written as %q", text, at)
		}
		if std, err := time.Parse(time.RFC3339Nano, text); text != "" && (err != nil || std.UnixMicro() != int64(at)) {
			t.Fatalf("%q is read as %d, package time says %v %v", text, at, std, err)
		}
	})
}

// FuzzWords: a word is read back as what it was the word of, and nothing beside.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{"running", "applied", "unknown_state", "delivered", "submission_unconfirmed", "received", "review", "", "Running", "running ", "0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, word string) {
		state, ok := pawl.ParseState(word)
		hold(t, word, state.String(), ok)
		verdict, ok := pawl.ParseVerdict(word)
		hold(t, word, verdict.String(), ok)
		reason, ok := pawl.ParseReason(word)
		hold(t, word, reason.Rule().Word, ok)
		delivery, ok := pawl.ParseDeliveryState(word)
		hold(t, word, delivery.String(), ok)
		inbox, ok := pawl.ParseInboxState(word)
		hold(t, word, inbox.String(), ok)
		artifact, ok := pawl.ParseArtifactState(word)
		hold(t, word, artifact.String(), ok)
		var again pawl.State
		if err := again.UnmarshalText([]byte(word)); (err == nil) != (state != 0 || word == "") || again != state {
			t.Errorf("%q: as text %v %v, as a word %v", word, again, err, state)
		}
	})
}

func hold(t *testing.T, word, back string, ok bool) {
	t.Helper()
	if word == "" && ok || ok && back != word || !ok && back != "" {
		t.Errorf("%q: read as %q, known %v", word, back, ok)
	}
}

// FuzzOwnNames: ids and types of tenants' own events by the patterns of 7-rules
// R49, without the types that are ours.
func FuzzOwnNames(f *testing.F) {
	for _, seed := range []string{"evt_1", "order.paid", "operation.running", "operations.x", "orders/create", "order:paid", "orders/*", "a,b", "a b", "std.orders/create", "a..b", ".a", "a.", "", "é", "review.opened", strings.Repeat("a", 128), strings.Repeat("a", 256)} {
		f.Add(seed)
	}
	id := regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)
	kind := regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
	ours := regexp.MustCompile(`^operation\.|^(review\.opened|upstream\.paused|endpoint\.disabled|delivery\.dead)$`)
	wanted := regexp.MustCompile(`^[!-)+\--~]{1,255}$`) // Visible ASCII without asterisk and comma (1-product C9).
	f.Fuzz(func(t *testing.T, name string) {
		if pawl.ValidOwnID(name) != id.MatchString(name) {
			t.Errorf("%q: as an id %v", name, pawl.ValidOwnID(name))
		}
		if pawl.ValidOwnType(name) != (len(name) <= 128 && kind.MatchString(name) && !ours.MatchString(name)) {
			t.Errorf("%q: as a type %v", name, pawl.ValidOwnType(name))
		}
		if pawl.ReservedType(name) != ours.MatchString(name) {
			t.Errorf("%q: as a type of Pawl's own %v", name, pawl.ReservedType(name))
		}
		if pawl.ValidWantedType(name) != (wanted.MatchString(name) && !ours.MatchString(name)) {
			t.Errorf("%q: as a type that an endpoint asks for %v", name, pawl.ValidWantedType(name))
		}
	})
}

package pawl_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

func TestTime(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_007_999, time.FixedZone("x", 3600))
	got := pawl.TimeOf(at)
	if want := "2026-01-02T02:04:05.006007Z"; got.String() != want {
		t.Errorf("%s, want %s", got, want)
	}
	var back pawl.Time
	if err := back.UnmarshalText([]byte(got.String())); err != nil || back != got {
		t.Errorf("read back as %d, %v", back, err)
	}
	for _, text := range []string{"2026-01-02T02:04:05Z", "2026-01-02T02:04:05.006007+00:00", "2026-01-02", "x"} {
		if err := back.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if pawl.Time(0).String() != "" || pawl.Never.String() != "" || pawl.Time(0).IsSet() || pawl.Never.IsSet() {
		t.Error("what is not set has a text")
	}
	if pawl.Never.Add(-time.Hour) != pawl.Never {
		t.Error("never has passed")
	}
	if d := got.Add(90 * time.Minute).Sub(got); d != 90*time.Minute {
		t.Errorf("difference %s", d)
	}
	if err := back.UnmarshalText(nil); err != nil || back != 0 {
		t.Errorf("empty text: %d %v", back, err)
	}
}

// TestMoves is the table of 7-rules §1, written out: every pair of states and
// every cause; by their leases, own workers come to it (docs/workers.md).
func TestMoves(t *testing.T) {
	const (
		s = 1 << pawl.BySubmit
		o = 1 << pawl.ByObservation
		c = 1 << pawl.ByCancel
		d = 1 << pawl.ByDeadline
		p = 1 << pawl.ByOperator
		l = 1 << pawl.ByLease
	)
	states := []pawl.State{pawl.Pending, pawl.Unconfirmed, pawl.Running, pawl.Succeeded, pawl.Failed, pawl.Canceled, pawl.Expired}
	table := [7][7]int{
		// to: pending, unconfirmed, running, succeeded, failed, canceled, expired
		{0, s, s | o | l, o, s | o, o | c, o | d}, // pending
		{p, 0, s | o | p, o, o | p, o, o},         // unconfirmed: expired only by the provider's word
		{0, 0, 0, o, o | l, o | c | l, o | d},     // running
		{0, 0, 0, 0, p, p, p},                     // succeeded: an operator's correction only
		{0, 0, 0, p, 0, p, p},                     // failed
		{0, 0, 0, p, p, 0, p},                     // canceled
		{0, 0, 0, p, p, p, 0},                     // expired
	}
	for i, from := range states {
		for j, to := range states {
			for _, cause := range []pawl.Cause{pawl.BySubmit, pawl.ByObservation, pawl.ByCancel, pawl.ByDeadline, pawl.ByOperator, pawl.ByLease} {
				want := table[i][j]&(1<<cause) != 0
				if got := pawl.CanMove(from, to, cause); got != want {
					t.Errorf("%s to %s by %d: %v, want %v", from, to, cause, got, want)
				}
			}
		}
	}
}

func TestStates(t *testing.T) {
	words := []string{"pending", "unconfirmed", "running", "succeeded", "failed", "canceled", "expired"}
	ranks := []int{0, 1, 2, 3, 3, 3, 3}
	for i, word := range words {
		s := pawl.State(i + 1)
		back, ok := pawl.ParseState(word)
		if s.String() != word || !ok || back != s || s.Rank() != ranks[i] || s.Terminal() != (i >= 3) {
			t.Errorf("%s: %s %d %v", word, s, s.Rank(), s.Terminal())
		}
		if pawl.TypeOf(s) != "operation."+word {
			t.Errorf("type of %s is %s", word, pawl.TypeOf(s))
		}
	}
	for _, word := range []string{"", "Pending", "queued"} {
		if _, ok := pawl.ParseState(word); ok {
			t.Errorf("%q is a state", word)
		}
	}
	for s := pawl.State(0); s <= pawl.Expired; s++ {
		text, err := json.Marshal(s)
		var back pawl.State
		if err != nil || json.Unmarshal(text, &back) != nil || back != s {
			t.Errorf("%s is read back as %q", text, back)
		}
	}
	if json.Unmarshal([]byte(`"queued"`), new(pawl.State)) == nil {
		t.Error("an unknown word is accepted")
	}
}

// TestVerdicts is 7-rules §2: the first five take the key.
func TestVerdicts(t *testing.T) {
	takes := []string{"applied", "duplicate", "stale", "conflict", "orphan"}
	free := []string{"hint", "unknown_type", "unknown_state", "rejected"}
	for _, word := range slices.Concat(takes, free) {
		v, ok := pawl.ParseVerdict(word)
		if !ok || v.String() != word || v.TakesKey() != slices.Contains(takes, word) {
			t.Errorf("%s: %v %s %v", word, ok, v, v.TakesKey())
		}
	}
	if pawl.Verdict(0).TakesKey() || pawl.Verdict(0).String() != "" {
		t.Error("no verdict takes a key")
	}
}

// TestReviews: the table of 7-rules §6 is whole.
func TestReviews(t *testing.T) {
	words := []string{"unconfirmed", "orphan", "conflict", "second_task", "unknown_state", "unknown_type", "deadline_unread",
		"late_success", "task_unknown", "no_result", "capture", "release", "currency", "settle_overdue", "completion_overdue",
		"dead_letter", "over_reservation", "body_differs"}
	seen := map[pawl.Reason]bool{}
	for _, word := range words {
		r, ok := pawl.ParseReason(word)
		rule := r.Rule()
		if !ok || seen[r] || r.String() != word || rule.Meaning == "" || len(rule.Decisions) == 0 {
			t.Errorf("%s: %+v", word, rule)
		}
		seen[r] = true
		for _, d := range rule.Decisions {
			if !r.Allows(d) {
				t.Errorf("%s does not allow its own %s", word, d)
			}
		}
		if r.Allows("") || r.Allows("maybe") {
			t.Errorf("%s allows anything", word)
		}
	}
	if next := pawl.Reason(len(words) + 1).String(); next != "" {
		t.Errorf("%s is not in the rules", next)
	}
	if r := pawl.ReviewUnconfirmed; !r.Allows("created") || !r.Allows("not_created") || !r.Allows("failed") {
		t.Error("R8")
	}
}

// TestFailureCodes is 1-product D5: nine codes, any other word is the ninth.
func TestFailureCodes(t *testing.T) {
	for _, word := range []string{"invalid_request", "unsupported_combination", "content_rejected", "rate_limited",
		"upstream_unavailable", "generation_failed", "timeout", "invalid_asset", "upstream_failed"} {
		if got := pawl.FailureCodeOf(word); string(got) != word {
			t.Errorf("%s becomes %s", word, got)
		}
	}
	for _, word := range []string{"", "TIMEOUT", "weird"} {
		if got := pawl.FailureCodeOf(word); got != pawl.FailUpstream {
			t.Errorf("%q becomes %s", word, got)
		}
	}
}

func TestDeliveryStates(t *testing.T) {
	for _, word := range []string{"pending", "delivering", "delivered", "dead", "skipped"} {
		if s, ok := pawl.ParseDeliveryState(word); !ok || s.String() != word {
			t.Errorf("%s: %v %s", word, ok, s)
		}
	}
	if _, ok := pawl.ParseDeliveryState(""); ok {
		t.Error("the empty word is a state")
	}
}

package client_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/client"
)

// Seen is a set of numbers, held against one that is nothing else.
func TestSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		until := rapid.Int64Range(0, 5).Draw(t, "until")
		s, set := client.NewSeen(until), map[int64]bool{}
		for n := int64(1); n <= until; n++ {
			set[n] = true
		}
		for _, n := range rapid.SliceOf(rapid.Int64Range(-1, 20)).Draw(t, "added") {
			if fresh := s.Add(n); fresh != (n > 0 && !set[n]) {
				t.Fatalf("Add(%d) = %v", n, fresh)
			}
			if n > 0 {
				set[n] = true
			}
		}
		highest, want := int64(0), int64(0)
		for n := range set {
			highest = max(highest, n)
		}
		for set[want+1] {
			want++
		}
		if s.Until() != want {
			t.Fatalf("until %d, want %d", s.Until(), want)
		}
		missing := map[int64]bool{}
		for _, g := range s.Gaps() {
			for n := g.From; n <= g.To; n++ {
				missing[n] = true
			}
		}
		for n := int64(1); n <= 25; n++ {
			if s.Has(n) != set[n] || missing[n] != (!set[n] && n < highest) {
				t.Fatalf("%d: has %v, missing %v, highest %d", n, s.Has(n), missing[n], highest)
			}
		}
	})
}

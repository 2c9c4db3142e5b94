package outbox

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
)

func gauge() prometheus.Gauge { return prometheus.NewGauge(prometheus.GaugeOpts{Name: "x"}) }

func id(n int) pawl.ID { return pawl.ID{15: byte(n)} }

// Bounds hold, nothing that could be given is kept back, and nobody gets a
// second slot while another that is ready has less and room.
func TestSlotsAreFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		per, total := rapid.IntRange(1, 4).Draw(t, "per"), rapid.IntRange(1, 12).Draw(t, "total")
		s := newSlots(per, per, total, gauge())
		busy := make(map[pawl.ID]int)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "give") {
				for endpoint, n := range busy {
					if n > 0 && rapid.Bool().Draw(t, "this") {
						s.give(endpoint, 1)
						busy[endpoint]--
					}
				}
			}
			var ready []pawl.ID
			for n := range 8 {
				if rapid.Bool().Draw(t, "ready") {
					ready = append(ready, id(n))
				}
			}
			gained := make(map[pawl.ID]bool)
			for _, g := range s.take(ready) {
				busy[g.endpoint] += g.n
				gained[g.endpoint] = true
			}
			sum := 0
			for endpoint, n := range busy {
				if sum += n; n > per {
					t.Fatalf("%v has %d of %d", endpoint, n, per)
				}
			}
			if sum > total {
				t.Fatalf("%d of %d", sum, total)
			}
			for _, poor := range ready {
				if busy[poor] < per && sum < total {
					t.Fatalf("a slot was kept back: %d of %d", sum, total)
				}
				for rich := range gained {
					if busy[poor] < per && busy[rich] > busy[poor]+1 {
						t.Fatalf("%d beside %d", busy[rich], busy[poor])
					}
				}
			}
		}
	})
}

// With more endpoints than slots, each has its turn.
func TestSlotsGoRound(t *testing.T) {
	s := newSlots(8, 8, 2, gauge())
	var ready []pawl.ID
	for n := range 7 {
		ready = append(ready, id(n))
	}
	turns := make(map[pawl.ID]int)
	for range 7 {
		for _, g := range s.take(ready) {
			turns[g.endpoint] += g.n
			s.give(g.endpoint, g.n)
		}
	}
	for _, endpoint := range ready {
		if turns[endpoint] != 2 {
			t.Errorf("%v had %d turns in 7 rounds of 2 for 7, want 2", endpoint, turns[endpoint])
		}
	}
}

// Endpoints that come and go do not push aside one that waits.
func TestSlotsNewcomersWait(t *testing.T) {
	s := newSlots(1, 1, 1, gauge())
	s.give(id(0), -1) // a long attempt of somebody else
	s.take([]pawl.ID{id(1), id(2)})
	s.give(id(0), 1)
	for n := 3; n < 6; n++ {
		grants := s.take([]pawl.ID{id(n), id(1), id(2)})
		if len(grants) != 1 || grants[0].endpoint == id(n) {
			t.Fatalf("a newcomer came before those who wait: %v", grants)
		}
		s.give(grants[0].endpoint, 1)
	}
}

// A healthy endpoint gets more slots with each success, a dead one ends with
// one, whatever it had.
func TestRoomFollowsSuccess(t *testing.T) {
	s := newSlots(8, 10, 100, gauge())
	good, bad := pawl.ID{1}, pawl.ID{2}
	for range 5 {
		s.ended(good, true)
		s.ended(bad, false)
	}
	got := make(map[pawl.ID]int)
	for _, g := range s.take([]pawl.ID{good, bad}) {
		got[g.endpoint] = g.n
	}
	if got[good] != 10 || got[bad] != 1 {
		t.Errorf("the healthy endpoint got %d slots and the dead one %d, want 10 and 1", got[good], got[bad])
	}
	s.ended(bad, true)
	if n := s.take([]pawl.ID{bad}); len(n) != 1 || n[0].n != 1 {
		t.Errorf("after one success the dead endpoint got %v, want one more", n)
	}
}

// However many endpoints fail, one that does not finds a slot; and once they
// work again they may have all.
func TestFailingEndpointsLeaveRoom(t *testing.T) {
	const total = 16
	s := newSlots(8, 8, total, gauge())
	var ready []pawl.ID
	for n := 1; n <= 40; n++ {
		ready = append(ready, id(n))
		if n <= 5 { // these fail while they hold slots, the others before
			s.take([]pawl.ID{id(n)})
		}
	}
	for range 3 {
		for _, endpoint := range ready {
			s.ended(endpoint, false)
		}
	}
	for n := 1; n <= 5; n++ {
		s.give(id(n), min(8, max(total-8*(n-1), 0)))
	}
	held := func(grants []grant) (n int) {
		for _, g := range grants {
			n += g.n
		}
		return n
	}
	if n := held(s.take(ready)); n != total*3/4 {
		t.Fatalf("endpoints that fail hold %d of %d slots, want %d", n, total, total*3/4)
	}
	if !s.full(id(40)) {
		t.Error("a failing endpoint without a slot left for it counts as ready")
	}
	if n := held(s.take([]pawl.ID{id(99)})); n != total/4 {
		t.Errorf("an endpoint that does not fail got %d slots, want %d", n, total/4)
	}
	for endpoint, n := range s.busy {
		s.give(endpoint, n)
	}
	for range 8 {
		for _, endpoint := range ready {
			s.ended(endpoint, true)
		}
	}
	if n := held(s.take(ready)); n != total {
		t.Errorf("endpoints that work again hold %d of %d slots", n, total)
	}
}

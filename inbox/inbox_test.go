package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/inbox"
)

type duration = time.Duration

func course(id string) inbox.Event {
	return inbox.Event{Source: "courses", ID: id, Body: []byte(`{"student":"` + id + `"}`)}
}

func expectState(t *testing.T, s stage, id string, want inbox.State) inbox.Record {
	t.Helper()
	r, err := s.Get(t.Context(), "courses", id)
	if err != nil || r.State != want {
		t.Errorf("%s is %q, %v; want %q", id, r.State, err, want)
	}
	return r
}

func TestARepeatGetsTheStoredOutcome(t *testing.T) {
	backends(t, inbox.Options{}, func(t *testing.T, s stage) {
		first, err := s.apply(t.Context(), course("ann"), certify)
		if err != nil || first.Duplicate || first.State != inbox.Done || string(first.Result) != "certificate of ann" {
			t.Fatalf("first: %+v, %v", first, err)
		}
		again, err := s.apply(t.Context(), course("ann"), func(func(string) error, inbox.Event, *inbox.Effects) ([]byte, error) {
			t.Error("the work of a repeat was run")
			return nil, nil
		})
		if err != nil || !again.Duplicate || again.State != inbox.Done || string(again.Result) != "certificate of ann" {
			t.Errorf("repeat: %+v, %v", again, err)
		}
		if n := s.certificates(t); n != 1 {
			t.Errorf("%d certificates, want 1", n)
		}
	})
}

func TestTheSameIDOfAnotherSourceIsAnotherEvent(t *testing.T) {
	backends(t, inbox.Options{}, func(t *testing.T, s stage) {
		e := course("ann")
		for _, source := range []string{"courses", "exams"} {
			e.Source = source
			out, err := s.apply(t.Context(), e, func(func(string) error, inbox.Event, *inbox.Effects) ([]byte, error) { return nil, nil })
			if err != nil || out.Duplicate {
				t.Errorf("%s: %+v, %v", source, out, err)
			}
		}
	})
}

func TestAFailureRollsEverythingBack(t *testing.T) {
	backends(t, inbox.Options{}, func(t *testing.T, s stage) {
		broken := errors.New("printer on fire")
		_, err := s.apply(t.Context(), course("ann"), func(insert func(string) error, e inbox.Event, f *inbox.Effects) ([]byte, error) {
			if _, err := certify(insert, e, f); err != nil {
				return nil, err
			}
			f.Add("mail", nil)
			return nil, broken
		})
		if !errors.Is(err, broken) {
			t.Errorf("error %v, want the function's own", err)
		}
		if n := s.certificates(t); n != 0 {
			t.Errorf("%d certificates after a rollback", n)
		}
		if _, err := s.Get(t.Context(), "courses", "ann"); !errors.Is(err, inbox.ErrUnknownEvent) {
			t.Errorf("the event is still known: %v", err)
		}
		out, err := s.apply(t.Context(), course("ann"), certify)
		if err != nil || out.Duplicate || s.certificates(t) != 1 {
			t.Errorf("the repeat: %+v, %v, %d certificates", out, err, s.certificates(t))
		}
	})
}

func TestParallelRepeatsApplyOnce(t *testing.T) {
	backends(t, inbox.Options{}, func(t *testing.T, s stage) {
		var wg sync.WaitGroup
		outs := make([]inbox.Outcome, 20)
		for i := range outs {
			wg.Go(func() {
				var err error
				if outs[i], err = s.apply(t.Context(), course("ann"), certify); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		fresh := 0
		for _, out := range outs {
			if !out.Duplicate {
				fresh++
			}
			if out.State != inbox.Done || string(out.Result) != "certificate of ann" {
				t.Errorf("outcome %+v", out)
			}
		}
		if fresh != 1 || s.certificates(t) != 1 {
			t.Errorf("%d applied it and %d certificates, want 1 and 1", fresh, s.certificates(t))
		}
	})
}

func TestEffectsAreCarriedOutUnderOneID(t *testing.T) {
	backends(t, inbox.Options{Backoff: time.Millisecond, MaxBackoff: time.Millisecond}, func(t *testing.T, s stage) {
		var ids []string
		out, err := s.apply(t.Context(), course("ann"), func(_ func(string) error, _ inbox.Event, f *inbox.Effects) ([]byte, error) {
			ids = append(ids, f.Add("mail", []byte("to ann")), f.Add("mail", []byte("to bob")), f.Add("print", nil))
			return nil, nil
		})
		if err != nil || out.State != inbox.Waiting {
			t.Fatalf("%+v, %v", out, err)
		}
		seen := map[string]int{}
		for round := 0; expectOpen(t, s, "ann") > 0 && round < 100; round++ {
			_, err := s.drain(t.Context(), func(_ context.Context, e inbox.Effect) error {
				seen[e.ID]++
				if e.Kind == "mail" && e.Attempt < 3 {
					return errors.New("greylisted")
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Millisecond)
		}
		want := map[string]int{ids[0]: 3, ids[1]: 3, ids[2]: 1}
		if len(want) != 3 || len(seen) != 3 {
			t.Fatalf("ids %v, carried out %v", ids, seen)
		}
		for id, n := range want {
			if seen[id] != n {
				t.Errorf("%s was tried %d times, want %d", id, seen[id], n)
			}
		}
		expectState(t, s, "ann", inbox.Done)
	})
}

func expectOpen(t *testing.T, s stage, id string) int {
	t.Helper()
	r, err := s.Get(t.Context(), "courses", id)
	if err != nil {
		t.Fatal(err)
	}
	return r.Effects
}

func TestAnEffectLostInACrashIsRepeated(t *testing.T) {
	backends(t, inbox.Options{Lease: 30 * time.Millisecond}, func(t *testing.T, s stage) {
		_, err := s.apply(t.Context(), course("ann"), func(_ func(string) error, _ inbox.Event, f *inbox.Effects) ([]byte, error) {
			f.Add("mail", nil)
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		func() {
			defer func() { _ = recover() }()
			_, _ = s.drain(t.Context(), func(_ context.Context, e inbox.Effect) error {
				ids = append(ids, e.ID)
				panic("killed between the effect and its mark")
			})
		}()
		deadline := time.Now().Add(10 * time.Second)
		for len(ids) < 2 && time.Now().Before(deadline) {
			if _, err := s.drain(t.Context(), func(_ context.Context, e inbox.Effect) error { ids = append(ids, e.ID); return nil }); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if len(ids) != 2 || ids[0] != ids[1] {
			t.Errorf("ids %v, want one id twice", ids)
		}
		expectState(t, s, "ann", inbox.Done)
	})
}

func TestAnEffectThatNeverWorksGoesToReview(t *testing.T) {
	opts := inbox.Options{Attempts: 3, Backoff: time.Microsecond, MaxBackoff: time.Microsecond}
	backends(t, opts, func(t *testing.T, s stage) {
		_, err := s.apply(t.Context(), course("ann"), func(_ func(string) error, _ inbox.Event, f *inbox.Effects) ([]byte, error) {
			f.Add("mail", nil)
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		tries := 0
		for range 20 {
			if _, err := s.drain(t.Context(), func(context.Context, inbox.Effect) error { tries++; return errors.New("no such mailbox") }); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		r := expectState(t, s, "ann", inbox.Review)
		if tries != 3 || r.LastError != "no such mailbox" {
			t.Errorf("%d tries, last error %q", tries, r.LastError)
		}
		if err := s.Retry(t.Context(), "courses", "ann"); err != nil {
			t.Fatal(err)
		}
		expectState(t, s, "ann", inbox.Waiting)
		if _, err := s.drain(t.Context(), func(context.Context, inbox.Effect) error { return nil }); err != nil {
			t.Fatal(err)
		}
		expectState(t, s, "ann", inbox.Done)
		if err := s.Retry(t.Context(), "courses", "ann"); !errors.Is(err, inbox.ErrUnknownEvent) {
			t.Errorf("an event that is done was started again: %v", err)
		}
	})
}

func TestAcceptedWorkIsTriedUntilItIsDone(t *testing.T) {
	backends(t, inbox.Options{Backoff: time.Microsecond, MaxBackoff: time.Microsecond}, func(t *testing.T, s stage) {
		out, err := s.accept(t.Context(), course("ann"))
		if err != nil || out.Duplicate || out.State != inbox.Received {
			t.Fatalf("%+v, %v", out, err)
		}
		out, err = s.accept(t.Context(), course("ann"))
		if err != nil || !out.Duplicate || out.State != inbox.Received {
			t.Errorf("repeat: %+v, %v", out, err)
		}
		if n, err := s.work(t.Context(), func(func(string) error, inbox.Event, *inbox.Effects) ([]byte, error) {
			return nil, errors.New("database of students is away")
		}); n != 1 || err != nil {
			t.Errorf("%d attempts, %v", n, err)
		}
		if r := expectState(t, s, "ann", inbox.Waiting); r.LastError != "database of students is away" || r.Attempts != 1 || r.NextAttemptAt.IsZero() {
			t.Errorf("record %+v", r)
		}
		time.Sleep(time.Millisecond)
		if n, err := s.work(t.Context(), certify); n != 1 || err != nil {
			t.Errorf("%d attempts, %v", n, err)
		}
		expectState(t, s, "ann", inbox.Done)
		if n, err := s.work(t.Context(), certify); n != 0 || err != nil || s.certificates(t) != 1 {
			t.Errorf("%d attempts of what is done, %v, %d certificates", n, err, s.certificates(t))
		}
	})
}

// The work kills its process each time: nothing records an error, and it must
// run out of attempts all the same (O-107).
func TestWorkThatKillsItsProcessRunsOutOfAttempts(t *testing.T) {
	backends(t, inbox.Options{Attempts: 3, Lease: time.Millisecond}, func(t *testing.T, s stage) {
		if _, err := s.accept(t.Context(), course("ann")); err != nil {
			t.Fatal(err)
		}
		tries := 0
		for range 20 {
			func() {
				defer func() { _ = recover() }()
				_, _ = s.work(t.Context(), func(func(string) error, inbox.Event, *inbox.Effects) ([]byte, error) {
					tries++
					panic("killed")
				})
			}()
			time.Sleep(2 * time.Millisecond)
		}
		expectState(t, s, "ann", inbox.Review)
		if tries != 3 {
			t.Errorf("%d tries, want 3", tries)
		}
	})
}

// So does an effect that kills it, and its event goes to review with it.
func TestAnEffectThatKillsItsProcessRunsOutOfAttempts(t *testing.T) {
	backends(t, inbox.Options{Attempts: 3, Lease: time.Millisecond}, func(t *testing.T, s stage) {
		_, err := s.apply(t.Context(), course("ann"), func(_ func(string) error, _ inbox.Event, f *inbox.Effects) ([]byte, error) {
			f.Add("mail", nil)
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		tries := 0
		for range 20 {
			func() {
				defer func() { _ = recover() }()
				_, _ = s.drain(t.Context(), func(context.Context, inbox.Effect) error {
					tries++
					panic("killed")
				})
			}()
			time.Sleep(2 * time.Millisecond)
		}
		expectState(t, s, "ann", inbox.Review)
		if tries != 3 {
			t.Errorf("%d tries, want 3", tries)
		}
		if err := s.Retry(t.Context(), "courses", "ann"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.drain(t.Context(), func(context.Context, inbox.Effect) error { return nil }); err != nil {
			t.Fatal(err)
		}
		expectState(t, s, "ann", inbox.Done)
	})
}

// An error text that a database would not take as it is counts all the same:
// PostgreSQL refuses what is no UTF-8, such as a letter that is cut in half, and
// zero bytes.
func TestAnyErrorTextIsKept(t *testing.T) {
	half := strings.Repeat("x", 499)
	for _, c := range []struct{ name, text, want string }{
		{"cut in half", half + "é", half}, {"zero byte", "a\x00b", "ab"}, {"no UTF-8", "a\xffb", "ab"}, {"nothing left", "\x00", "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := inbox.Options{Attempts: 1}
			backends(t, opts, func(t *testing.T, s stage) {
				broken := errors.New(c.text)
				if _, err := s.accept(t.Context(), course("ann")); err != nil {
					t.Fatal(err)
				}
				if _, err := s.work(t.Context(), func(func(string) error, inbox.Event, *inbox.Effects) ([]byte, error) { return nil, broken }); err != nil {
					t.Errorf("work: %v", err)
				}
				if r := expectState(t, s, "ann", inbox.Review); r.LastError != c.want {
					t.Errorf("kept of work %q", r.LastError)
				}
				_, err := s.apply(t.Context(), course("bob"), func(_ func(string) error, _ inbox.Event, f *inbox.Effects) ([]byte, error) {
					f.Add("mail", nil)
					return nil, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.drain(t.Context(), func(context.Context, inbox.Effect) error { return broken }); err != nil {
					t.Errorf("drain: %v", err)
				}
				if r := expectState(t, s, "bob", inbox.Review); r.LastError != c.want {
					t.Errorf("kept of an effect %q", r.LastError)
				}
			})
		})
	}
}

func TestSweepFindsWhatNeverFinished(t *testing.T) {
	backends(t, inbox.Options{}, func(t *testing.T, s stage) {
		for i := range 3 {
			if _, err := s.accept(t.Context(), course(fmt.Sprint("s", i))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.apply(t.Context(), course("done"), certify); err != nil {
			t.Fatal(err)
		}
		open, err := s.Sweep(t.Context(), 0, 2)
		if err != nil || len(open) != 2 || open[0].ID != "s0" || open[1].ID != "s1" || string(open[0].Body) != `{"student":"s0"}` {
			t.Errorf("%+v, %v", open, err)
		}
		if open, err = s.Sweep(t.Context(), time.Hour, 10); err != nil || len(open) != 0 {
			t.Errorf("of an hour ago: %+v, %v", open, err)
		}
	})
}

// Nor are those whose id only some databases would keep: a sender would be told to
// come again for ever.
func TestEventsWithoutIDAreRefused(t *testing.T) {
	backends(t, inbox.Options{}, func(t *testing.T, s stage) {
		for _, e := range []inbox.Event{{Source: "courses"}, {ID: "x"}, {}, {Source: "courses", ID: "a\x00"}, {Source: "courses", ID: "\xff"}} {
			if _, err := s.accept(t.Context(), e); !errors.Is(err, inbox.ErrInvalidEvent) {
				t.Errorf("%+v: %v", e, err)
			}
		}
	})
}

package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/client"
)

// desk is the worker side of a server by contract (2-contracts §1), in virtual
// time: its round trips take none.
type desk struct {
	mu      sync.Mutex
	waiting []string
	// leased are the leases that are in force, with their ends.
	leased map[string]time.Time
	lasts  time.Duration
	// cancel are the leases that are told to stop, lost those that are another's.
	cancel, lost map[string]bool
	// said is what came in, in order: "LEASE verb body".
	said  []string
	beats map[string][]time.Duration
	began time.Time
	deny  bool
	// most is the highest number of leases at once.
	most int
}

func newDesk(waiting ...string) *desk {
	return &desk{
		waiting: waiting, leased: map[string]time.Time{}, lasts: 31 * time.Second, cancel: map[string]bool{}, lost: map[string]bool{},
		beats: map[string][]time.Duration{}, began: time.Now(),
	}
}

// RoundTrip implements [http.RoundTripper].
func (d *desk) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	d.serve(w, r)
	return w.Result(), nil
}

func (d *desk) serve(w http.ResponseWriter, r *http.Request) {
	body := read(r)
	lease, verb, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/work/"), "/")
	if r.URL.Path == "/v1/work/lease" {
		d.lease(w, r, body)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost[lease] {
		problem(409, "lease_lost")(w, r)
		return
	}
	switch verb {
	case "heartbeat":
		d.beats[lease] = append(d.beats[lease], time.Since(d.began))
		d.leased[lease] = time.Now().Add(d.lasts)
	case "complete", "fail":
		if len(body) > 1<<20 {
			problem(413, "content_too_large")(w, r)
			return
		}
		if strings.Contains(body, `"amount":"-`) || strings.Contains(body, `"code":"mishap"`) {
			problem(400, "invalid_request")(w, r)
			return
		}
		delete(d.leased, lease)
		fallthrough
	case "progress":
		d.said = append(d.said, lease+" "+verb+" "+body)
	}
	says(200, fmt.Sprintf(`{"lease":%q,"operation_id":"op_1","expires_at":%q,"cancel_requested":%v}`, lease, pawl.TimeOf(time.Now().Add(d.lasts)), d.cancel[lease]))(w, r)
}

func (d *desk) lease(w http.ResponseWriter, r *http.Request, body string) {
	var in struct {
		Capabilities []string
		Wait, Max    int
	}
	_ = json.Unmarshal([]byte(body), &in)
	if d.deny {
		problem(403, "insufficient_scope")(w, r)
		return
	}
	for end := time.Now().Add(time.Duration(in.Wait) * time.Second); ; {
		d.mu.Lock()
		n := min(in.Max, len(d.waiting))
		take := slices.Clone(d.waiting[:n])
		d.waiting = d.waiting[n:]
		for _, id := range take {
			d.leased[id] = time.Now().Add(d.lasts)
		}
		d.most = max(d.most, len(d.leased))
		d.mu.Unlock()
		if n > 0 {
			says(200, d.answer(take))(w, r)
			return
		}
		if !time.Now().Before(end) || r.Context().Err() != nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		time.Sleep(time.Second)
	}
}

func (d *desk) answer(take []string) string {
	one := func(id string) string {
		return fmt.Sprintf(`"lease":%q,"attempt":1,"expires_at":%q,"operation":{"id":"op_%s","state":"running","model":"m","input":{"id":%q}}`, id, pawl.TimeOf(time.Now().Add(d.lasts)), id, id)
	}
	var more []string
	for _, id := range take[1:] {
		more = append(more, "{"+one(id)+"}")
	}
	return "{" + one(take[0]) + `,"more":[` + strings.Join(more, ",") + "]}"
}

func (d *desk) heard() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.said)
}

// lossy collects what a worker could not report.
type lossy struct {
	mu  sync.Mutex
	all []error
}

func (l *lossy) add(_ *client.Job, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, err)
}

// atWork runs a worker in a bubble until stop is called.
func atWork(t *testing.T, d *desk, w client.Worker, test func(stop func() error)) {
	t.Helper()
	c, err := client.New(client.Options{Server: "http://pawl.example", Key: key, HTTP: &http.Client{Transport: d}})
	if err != nil {
		t.Fatal(err)
	}
	w.Client = c
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	test(func() error { cancel(); return <-ended })
}

// A worker does what waits, as many at once as it may, and reports each.
func TestWorkerCompletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk("a", "b", "c", "d", "e")
		atWork(t, d, client.Worker{Concurrency: 2, Capabilities: []string{"m"}, Do: func(ctx context.Context, j *client.Job) (client.Done, error) {
			if err := j.Progress(ctx, 50, "half"); err != nil {
				t.Error(err)
			}
			time.Sleep(55 * time.Second)
			return client.Done{Result: j.Operation.Input, Cost: price}, nil
		}}, func(stop func() error) {
			time.Sleep(10 * time.Minute)
			if err := stop(); err != nil {
				t.Error(err)
			}
			done := d.heard()
			slices.Sort(done)
			var want []string
			for _, id := range []string{"a", "b", "c", "d", "e"} {
				want = append(want, fmt.Sprintf(`%s complete {"result":{"id":%q},"cost":{"amount":"0.150000000","currency":"USD"}}`, id, id),
					id+` progress {"percent":50,"message":"half"}`)
			}
			if !slices.Equal(done, want) || d.most != 2 {
				t.Errorf("%d at once; %s", d.most, strings.Join(done, "\n"))
			}
			// A lease of 31 s, of which the clock's second is kept: every 10 s.
			beats := d.beats["a"]
			if len(beats) != 5 || beats[0] != 10*time.Second || beats[4] != 50*time.Second {
				t.Errorf("heartbeats at %v", beats)
			}
		})
	})
}

// Whoever is told to cancel stops and says so; a lease that is lost is not
// reported at all.
func TestWorkerStops(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		tell  func(*desk)
		said  []string
		lost  int
	}{
		"canceled": {client.ErrCanceled, func(d *desk) { d.cancel["a"] = true }, []string{`a complete {"canceled":true}`}, 0},
		"lost":     {client.ErrLeaseLost, func(d *desk) { d.lost["a"] = true }, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, losses, began := newDesk("a"), new(lossy), time.Now()
				atWork(t, d, client.Worker{Lost: losses.add, Do: func(ctx context.Context, _ *client.Job) (client.Done, error) {
					<-ctx.Done()
					if cause := context.Cause(ctx); !errors.Is(cause, c.cause) || time.Since(began) != 20*time.Second {
						t.Errorf("after %s: %v", time.Since(began), cause)
					}
					return client.Done{}, ctx.Err()
				}}, func(stop func() error) {
					time.Sleep(15 * time.Second)
					d.mu.Lock()
					c.tell(d)
					d.mu.Unlock()
					time.Sleep(time.Minute)
					if err := stop(); err != nil {
						t.Error(err)
					}
					if said := d.heard(); !slices.Equal(said, c.said) || len(losses.all) != c.lost {
						t.Errorf("said %q, lost %v", said, losses.all)
					}
				})
			})
		})
	}
}

// What the server would never take is not left unsaid: the job would be done again
// until its attempts are used up. A message is made fit to be shown.
func TestWorkerReportsWhatIsUnfit(t *testing.T) {
	long := strings.Repeat("x", 999) + "é"
	ends := map[string]func() (client.Done, error){
		"large": func() (client.Done, error) { return client.Done{Result: strings.Repeat("x", 1<<20)}, nil },
		"cost":  func() (client.Done, error) { return client.Done{Cost: &client.Money{Amount: -1, Currency: "USD"}}, nil },
		"code":  func() (client.Done, error) { return client.Done{}, &client.Failure{Code: "mishap", Retryable: true} },
		"message": func() (client.Done, error) {
			return client.Done{}, &client.Failure{Code: pawl.FailTimeout, Message: "one\ntwo\x00"}
		},
		"long": func() (client.Done, error) {
			return client.Done{}, &client.Failure{Code: pawl.FailTimeout, Message: long}
		},
	}
	synctest.Test(t, func(t *testing.T) {
		d, losses := newDesk("large", "cost", "code", "message", "long"), new(lossy)
		atWork(t, d, client.Worker{Lost: losses.add, Do: func(_ context.Context, j *client.Job) (client.Done, error) {
			return ends[strings.TrimPrefix(j.Operation.ID, "op_")]()
		}}, func(stop func() error) {
			time.Sleep(time.Minute)
			if err := stop(); err != nil {
				t.Error(err)
			}
			const refused = `"message":"what the worker reported was refused"`
			want := []string{
				`large fail {"code":"generation_failed",` + refused + `,"retryable":false}`,
				`cost fail {"code":"generation_failed",` + refused + `,"retryable":false}`,
				`code fail {"code":"upstream_failed",` + refused + `,"retryable":true}`,
				`message fail {"code":"timeout","message":"one two ","retryable":false}`,
				`long fail {"code":"timeout","message":"` + strings.Repeat("x", 999) + `","retryable":false}`,
			}
			if said := d.heard(); !slices.Equal(said, want) || len(losses.all) != 3 {
				t.Errorf("said %q, lost %v", said, losses.all)
			}
		})
	})
}

// A job that fails says why if it means to, and nothing of what it did not mean.
func TestWorkerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, losses := newDesk("failure", "error", "panic", "result"), new(lossy)
		atWork(t, d, client.Worker{Lost: losses.add, Do: func(_ context.Context, j *client.Job) (client.Done, error) {
			switch j.Operation.ID {
			case "op_failure":
				return client.Done{}, fmt.Errorf("canary: %w", &client.Failure{Code: pawl.FailContentRejected, Message: "no kites"})
			case "op_error":
				return client.Done{}, errors.New("canary")
			case "op_result":
				return client.Done{Result: make(chan int)}, nil
			}
			panic("canary")
		}}, func(stop func() error) {
			time.Sleep(time.Minute)
			if err := stop(); err != nil {
				t.Error(err)
			}
			unmeant := ` fail {"code":"generation_failed","message":"the worker could not do it","retryable":true}`
			want := []string{
				`failure fail {"code":"content_rejected","message":"no kites","retryable":false}`, "error" + unmeant, "panic" + unmeant, "result" + unmeant,
			}
			if said := d.heard(); !slices.Equal(said, want) || len(losses.all) != 3 {
				t.Errorf("%s\nlost %v", strings.Join(said, "\n"), losses.all)
			}
		})
	})
}

// At the end jobs under way have their time, and are handed back after it.
func TestWorkerDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, losses := newDesk("short", "long"), new(lossy)
		atWork(t, d, client.Worker{Concurrency: 2, Drain: 20 * time.Second, Lost: losses.add, Do: func(ctx context.Context, j *client.Job) (client.Done, error) {
			wait := 10 * time.Second
			if j.Operation.ID == "op_long" {
				wait = time.Hour
			}
			select {
			case <-time.After(wait):
				return client.Done{}, nil
			case <-ctx.Done():
				return client.Done{}, context.Cause(ctx)
			}
		}}, func(stop func() error) {
			time.Sleep(time.Second)
			began := time.Now()
			if err := stop(); err != nil || time.Since(began) != 20*time.Second {
				t.Errorf("%v after %s", err, time.Since(began))
			}
			said := d.heard()
			if len(said) != 2 || said[0] != "short complete {}" || !strings.Contains(said[1], `long fail`) || !strings.Contains(said[1], `"retryable":true`) {
				t.Errorf("%q", said)
			}
			if len(losses.all) != 1 || !errors.Is(losses.all[0], client.ErrDrained) {
				t.Error(losses.all)
			}
		})
	})
}

// What another try would not change ends the worker.
func TestWorkerDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		d.deny = true
		c, err := client.New(client.Options{Server: "http://pawl.example", Key: key, HTTP: &http.Client{Transport: d}})
		if err != nil {
			t.Fatal(err)
		}
		if err := (&client.Worker{Client: c}).Run(t.Context()); !errors.Is(err, client.ErrForbidden) {
			t.Error(err)
		}
	})
}

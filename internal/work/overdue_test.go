package work_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
	"github.com/pawlhq/pawl/internal/work"
)

// creates counts requests and answers each with a task.
type creates struct{ n int }

// RoundTrip is http.RoundTripper's.
func (c *creates) RoundTrip(*http.Request) (*http.Response, error) {
	c.n++
	body := bytes.NewReader([]byte(`{"task":"t-1","state":"queued"}`))
	return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: io.NopCloser(body)}, nil
}

// A create that waited on a node that stood still is not sent under a lease
// that may be another's by the time it ends: somebody may have decided meanwhile
// that it never happened.
func TestOverdueJobIsHandedBack(t *testing.T) {
	for _, c := range []struct {
		late    time.Duration
		sent    int
		creates int32
		want    pawl.State
	}{
		{ledger.LeaseMargin - time.Millisecond, 1, 1, pawl.Running},
		{ledger.LeaseMargin, 0, 0, pawl.Pending},
		{time.Hour, 0, 0, pawl.Pending},
	} {
		wire, driver := new(creates), memory.New(memory.Options{})
		w, committer, op := onePending(t, wire, driver)
		now := time.Now()
		jobs, err := w.Claim(t.Context(), now)
		if err != nil || len(jobs) != 1 || jobs[0].Operation() != op.ID || jobs[0].Action() != ledger.ActSubmit {
			t.Fatalf("%d jobs, %v", len(jobs), err)
		}
		w.Record(t.Context(), w.Act(t.Context(), jobs[0], now.Add(c.late)))
		if err := committer.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		var rows ledger.Rows
		if err := driver.Load(t.Context(), &ledger.Keys{Operations: []pawl.ID{op.ID}}, &rows); err != nil {
			t.Fatal(err)
		}
		got, _ := rows.Operations.Get(op.ID)
		if wire.n != c.sent || got.State != c.want || got.Creates != c.creates || got.InFlight || got.Leased != ledger.NoAction {
			t.Errorf("%v late: %d requests, %s after %d creates, leased %s", c.late, wire.n, got.State, got.Creates, got.Leased)
		}
	}
}

// onePending is a worker over a ledger with one operation that waits to be
// created.
func onePending(t *testing.T, wire http.RoundTripper, driver *memory.Store) (*work.Worker, *store.Committer, ledger.Operation) {
	t.Helper()
	spec, _ := upstream.Preset("sim")
	settings := config.DefaultUpstream()
	settings.BaseURL = "https://provider.example"
	up, err := upstream.New("sim", spec, settings)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := egress.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	committer := store.NewCommitter(driver, store.Options{})
	out, err := committer.Do(t.Context(), ledger.Submit{
		Header: store.NewHeader(""), Tenant: "t", Key: "k", Up: up.Policy(), Model: "m", Input: "{}",
		Deadline: pawl.TimeOf(time.Now().Add(time.Hour)), Window: time.Hour,
	})
	if err != nil || out.Err != nil {
		t.Fatal(err, out.Err)
	}
	return work.New(work.Options{
		Store: committer, Reader: driver, Client: egress.NewClient(policy, egress.Options{Wire: wire}),
		Upstreams: upstream.Set{"sim": up}, Callbacks: upstream.NewCallbacks("https://pawl.example", nil),
		Metrics: telemetry.NewMetrics(nil), Log: slog.New(slog.DiscardHandler),
	}), committer, out.Value.(ledger.Submitted).Operation
}

// A pause keeps no operation beyond its deadline (7-rules §1): claiming does not
// touch its queue, the sweep ends it.
func TestDeadlinePassesUnderAPause(t *testing.T) {
	var clock atomic.Int64
	clock.Store(int64(pawl.TimeOf(time.Now())))
	driver := memory.New(memory.Options{Now: func() pawl.Time { return pawl.Time(clock.Load()) }})
	wire := new(creates)
	w, committer, op := onePending(t, wire, driver)
	if out, err := committer.Do(t.Context(), ledger.PauseUpstream{Header: store.NewHeader(""), Upstream: "sim"}); err != nil || out.Err != nil {
		t.Fatal(err, out.Err)
	}
	for _, c := range []struct {
		at   pawl.Time
		want pawl.State
	}{{op.Deadline - 1_000_000, pawl.Pending}, {op.Deadline, pawl.Expired}} {
		clock.Store(int64(c.at))
		if jobs, err := w.Claim(t.Context(), c.at.Std()); err != nil || len(jobs) != 0 {
			t.Fatalf("%d jobs, %v", len(jobs), err)
		}
		w.SweepAt(t.Context(), c.at.Std())
		var rows ledger.Rows
		if err := driver.Load(t.Context(), &ledger.Keys{Operations: []pawl.ID{op.ID}}, &rows); err != nil {
			t.Fatal(err)
		}
		if got, _ := rows.Operations.Get(op.ID); got.State != c.want {
			t.Errorf("%s, want %s", got.State, c.want)
		}
	}
	if err := committer.Drain(t.Context()); err != nil || wire.n != 0 {
		t.Errorf("%d requests, %v", wire.n, err)
	}
}

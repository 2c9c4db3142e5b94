package pawltest_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/pawltest"
)

func job(n int) client.Submission {
	price := client.Money{Amount: 150_000_000, Currency: "USD"}
	return client.Submission{Upstream: pawltest.Name, Model: "m", Input: map[string]int{"n": n}, ExpectedCost: &price}
}

// Whatever the upstream does, each job ends once, as it says, and its events come
// once each.
func TestScripts(t *testing.T) {
	t.Parallel()
	p := pawltest.New(t, pawltest.Options{})
	for name, c := range map[string]struct {
		script pawltest.Script
		state  pawl.State
		cost   pawl.Amount
	}{
		"succeeds":       {pawltest.Script{Result: map[string]string{"text": "done"}, Cost: "0.12"}, pawl.Succeeded, 120_000_000},
		"fails":          {pawltest.Script{End: pawl.Failed, Code: "content_rejected"}, pawl.Failed, 0},
		"refused":        {pawltest.Script{Refuse: pawl.FailInvalidRequest}, pawl.Failed, 0},
		"told twice":     {pawltest.Script{Tell: pawltest.TellTwice, Cost: "0.1"}, pawl.Succeeded, 100_000_000},
		"told late":      {pawltest.Script{Tell: pawltest.TellLate, Cost: "0.1"}, pawl.Succeeded, 100_000_000},
		"never told":     {pawltest.Script{Tell: pawltest.TellNever, Cost: "0.1"}, pawl.Succeeded, 100_000_000},
		"answer lost":    {pawltest.Script{LoseAnswer: true, Takes: 200 * time.Millisecond, Cost: "0.1"}, pawl.Succeeded, 100_000_000},
		"takes its time": {pawltest.Script{Takes: 300 * time.Millisecond, Cost: "0.1"}, pawl.Succeeded, 100_000_000},
		"expires there":  {pawltest.Script{End: pawl.Expired}, pawl.Expired, 0},
		"canceled there": {pawltest.Script{End: pawl.Canceled}, pawl.Canceled, 0},
	} {
		p.Upstream.Script(c.script)
		before := len(p.Upstream.Tasks())
		op, err := p.Client.Run(t.Context(), job(1))
		if err != nil {
			t.Fatal(name, err)
		}
		if op.State != c.state || op.Cost.Amount != c.cost || !op.Cost.Settled {
			t.Errorf("%s: %s for %v", name, op.State, op.Cost)
		}
		if event, ok := p.Wait(pawl.TypeOf(c.state), op.ID).Operation(); !ok || event.State != c.state {
			t.Errorf("%s: the event says %s", name, event.State)
		}
		want := 1
		if c.script.Refuse != "" {
			want = 0
		}
		if made := len(p.Upstream.Tasks()) - before; made != want {
			t.Errorf("%s: %d tasks", name, made)
		}
	}
	accounts, err := client.Collect(p.Client.Accounts(t.Context()), 0)
	// 100 - 0.12 - 5 × 0.1.
	if err != nil || len(accounts) != 1 || accounts[0].Balance != 99_380_000_000 || accounts[0].Reserved != 0 {
		t.Errorf("%+v %v", accounts, err)
	}
}

// A held task ends when the test says so, and can be canceled until then.
func TestHold(t *testing.T) {
	t.Parallel()
	p := pawltest.New(t, pawltest.Options{})
	p.Upstream.Script(pawltest.Script{Hold: true})
	var ids []string
	for n := range 2 {
		op, err := p.Client.Submit(t.Context(), job(n))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, op.ID)
		p.Wait(pawl.TypeRunning, op.ID)
	}
	if _, err := p.Client.Cancel(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	p.Wait(pawl.TypeCanceled, ids[0])
	op, err := p.Client.Operation(t.Context(), ids[1])
	if err != nil || !p.Upstream.Finish(op.TaskID) || p.Upstream.Finish("task-9") {
		t.Fatal(op.TaskID, err)
	}
	p.Wait(pawl.TypeSucceeded, ids[1])
}

// A receiver that says no is told again, also by a node that was stopped between.
func TestRestart(t *testing.T) {
	t.Parallel()
	p := pawltest.New(t, pawltest.Options{Types: []string{pawl.TypeSucceeded}})
	refused := make(chan struct{}, 100)
	p.Receiver.Answer(func(client.Event) int { refused <- struct{}{}; return http.StatusServiceUnavailable })
	op, err := p.Client.Run(t.Context(), job(1))
	if err != nil {
		t.Fatal(err)
	}
	<-refused
	p.Restart()
	p.Receiver.Answer(func(client.Event) int { return http.StatusOK })
	p.Wait(pawl.TypeSucceeded, op.ID)
	if n := len(p.Upstream.Tasks()); n != 1 {
		t.Errorf("%d tasks", n)
	}
}

// In a bubble hours pass at once.
func TestVirtual(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pawltest.New(t, pawltest.Options{Virtual: true, Patience: time.Hour})
		p.Upstream.Script(pawltest.Script{Takes: 50 * time.Minute, Cost: "0.15"})
		began := time.Now()
		op, err := p.Client.Submit(t.Context(), job(1))
		if err != nil {
			t.Fatal(err)
		}
		event := p.Wait(pawl.TypeSucceeded, op.ID)
		if took := time.Since(began); took < 50*time.Minute || took > 52*time.Minute {
			t.Errorf("it took %s", took)
		}
		var data struct{ State string }
		if err := json.Unmarshal(event.Data, &data); err != nil || data.State != "succeeded" {
			t.Errorf("%s %v", event.Data, err)
		}
	})
}

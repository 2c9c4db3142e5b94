package simulate

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// window is how long idempotency keys live at least.
const window = 24 * time.Hour

// job is what an application wants done once.
type job struct {
	n       int
	tenant  *tenant
	command ledger.Submit
	// patience is how long the job may take.
	patience time.Duration
	// op is the operation that the application was told of, since asked at the
	// database's time; zero for none.
	op    pawl.ID
	since pawl.Time
}

// newJob draws job n.
func (w *world) newJob(n int) *job {
	d := newDice(w.seedNumber, fmt.Sprint("job ", n))
	t, p := pick(d, w.tenants...), pick(d, w.providers...)
	j := &job{n: n, tenant: t, patience: d.between(30*time.Second, pick(d, 2*time.Minute, 15*time.Minute, 2*time.Hour))}
	input := fmt.Sprintf(`{"n":%d}`, n)
	j.command = ledger.Submit{
		Tenant: t.name, APIKey: t.key, Key: fmt.Sprint("job-", n), Fingerprint: sha256.Sum256([]byte(p.name + input)), Window: window,
		Up: p.up.Policy(), Model: "m", Input: input, Metadata: fmt.Sprintf(`{"job":%d}`, n),
	}
	if d.percent(30) {
		j.command.CorrelationID = fmt.Sprint("corr-", n)
	}
	if d.percent(75) {
		price := pick(d, pawl.Amount(0), pawl.AmountScale/10, pawl.AmountScale, 3*pawl.AmountScale)
		j.command.Metered, j.command.Price = true, pawl.Money{Amount: price, Currency: currency}
	}
	if d.percent(25) {
		j.command.CallbackURL, j.command.CallbackScheme = "https://"+w.callbackReceiver(t).name+"/cb", "standard-webhooks"
	}
	return j
}

// twin is the same job under a key of its own: two clicks are still one job
// while it is unfinished (1-product A8).
func (j *job) twin(n int) *job {
	other := *j
	other.n, other.command.Key = n, fmt.Sprint("job-", n)
	return &other
}

// callbackReceiver is who answers at a tenant's callback address.
func (w *world) callbackReceiver(t *tenant) *receiver {
	name := "cb-" + t.name + ".example"
	if r := w.receivers[name]; r != nil {
		return r
	}
	r := w.newReceiver("standard-webhooks", t.secret)
	delete(w.receivers, r.name)
	r.name = name
	w.receivers[name] = r
	return r
}

func (w *world) jobOf(n int) *job {
	if n < 0 || n >= len(w.jobs) {
		return nil
	}
	return w.jobs[n]
}

// submit has an application ask for its job, until it is answered.
func (w *world) submit(j *job, try int) {
	answered := false
	w.person("submit", func(n *node) {
		c := j.command
		c.Deadline = pawl.TimeOf(n.clock()).Add(j.patience)
		c.Day = ledger.DayOf(pawl.TimeOf(n.clock()))
		out, err := n.Do(noLimit, c)
		if err != nil || w.hit(AnswerLost, 60) {
			return
		}
		answered = true
		w.submitted(j, out)
	})
	w.after(w.between(5*time.Second, 40*time.Second), func() {
		if !answered && try < 8 {
			w.submit(j, try+1)
		}
	})
}

// submitted is the answer to an application.
func (w *world) submitted(j *job, out ledger.Outcome) {
	if out.Err != nil {
		w.trace("job %d is refused: %s", j.n, out.Reason)
		limited := (j.tenant.limited || w.providerOf(j.command.Up.Name).limited) &&
			(out.Reason == "key_budget" || out.Reason == "spending_limit" || out.Reason == "price_missing")
		if out.Reason != "insufficient_credit" && !limited {
			w.violate("a good request is not refused", "job %d: %s", j.n, out.Reason)
		}
		return
	}
	op := out.Value.(ledger.Submitted).Operation
	w.trace("job %d is operation %s, %s", j.n, op.ID.Suffix(), op.State)
	w.books.promiseOperation(op.ID)
	if before, ok := w.operation(j.op); ok && before.ID != op.ID {
		if !w.expired(j.since) || !before.State.Terminal() {
			w.violate("one idempotency key is one operation, as long as that runs at least", "job %d: %s, which is %s, and %s", j.n, before.ID.Suffix(), before.State, op.ID.Suffix())
		}
	}
	if j.op != op.ID {
		j.op, j.since = op.ID, op.CreatedAt
	}
}

// askAgain has an application repeat its request, long after.
func (w *world) askAgain() { w.submit(pick(w.dice, w.jobs...), 8) }

// expired reports whether a key that was used then may be free again.
func (w *world) expired(since pawl.Time) bool { return w.latest >= since.Add(window) }

// contradict asks for something else under a job's key: that is refused, and
// answered with the operation at most.
func (w *world) contradict() {
	j := pick(w.dice, w.jobs...)
	if j.op.IsZero() || w.expired(j.since) {
		return
	}
	c := j.command
	want := "idempotency_mismatch"
	if w.percent(50) {
		c.Fingerprint[0]++
	} else {
		c.APIKey, want = w.id(), "idempotency_key_in_use"
	}
	w.person("contradict", func(n *node) {
		out, err := n.Do(noLimit, c)
		if err == nil && out.Reason != want && !w.expired(j.since) {
			w.violate("a key that is taken stands for nothing else", "job %d: %s", j.n, out.Reason)
		}
	})
}

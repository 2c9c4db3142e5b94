package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
)

// Why the context of a [Job] ended, by context.Cause.
var (
	// ErrCanceled: the operation is to be canceled, or its deadline has passed.
	// Stop and return: the worker reports it.
	ErrCanceled = errors.New("client: the operation is to be canceled")
	// ErrLeaseLost: somebody else has the operation, or it has ended. Stop:
	// whatever is reported now is refused.
	ErrLeaseLost = errors.New("client: the lease is lost")
	// ErrDrained: the worker stops and has waited long enough.
	ErrDrained = errors.New("client: the worker stops")
)

// Worker takes operations of upstreams with preset: worker, does them, and
// reports how they ended. Client and Do are needed. A Worker is run once, and not
// changed while it runs.
type Worker struct {
	// Client needs a key with the scope operate.
	Client *Client
	// Do does one job. What it returns is the operation's end:
	//
	//   - without an error, success with the result and cost of Done;
	//   - with a [*Failure] in the error, that failure;
	//   - with any other error, or a panic, a failure of code generation_failed that
	//     another worker may try, with a message that says nothing of the error: it
	//     goes to Lost;
	//   - once ctx was ended by [ErrCanceled], an error says that the job was
	//     stopped; a success counts as one.
	//
	// It may be called again for an operation that was begun before: after a crash,
	// or a lease that was lost. Job.Operation.ID is the same then: whatever has an
	// effect outside should be done under it once.
	Do func(ctx context.Context, job *Job) (Done, error)
	// Capabilities are the models to take, as MODEL or UPSTREAM/MODEL; all if
	// empty.
	Capabilities []string
	// Concurrency is how many jobs are done at once; 1 if zero.
	Concurrency int
	// Drain is how long jobs under way may go on once Run's context has ended; 30 s
	// if zero. What is not done then is handed back for others to try.
	Drain time.Duration
	// Lost is told of every job that could not be reported as Do meant it: the lease
	// was lost, Do failed by an error of its own or a panic, or the report was never
	// answered, or refused for what it says (a result over 1 MiB): such a job is
	// reported as failed. Nil tells nobody. It is called by several goroutines.
	Lost func(job *Job, err error)
}

// Job is an operation that a worker has.
type Job struct {
	// Operation has its Input.
	Operation Operation
	// Attempt counts the leases of the operation, from 1.
	Attempt int

	id     string
	client *Client
	cancel context.CancelCauseFunc
}

// Done is how a job succeeded.
type Done struct {
	// Result is any value that can be written as JSON; nil for none.
	Result any
	// Cost is what it cost; its price if nil.
	Cost *Money
}

// Progress shows how far the job has come, for people: percent from 0 to 100,
// negative for not known, and a word that becomes the operation's UpstreamState,
// empty for none. It fails with [ErrLeaseLost] where the job is no longer this
// worker's.
func (j *Job) Progress(ctx context.Context, percent float64, message string) error {
	known := &percent
	if percent < 0 {
		known = nil
	}
	s, err := j.client.progress(ctx, j.id, known, message)
	return j.heard(s, err)
}

// heard ends the job's context where the server says that it is over.
func (j *Job) heard(s status, err error) error {
	if isLost(err) {
		err = errors.Join(ErrLeaseLost, err)
		j.cancel(err)
		return err
	}
	if err == nil && s.CancelRequested {
		j.cancel(ErrCanceled)
	}
	return err
}

// isLost reports whether a report was refused by fence: the lease is another's,
// or over, or of an operation that is gone.
func isLost(err error) bool {
	p, _ := errors.AsType[*Problem](err)
	if p == nil {
		return false
	}
	switch p.Reason {
	case "lease_lost", "lease_ended", "finished":
		return true
	}
	return p.Status == http.StatusNotFound
}

// isUnfit reports whether a report was refused for what it says, as one with a
// result that is too large: it would be refused again.
func isUnfit(err error) bool {
	p, _ := errors.AsType[*Problem](err)
	return p != nil && (p.Status == http.StatusBadRequest || p.Status == http.StatusRequestEntityTooLarge || p.Status == http.StatusUnprocessableEntity)
}

// Run takes jobs until the context ends, then takes no more, waits for those
// under way, and returns nil. It returns early with a [*Problem] that another try
// would not change, such as a key without the scope.
func (w *Worker) Run(ctx context.Context) error {
	working, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	slots := make(chan struct{}, max(w.Concurrency, 1))
	var jobs sync.WaitGroup
	err := w.take(ctx, slots, func(l lease) {
		jobs.Go(func() {
			defer func() { <-slots }()
			w.job(working, l)
		})
	})
	drain := w.Drain
	if drain <= 0 {
		drain = 30 * time.Second
	}
	late := time.AfterFunc(drain, func() { stop(ErrDrained) })
	defer late.Stop()
	jobs.Wait()
	return err
}

// take leases as much as there are free slots, as long as the context lasts.
func (w *Worker) take(ctx context.Context, slots chan struct{}, begin func(lease)) error {
	pause := w.Client.o.Backoff
	for {
		free, ok := grab(ctx, slots)
		if !ok {
			return nil
		}
		began := time.Now()
		leases, err := w.Client.take(ctx, w.Capabilities, min(free, 32), maxWait/2)
		for _, l := range leases {
			begin(l)
		}
		for range free - len(leases) {
			<-slots
		}
		problem, refused := errors.AsType[*Problem](err)
		_, lost := errors.AsType[*Unanswered](err)
		switch {
		case ctx.Err() != nil:
			return nil
		case refused && !passing(problem.Status), err != nil && !refused && !lost:
			return err
		case err == nil && (len(leases) > 0 || time.Since(began) > 5*time.Second):
			pause = w.Client.o.Backoff
			continue
		}
		if sleep(ctx, pause) != nil {
			return nil
		}
		pause = min(2*pause, w.Client.o.MaxBackoff)
	}
}

// grab waits for a free slot and takes all that are free.
func grab(ctx context.Context, slots chan struct{}) (n int, ok bool) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return 0, false
	}
	for n = 1; ; n++ {
		select {
		case slots <- struct{}{}:
		default:
			return n, true
		}
	}
}

// job does one job and reports it. Reports are sent whatever has ended the job.
func (w *Worker) job(working context.Context, l lease) {
	ctx, cancel := context.WithCancelCause(working)
	defer cancel(nil)
	j := &Job{Operation: l.Operation, Attempt: l.Attempt, id: l.Lease, client: w.Client, cancel: cancel}
	if l.Operation.Cancel != nil {
		cancel(ErrCanceled)
	}
	beating, stop := context.WithCancel(context.WithoutCancel(working))
	var beats sync.WaitGroup
	beats.Go(func() { j.beat(beating, l.lasts) })
	done, err := w.do(ctx, j)
	cause := context.Cause(ctx)
	reporting, end := context.WithTimeout(context.WithoutCancel(working), time.Minute)
	defer end()
	if errors.Is(cause, ErrLeaseLost) {
		w.lost(j, cause)
	} else {
		w.report(reporting, j, done, err, cause)
	}
	stop()
	beats.Wait()
}

func (w *Worker) do(ctx context.Context, j *Job) (done Done, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("client: the job panicked: %T", p)
		}
	}()
	return w.Do(ctx, j)
}

func (w *Worker) report(ctx context.Context, j *Job, done Done, err, cause error) {
	var result json.RawMessage
	if err == nil && done.Result != nil {
		if result, err = json.Marshal(done.Result); err != nil {
			err = errors.New("client: the result cannot be written as JSON")
		}
	}
	failure, named := errors.AsType[*Failure](err)
	var refused error
	switch {
	case err == nil:
		refused = w.Client.complete(ctx, j.id, result, done.Cost, false)
	case errors.Is(cause, ErrCanceled):
		refused = w.Client.complete(ctx, j.id, nil, done.Cost, true)
	case named:
		refused = w.Client.fail(ctx, j.id, *failure)
	default:
		w.lost(j, err)
		refused = w.Client.fail(ctx, j.id, Failure{Code: pawl.FailGeneration, Message: "the worker could not do it", Retryable: true})
	}
	if isUnfit(refused) {
		// Unreported, the job would be begun anew until its attempts are used up.
		w.lost(j, refused)
		f := Failure{Code: pawl.FailGeneration, Message: "what the worker reported was refused"}
		if named {
			f.Code, f.Retryable = pawl.FailureCodeOf(string(failure.Code)), failure.Retryable
		}
		refused = w.Client.fail(ctx, j.id, f)
	}
	if isLost(refused) {
		refused = errors.Join(ErrLeaseLost, refused)
	}
	if refused != nil {
		w.lost(j, refused)
	}
}

func (w *Worker) lost(j *Job, err error) {
	if w.Lost != nil {
		w.Lost(j, err)
	}
}

// beat says at a third of each lease that the work goes on. A heartbeat that is
// lost is sent again soon: a lease that ran out is this worker's still until
// another one has the operation, which the server says.
func (j *Job) beat(ctx context.Context, lasts time.Duration) {
	for {
		// The server tells the time in whole seconds.
		if sleep(ctx, max((lasts-time.Second)/3, 100*time.Millisecond)) != nil {
			return
		}
		s, more, err := j.client.heartbeat(ctx, j.id)
		if errors.Is(j.heard(s, err), ErrLeaseLost) {
			return
		}
		if err == nil {
			lasts = more
		}
	}
}

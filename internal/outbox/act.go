package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// Bounds of what is taken of an answer, in bytes. Nothing a receiver sends can
// keep its attempt from being recorded (field case O-083).
const (
	maxAnswer  = 64 << 10
	maxExcerpt = 512
)

// Attempt is one try of a job that has ended and is to be recorded.
type Attempt struct {
	job     Job
	command ledger.RecordAttempt
	// aborted says that we gave it up ourselves, which counts as no attempt
	// (field case O-081).
	aborted bool
}

// Act makes one try at now: it renders, signs, sends and reads the answer. It
// returns when the policy's timeout is over at the latest. The end of the
// context gives the try up. A job that comes too late to end within its lease is
// not sent: recording the attempt hands the lease back.
func (o *Outbox) Act(ctx context.Context, j Job, now time.Time) Attempt {
	a := o.begin(j, now)
	a.command.Target, a.command.TargetDigest = target(j.endpoint.URL)
	if j.delivery.Inbound {
		a.command.Event = j.event.ID
	}
	if a.aborted = j.overdue(now); a.aborted {
		return a
	}
	wire := ctx
	if o.o.Traces != nil {
		ctx, wire = o.o.Traces.On(ctx, j.errand("current")), o.o.Traces.On(ctx, j.errand("deliver"))
	}
	began := time.Now()
	if err := o.readCurrent(ctx, &j); err != nil {
		a.command.Duration, a.aborted = time.Since(began), ctx.Err() != nil
		a.fail(err)
		return a
	}
	now = now.Add(time.Since(began))
	if a.aborted = j.overdue(now); a.aborted {
		return a
	}
	request, body, err := o.request(j, now)
	if !j.delivery.BodyKept {
		a.command.Body = string(body)
	}
	if err != nil {
		a.fail(err)
		return a
	}
	began = time.Now()
	answer, err := o.o.Client.Do(wire, request, egress.Limits{Timeout: a.command.Policy.Timeout, MaxResponse: maxAnswer})
	a.command.Duration = time.Since(began)
	if err != nil {
		a.aborted = ctx.Err() != nil
		a.fail(err)
		return a
	}
	answer.Body = o.withoutCredentials(j, request.Header, answer.Body, now)
	a.answered(answer, body, now.Add(a.command.Duration))
	return a
}

func (o *Outbox) begin(j Job, now time.Time) Attempt {
	return Attempt{job: j, command: ledger.RecordAttempt{
		Header: o.header(), Delivery: j.delivery.ID, Endpoint: j.delivery.Endpoint, Fence: j.delivery.Lease,
		Policy: policyOf(j.endpoint), At: pawl.TimeOf(now),
	}}
}

var errPanicked = errors.New("the attempt failed by a fault of ours")

// attempt is [Outbox.Act] in the running node, where a panic is a failed attempt:
// it counts, so that what always fails ends as a dead letter, and it harms
// nothing else (O-107).
func (o *Outbox) attempt(ctx context.Context, j Job, now time.Time) (a Attempt) {
	defer telemetry.Contain(o.o.Log, "delivery "+j.String(), func() {
		a = o.begin(j, now)
		a.fail(errPanicked)
	})
	return o.Act(ctx, j, now)
}

func (a *Attempt) fail(err error) {
	var refused *egress.Refused
	var cannot unsendable
	switch {
	case errors.As(err, &refused):
		a.command.Failure = ledger.EgressRefused
	case errors.As(err, &cannot):
		a.command.Failure = ledger.Unsendable
	default:
		a.command.Failure = ledger.NoAnswer
	}
	// Errors of egress name a host at most, and ours nothing; the log's rules
	// are kept here all the same, since the text is stored and shown.
	a.command.Error = telemetry.Redact(err.Error())
}

// answered takes the status, which alone decides, and what helps a person.
func (a *Attempt) answered(r *egress.Response, sent []byte, received time.Time) {
	a.command.Status = int32(r.Status)
	a.command.Excerpt = telemetry.Excerpt(withoutEcho(r.Body, sent, a.job), r.Header.Get("Content-Type"), maxExcerpt)
	a.command.RetryAfter, _ = strict.RetryAfter(r.Header.Get("Retry-After"), received)
	if r.Cut != nil {
		a.command.Error = telemetry.Redact(r.Cut.Error())
	}
}

package upstream

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/strict"
)

// maxAnswer bounds an answer's body.
const maxAnswer = 4 << 20

// sendFailure is a request without a whole answer.
type sendFailure struct {
	// refused says that our own rules forbid the address.
	refused bool
	// nothingWritten says that the provider cannot have seen the request.
	nothingWritten bool
	reason         string
}

// send sends one request and reads the whole answer. Only reads may be sent
// again by the transport, when a kept connection turns out to be dead.
func (u Upstream) send(ctx context.Context, client *egress.Client, req *http.Request) (answer, *sendFailure) {
	limits := egress.Limits{Timeout: u.settings.Timeout, MaxResponse: maxAnswer, NoResend: req.Method != http.MethodGet}
	res, err := client.Do(ctx, req, limits)
	if err != nil {
		return answer{}, failureOf(err)
	}
	if res.Truncated {
		return answer{}, &sendFailure{reason: ReasonCut}
	}
	return answer{status: res.Status, header: res.Header, body: res.Body}, nil
}

// failureOf errs towards "may have been written" for whatever it does not know.
func failureOf(err error) *sendFailure {
	var refused *egress.Refused
	var failed *egress.Error
	switch {
	case errors.As(err, &refused):
		return &sendFailure{refused: true, nothingWritten: true, reason: ReasonEgress}
	case errors.As(err, &failed):
		return &sendFailure{nothingWritten: !failed.MaybeWritten, reason: string(failed.Cause)}
	}
	return &sendFailure{reason: ReasonFailure}
}

// retryAfter is how long the provider wants us to wait, counted from receipt.
func (a answer) retryAfter(now time.Time) time.Duration {
	wait, _ := strict.RetryAfter(a.header.Get("Retry-After"), now)
	return wait
}

package dialect

import (
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Backend is the API behind the fronts: the same checks and the same commands as
// /v1.
type Backend interface {
	// Route serves a request by the routes of mux. The error is the refusal of a
	// path or method that mux has none for; then nothing was written.
	Route(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) error
	// Serve judges who calls and whether they may, and then acts with their call.
	// The error is a refusal by it or by act.
	Serve(w http.ResponseWriter, r *http.Request, need Need, act func(Call) error) error
	// Explain says what an error means to the caller; one of ours is logged.
	Explain(r *http.Request, err error) Refusal
}

// Need is what a route asks of its callers.
type Need struct {
	Scope ledger.Scopes
	// Creates says that it takes in something new and may carry a large body.
	Creates bool
	// Keyed says that it takes an Idempotency-Key, KeyRequired that it needs one.
	Keyed, KeyRequired bool
	// Query are the parameters that it knows.
	Query []string
	// Anonymous is the API key that a request without Authorization counts as;
	// zero for none.
	Anonymous pawl.ID
}

// Call is one admitted request. It ends with the function that it was given to.
type Call interface {
	// Decode reads the body strictly; an empty one counts as an empty object.
	Decode(into any) error
	// Submit submits an operation as POST /v1/operations does.
	Submit(s Submission) (Job, error)
	// Job is an operation that the caller may see.
	Job(id pawl.ID) (Job, error)
}

// Submission is what is submitted through a front.
type Submission struct {
	Upstream, Model string
	// Asked is the model by the name that the caller used.
	Asked string
	// Input is JSON, kept as it was received.
	Input []byte
	// Callback gets the operation's events in the dialect.
	Callback string
	// Dialect is the front's, whose scheme signs the callbacks.
	Dialect string
}

// Job is an operation as its caller may see it.
type Job struct {
	View ledger.OperationJSON
	// Replayed says that it was there before, by its Idempotency-Key.
	Replayed bool
}

// Refusal is what a caller is told who gets nothing else.
type Refusal struct {
	Status int
	// Detail says what to do; it holds nothing of the request's payload.
	Detail string
	// Header are headers that belong to it, such as Retry-After.
	Header http.Header
	// Operation is the one that an Idempotency-Key stands for already, zero for
	// none to be told.
	Operation pawl.ID
}

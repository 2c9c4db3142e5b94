package dialect

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// Settings are what a configuration says of the fronts.
type Settings struct {
	// Models are upstream and model, with a slash between, by the names that
	// callers of media-v2 use for them.
	Models map[string]string
	// Upstream and Model are what a call of POST /tasks means that names none.
	Upstream, Model string
	// Anonymous is the API key that calls under /tasks without Authorization count
	// as; zero refuses them.
	Anonymous pawl.ID
}

// Fronts serves the calls of both dialects, under /api/v1 and /tasks. Take it
// from [New]; it is safe for concurrent use.
type Fronts struct {
	backend      Backend
	settings     atomic.Pointer[Settings]
	media, tasks *front
}

// front is one dialect: where it is and how it speaks.
type front struct {
	root string
	mux  *http.ServeMux
	// prefix begins its task ids.
	prefix string
	// refusal is the body that refuses.
	refusal func(r *http.Request, status int, detail string) any
}

// New makes the fronts.
func New(backend Backend, s Settings) *Fronts {
	f := &Fronts{
		backend: backend,
		media:   &front{"/api/v1", http.NewServeMux(), prefixJob, mediaRefusal},
		tasks:   &front{"/tasks", http.NewServeMux(), prefixTask, taskRefusal},
	}
	f.handle(f.media, "POST /api/v1/jobs/createTask", f.createJob)
	f.handle(f.media, "GET /api/v1/jobs/recordInfo", f.readJob)
	f.handle(f.tasks, "POST /tasks", f.createTask)
	f.handle(f.tasks, "GET /tasks/{id}", f.readTask)
	f.Reload(s)
	return f
}

// Reload goes over to other settings. Calls under way keep what they have.
func (f *Fronts) Reload(s Settings) { f.settings.Store(&s) }

func (f *Fronts) handle(at *front, pattern string, serve func(http.ResponseWriter, *http.Request) error) {
	at.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r); err != nil {
			f.refuse(at, w, r, err)
		}
	})
}

// of is the front that a path belongs to, nil for none.
func (f *Fronts) of(r *http.Request) *front {
	for _, at := range [...]*front{f.media, f.tasks} {
		if rest, ok := strings.CutPrefix(r.URL.Path, at.root); ok && (rest == "" || rest[0] == '/') {
			return at
		}
	}
	return nil
}

// Serves reports whether a request is for a front.
func (f *Fronts) Serves(r *http.Request) bool { return f.of(r) != nil }

// ServeHTTP answers a request for which [Fronts.Serves] holds. Every answer is
// in the dialect's form, refusals of paths and methods included.
func (f *Fronts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := f.of(r)
	w.Header().Set("Cache-Control", "no-store")
	if err := f.backend.Route(at.mux, w, r); err != nil {
		f.refuse(at, w, r, err)
	}
}

// Panicked answers for a handler that panicked before it wrote anything, as
// telemetry.HTTP asks for; [Fronts.Serves] holds for its request.
func (f *Fronts) Panicked(w http.ResponseWriter, r *http.Request) {
	f.refuse(f.of(r), w, r, &fault{http.StatusInternalServerError, "the request failed by a fault of ours"})
}

// fault is a refusal of a front's own.
type fault struct {
	status int
	detail string
}

// Error is the detail.
func (f *fault) Error() string { return f.detail }

func missing(member string) error {
	return &fault{http.StatusBadRequest, "/" + member + ": is missing"}
}

// errNoTask is the one answer about ids that are unknown, of another form, or of
// another tenant.
var errNoTask = &fault{http.StatusNotFound, "task not found"}

// refuse answers with what an error means to the caller.
func (f *Fronts) refuse(at *front, w http.ResponseWriter, r *http.Request, err error) {
	var no Refusal
	if own := (*fault)(nil); errors.As(err, &own) {
		no = Refusal{Status: own.status, Detail: own.detail}
	} else {
		no = f.backend.Explain(r, err)
	}
	if !no.Operation.IsZero() {
		no.Detail += "; it stands for " + no.Operation.Text(at.prefix)
	}
	maps.Copy(w.Header(), no.Header)
	answer(w, no.Status, at.refusal(r, no.Status, no.Detail))
}

// answer sends JSON.
func answer(w http.ResponseWriter, status int, v any) {
	body, err := encode(v)
	if err != nil {
		panic(err) // All of it is text, and JSON that was read before.
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // The client is gone: nobody is left to tell.
}

// created marks the answer to a repeated create, as /v1 does.
func created(w http.ResponseWriter, j Job) {
	if j.Replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
}

// found is the operation that a task id of a front names.
func found(c Call, prefix, text string) (Job, error) {
	id, err := pawl.ParseID(prefix, text)
	if err != nil {
		return Job{}, errNoTask
	}
	job, err := c.Job(id)
	if kind := (*pawl.Error)(nil); errors.As(err, &kind) && kind.Kind == pawl.NotFound {
		err = errNoTask
	}
	return job, err
}

func requestID(r *http.Request) string { return telemetry.RequestID(r.Context()) }

package dialect

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/strict"
)

// taskRequest is the body of POST /tasks (2-contracts §3).
type taskRequest struct {
	Upstream    string          `json:"upstream"`
	Model       string          `json:"model"`
	Input       json.RawMessage `json:"input"`
	CallbackURL string          `json:"callback_url"`
}

// taskRefused is what refuses under /tasks.
type taskRefused struct {
	Error string `json:"error"`
}

func taskRefusal(_ *http.Request, _ int, detail string) any { return taskRefused{detail} }

func (f *Fronts) createTask(w http.ResponseWriter, r *http.Request) error {
	s := f.settings.Load()
	need := Need{Scope: ledger.ScopeSubmit, Creates: true, Keyed: true, Anonymous: s.nameless(r)}
	return f.backend.Serve(w, r, need, func(c Call) error {
		var in taskRequest
		if err := c.Decode(&in); err != nil {
			return err
		}
		if err := s.fill(&in); err != nil {
			return err
		}
		job, err := c.Submit(Submission{
			Upstream: in.Upstream, Model: in.Model, Input: in.Input, Callback: in.CallbackURL, Dialect: BodyTimestamp,
		})
		if err != nil {
			return err
		}
		created(w, job)
		answer(w, http.StatusAccepted, accepted{prefixTask + "_" + suffix(job.View), versionedState(job.View.State)})
		return nil
	})
}

// fill adds what a bare client leaves out (7-rules R44). A model that stands
// alone belongs to the configured upstream; without one it names its upstream
// before a slash, since Pawl itself as a caller has no member for that.
func (s *Settings) fill(in *taskRequest) error {
	switch {
	case in.Upstream != "":
	case s.Upstream != "":
		in.Upstream = s.Upstream
	default:
		if upstream, model, ok := strings.Cut(in.Model, "/"); ok {
			in.Upstream, in.Model = upstream, model
		}
	}
	configured := s.Upstream != "" && in.Upstream == s.Upstream
	if configured {
		in.Model = cmp.Or(in.Model, s.Model)
	}
	if configured && in.Input == nil {
		in.Input = json.RawMessage(`{}`)
	}
	switch {
	case in.Upstream == "":
		return missing("upstream")
	case in.Model == "":
		return missing("model")
	}
	return nil
}

func (f *Fronts) readTask(w http.ResponseWriter, r *http.Request) error {
	need := Need{Scope: ledger.ScopeRead, Anonymous: f.settings.Load().nameless(r)}
	return f.backend.Serve(w, r, need, func(c Call) error {
		job, err := found(c, prefixTask, r.PathValue("id"))
		if err == nil {
			answer(w, http.StatusOK, versionedTaskOf(job.View))
		}
		return err
	})
}

// nameless is the API key that a request without Authorization counts as. That
// the listener is a loopback one does not keep out what comes through a proxy
// or from a web page in a browser of the same machine, so neither counts.
func (s *Settings) nameless(r *http.Request) pawl.ID {
	for name := range r.Header {
		// Proxies make up new ones of the family: X-Forwarded-Proto, -Port, -Server.
		if strings.HasPrefix(name, "X-Forwarded-") || slices.Contains([]string{"Forwarded", "X-Real-Ip", "Via"}, name) {
			return pawl.ID{}
		}
	}
	if !strict.Loopback(r.Host) || http.NewCrossOriginProtection().Check(r) != nil {
		return pawl.ID{}
	}
	return s.Anonymous
}

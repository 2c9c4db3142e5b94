package dialect

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/pawlhq/pawl/internal/ledger"
)

// jobRequest is the body of createTask (2-contracts §2).
type jobRequest struct {
	Model       string          `json:"model"`
	Input       json.RawMessage `json:"input"`
	CallBackURL string          `json:"callBackUrl"`
}

// jobCreated is the data of its answer.
type jobCreated struct {
	TaskID string `json:"taskId"`
}

func mediaRefusal(r *http.Request, status int, detail string) any {
	return envelope{status, detail, nil, requestID(r)}
}

func (f *Fronts) createJob(w http.ResponseWriter, r *http.Request) error {
	need := Need{Scope: ledger.ScopeSubmit, Creates: true, KeyRequired: true}
	return f.backend.Serve(w, r, need, func(c Call) error {
		var in jobRequest
		if err := c.Decode(&in); err != nil {
			return err
		}
		if in.Model == "" {
			return missing("model")
		}
		upstream, model, err := f.settings.Load().resolve(in.Model)
		if err != nil {
			return err
		}
		job, err := c.Submit(Submission{
			Upstream: upstream, Model: model, Asked: in.Model, Input: in.Input, Callback: in.CallBackURL, Dialect: MediaV2,
		})
		if err != nil {
			return err
		}
		created(w, job)
		answer(w, http.StatusOK, success(jobCreated{prefixJob + "_" + suffix(job.View)}, requestID(r)))
		return nil
	})
}

// resolve finds upstream and model by the name that a caller gives: a configured
// name, else both with a slash between. The model's own name may hold slashes.
func (s *Settings) resolve(name string) (upstream, model string, err error) {
	full, ok := s.Models[name]
	if !ok {
		full = name
	}
	upstream, model, ok = strings.Cut(full, "/")
	if !ok || upstream == "" || model == "" {
		return "", "", &fault{http.StatusUnprocessableEntity, "there is no such model; give UPSTREAM/MODEL or a name that is configured"}
	}
	return upstream, model, nil
}

func (f *Fronts) readJob(w http.ResponseWriter, r *http.Request) error {
	need := Need{Scope: ledger.ScopeRead, Query: []string{"taskId"}}
	return f.backend.Serve(w, r, need, func(c Call) error {
		id := r.URL.Query().Get("taskId")
		if id == "" {
			return &fault{http.StatusBadRequest, "the parameter taskId is missing"}
		}
		job, err := found(c, prefixJob, id)
		if err == nil {
			answer(w, http.StatusOK, success(mediaTaskOf(job.View), requestID(r)))
		}
		return err
	})
}

package api

import (
	"net/http"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// artifactList are an operation's result files, in the order of its result.
type artifactList struct {
	Items []ledger.ArtifactJSON `json:"items"`
}

// artifactLink is a captured file with a link of ours to it.
type artifactLink struct {
	Artifact ledger.ArtifactJSON `json:"artifact"`
	URL      string              `json:"url" format:"uri" doc:"Needs no API key: whoever has it has the file."`
	Until    pawl.Time           `json:"until" format:"date-time" doc:"When the link ends."`
}

func (a *api) artifactRoutes() {
	handle(a, route{
		method: http.MethodGet, path: "/v1/operations/{id}/artifacts", name: "listArtifacts", tag: "artifacts", scope: ledger.ScopeRead, status: http.StatusOK,
		summary: "The files of an operation's result; none while the result is held",
	}, listArtifacts)
	handle(a, route{
		method: http.MethodGet, path: "/v1/artifacts/{id}", name: "getArtifact", tag: "artifacts", scope: ledger.ScopeRead, status: http.StatusFound,
		summary: "Redirects to the copy of a result file, by a link that ends soon",
		headers: []answerHeader{{name: "Location"}},
		refuses: reasons{http.StatusConflict: {"not_captured", "held"}, http.StatusGone: {"capture_failed", "artifact_removed"}},
	}, getArtifact)
	handle(a, route{
		method: http.MethodPost, path: "/v1/operations/{id}/release", name: "releaseOperation", tag: "operations", scope: ledger.ScopeOperate, status: http.StatusOK,
		summary: "Let a held result out; a second time changes nothing",
		refuses: reasons{http.StatusConflict: {"not_held", "no_result_yet"}},
	}, releaseOperation)
}

// releaseRequest says why a result is let out.
type releaseRequest struct {
	Note string `json:"note,omitempty" maxLength:"1000" doc:"Kept in the audit and the timeline."`
}

func releaseOperation(c *call, in releaseRequest) (ledger.OperationJSON, error) {
	op, err := c.operation()
	if err != nil {
		return ledger.OperationJSON{}, err
	}
	var f faults
	f.check(plainText(in.Note, maxDescription), "/note", "is longer than 1000 bytes or holds control characters")
	if err := f.err(); err != nil {
		return ledger.OperationJSON{}, err
	}
	return c.changed(ledger.Release{Header: c.head(), Tenant: c.tenant, Operation: op.ID, Note: in.Note})
}

func listArtifacts(c *call, _ none) (artifactList, error) {
	op, err := c.operation()
	if err != nil {
		return artifactList{}, err
	}
	rows, err := c.load(c.ctx, ledger.Keys{ArtifactSets: []pawl.ID{op.ID}})
	if err != nil {
		return artifactList{}, err
	}
	return artifactList{op.ShowArtifacts(rows.ArtifactsOf(op.ID))}, nil
}

func getArtifact(c *call, _ none) (artifactLink, error) {
	id, err := c.id(pawl.PrefixArtifact)
	if err != nil {
		return artifactLink{}, err
	}
	rows, err := c.load(c.ctx, ledger.Keys{Artifacts: []pawl.ID{id}})
	if err != nil {
		return artifactLink{}, err
	}
	a, ok := rows.Artifacts.Get(id)
	if !ok || !c.sees(a.Tenant) || a.State == pawl.ArtifactDropped && !a.Removed() {
		return artifactLink{}, errNotFound
	}
	of, err := c.load(c.ctx, ledger.Keys{Operations: []pawl.ID{a.Operation}})
	if err != nil {
		return artifactLink{}, err
	}
	op, _ := of.Operations.Get(a.Operation)
	switch {
	case a.Removed():
		return artifactLink{}, refuse(http.StatusGone, "artifact_removed", "the file is no longer kept: its time was over, or the operation was erased")
	case op.Held():
		return artifactLink{}, refuse(http.StatusConflict, "held", "the operation's result is held until it is released")
	case a.State == pawl.ArtifactFailed:
		return artifactLink{}, refuse(http.StatusGone, "capture_failed", "the file could not be saved; the operation's review says why, and can have it tried again")
	case a.State != pawl.ArtifactCaptured:
		return artifactLink{}, refuse(http.StatusConflict, "not_captured", "the file is not saved yet; the event operation.artifacts.ready tells when it is")
	}
	url, until := c.opts.ArtifactURL(a, time.Now())
	c.header.Set("Location", url)
	return artifactLink{a.View(), url, pawl.TimeOf(until)}, nil
}

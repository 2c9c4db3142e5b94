package api

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// problemPage explains one type of problem (RFC 9457 §4).
type problemPage struct {
	Type     string `json:"type" format:"uri-reference" example:"/v1/problems/insufficient_credit"`
	Reason   string `json:"reason" example:"insufficient_credit"`
	Title    string `json:"title"`
	Statuses []int  `json:"statuses" doc:"The statuses that calls answer with for this reason."`
	Meaning  string `json:"meaning" doc:"What has happened."`
	Remedy   string `json:"remedy" doc:"What to do about it."`
}

// problemRoutes serve the pages that the types of problems lead to. They are the
// same for everybody, need no API key, and are there without any network but the
// way to this node.
func (a *api) problemRoutes() {
	refusals := func(of reasons) map[string]*huma.Response {
		all := map[string]*huma.Response{}
		for status, words := range of {
			all[strconv.Itoa(status)] = a.refusal(status, words)
		}
		return all
	}
	answers := refusals(reasons{http.StatusNotFound: {"not_found"}, http.StatusRequestHeaderFieldsTooLarge: {"headers_too_large"}})
	answers[strconv.Itoa(http.StatusOK)] = &huma.Response{
		Description: http.StatusText(http.StatusOK), Headers: map[string]*huma.Param{"Pawl-Request-Id": a.header("Pawl-Request-Id", true)},
		Content: map[string]*huma.MediaType{"application/json": {Schema: a.doc.Components.Schemas.Schema(reflect.TypeFor[problemPage](), true, "ProblemPage")}},
	}
	a.doc.AddOperation(&huma.Operation{
		Method: http.MethodGet, Path: "/v1/problems/{name}", OperationID: "getProblem", Tags: []string{"description"},
		Summary: "What a problem's type means, and its remedy; it needs no API key", Security: []map[string][]string{{}},
		Parameters: []*huma.Param{{Name: "name", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}}},
		Responses:  answers,
	})
	a.tells(http.StatusMethodNotAllowed, []string{"method_not_allowed"}) // Of no route.
	a.mux.HandleFunc("GET /v1/problems/{name}", func(w http.ResponseWriter, r *http.Request) {
		reason := r.PathValue("name")
		text, ok := explanations[reason]
		if !ok {
			a.fail(w, r, refuse(http.StatusNotFound, "not_found", "no problem has this reason"))
			return
		}
		_ = writeJSON(w, http.StatusOK, problemPage{problemBase + reason, reason, titles[reason], append([]int{}, a.statuses[reason]...), text.meaning, text.remedy})
	})
}

// tells notes that calls answer with a status for a reason.
func (a *api) tells(status int, words []string) {
	for _, word := range words {
		if !slices.Contains(a.statuses[word], status) {
			a.statuses[word] = append(a.statuses[word], status)
			slices.Sort(a.statuses[word])
		}
	}
}

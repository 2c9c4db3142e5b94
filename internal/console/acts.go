package console

import (
	"net/http"
	"strings"
)

// act is something that a page does: one call of the API with the form's fields,
// for the reason that the form gives.
type act struct {
	// path is that of the console, whose {id} or {name} goes into the API's path to,
	// and into back, the page that is shown afterwards.
	path, to, back string
	method         string
	// body are the members of the request that come from fields of the form, by
	// the field's name; empty ones are left out.
	body map[string]string
	// once sends the form's own idempotency key: pressed twice, done once.
	once bool
	// done is what the next page says.
	done string
}

// acts are all of them. Each needs a reason, which goes into the audit.
var acts = [...]act{
	{path: "/console/operations/{id}/read", to: "/v1/operations/{id}/reconcile", back: "/console/operations/{id}", done: "The upstream is read as soon as its limits allow."},
	{path: "/console/operations/{id}/cancel", to: "/v1/operations/{id}/cancel", back: "/console/operations/{id}", once: true, done: "The cancel is asked for. The provider's word decides."},
	{
		path: "/console/operations/{id}/resolve", to: "/v1/operations/{id}/resolve", back: "/console/operations/{id}", once: true, done: "The decision is recorded.",
		body: map[string]string{"decision": "decision", "task_id": "task_id", "from": "from", "reason": "note"},
	},
	{
		path: "/console/operations/{id}/release", to: "/v1/operations/{id}/release", back: "/console/operations/{id}", done: "The result is let out.",
		body: map[string]string{"reason": "note"},
	},
	{path: "/console/deliveries/{id}/retry", to: "/v1/deliveries/{id}/retry", back: "/console/deliveries/{id}", once: true, done: "It is sent again as soon as the endpoint's turn comes."},
	{
		path: "/console/reviews/{id}/resolve", to: "/v1/reviews/{id}/resolve", back: "/console/reviews/{id}", once: true, done: "The decision is recorded.",
		body: map[string]string{"decision": "decision", "task_id": "task_id", "operation_id": "operation_id", "reason": "note"},
	},
	{
		path: "/console/reviews/{id}/assign", to: "/v1/reviews/{id}/assign", back: "/console/reviews/{id}", done: "The owner is recorded.",
		body: map[string]string{"owner": "owner"},
	},
	{
		path: "/console/reviews/{id}/note", to: "/v1/reviews/{id}/notes", back: "/console/reviews/{id}", once: true, done: "The note is kept.",
		body: map[string]string{"reason": "note"},
	},
	{path: "/console/replays/{id}/pause", to: "/v1/replays/{id}/pause", back: "/console/replays/{id}", once: true, done: "It stops after the step under way."},
	{path: "/console/replays/{id}/resume", to: "/v1/replays/{id}/resume", back: "/console/replays/{id}", once: true, done: "It goes on."},
	{path: "/console/replays/{id}/cancel", to: "/v1/replays/{id}/cancel", back: "/console/replays/{id}", once: true, done: "It ends after the step under way; what was done stays done."},
	{
		path: "/console/operations/{id}/erase", to: "/v1/erasures", back: "/console/operations/{id}", done: "What it holds is being erased. The ledger's facts stay.",
		body: map[string]string{"operation": "operation_id", "reason": "reason"},
	},
	{
		path: "/console/upstreams/{name}/pause", to: "/v1/upstreams/{name}/pause", back: "/console/upstreams", done: "Creates stand still. Reads, callbacks and cancels go on.",
		body: map[string]string{"reason": "reason"},
	},
	{path: "/console/deliveries/{id}/complete", to: "/v1/deliveries/{id}/complete", back: "/console/deliveries/{id}", done: "It counts as done."},
	{path: "/console/events/{id}/reprocess", to: "/v1/events/{id}/reprocess", back: "/console/events/{id}", done: "It was judged anew; what it came to stands beside its first verdict."},
	{path: "/console/endpoints/{id}/pause", to: "/v1/endpoints/{id}/pause", back: "/console/endpoints/{id}", done: "Nothing is sent to it; what is owed waits."},
	{path: "/console/endpoints/{id}/enable", to: "/v1/endpoints/{id}/enable", back: "/console/endpoints/{id}", done: "It is sent to again, from the oldest that waits."},
	{
		path: "/console/endpoints/{id}/test", to: "/v1/endpoints/{id}/test", back: "/console/endpoints/{id}", once: true, done: "A test event is on its way; it is the first of the deliveries below.",
		body: map[string]string{"type": "type"},
	},
	{path: "/console/endpoints/{id}/delete", to: "/v1/endpoints/{id}", back: "/console/endpoints", method: http.MethodDelete, done: "The endpoint is deleted. What waited for it is skipped."},
	{path: "/console/keys/{id}/revoke", to: "/v1/keys/{id}", back: "/console/keys/{id}", method: http.MethodDelete, done: "The key is revoked."},
	{
		path: "/console/accounts/{id}/credit", to: "/v1/accounts/{id}/credit", back: "/console/accounts/{id}", once: true, done: "The account is credited.",
		body: map[string]string{"amount": "amount", "currency": "currency", "reason": "note"},
	},
	{path: "/console/upstreams/{name}/resume", to: "/v1/upstreams/{name}/resume", back: "/console/upstreams", done: "Every pause has ended."},
}

// backField is the field of a form that names the page to be shown afterwards, in
// place of the act's own.
const backField = "back"

// reason reads the form and gives the reason that each must have.
func (v *visit) reason() (string, error) {
	if err := v.r.ParseForm(); err != nil {
		return "", &problem{Status: http.StatusBadRequest, Title: "The form cannot be read", Detail: "It is larger than 64 KiB, or damaged. Go back and send it again."}
	}
	why := strings.TrimSpace(v.r.PostForm.Get("reason"))
	if why == "" {
		return "", &problem{Status: http.StatusBadRequest, Title: "A reason is missing", Detail: "Go back and say in a few words why: it goes into the audit beside your key."}
	}
	return why, nil
}

func (a act) run(v *visit) error {
	why, err := v.reason()
	if err != nil {
		return err
	}
	cl := call{method: a.method, path: v.fill(a.to), why: why}
	if cl.method == "" {
		cl.method = http.MethodPost
	}
	if a.once {
		cl.once = v.r.PostForm.Get("once")
	}
	if len(a.body) > 0 {
		body := make(map[string]string)
		for field, member := range a.body {
			if value := strings.TrimSpace(v.r.PostForm.Get(field)); value != "" {
				body[member] = value
			}
		}
		cl.body = body
	}
	if err := v.do(cl, nil); err != nil {
		return err
	}
	v.sessions.tell(v.token, a.done)
	back := v.fill(a.back)
	if asked := v.r.PostForm.Get(backField); asked != "" {
		back = local(asked)
	}
	return v.redirect(back)
}

// fill puts the parts of the request's path into a pattern.
func (v *visit) fill(pattern string) string {
	for _, name := range [...]string{"id", "name"} {
		pattern = strings.ReplaceAll(pattern, "{"+name+"}", v.r.PathValue(name))
	}
	return pattern
}

package canary_test

import (
	"fmt"
	"net/http"
	"strings"
)

// The answers of the fronts that show a task.
const (
	recordInfo sink = "GET /api/v1/jobs/recordInfo"
	readTask   sink = "GET /tasks/{id}"
)

// fronts has the fronts do and refuse what they can, with values in every place.
func (w *world) fronts() {
	const create = "/api/v1/jobs/createTask"
	input := func(do string) string { return `{"prompt":"` + thePrompt + `","do":"` + do + `"}` }
	callback := callbackAt(w.receiver.URL)
	for do, state := range map[string]string{"read ends": "succeeded", "read fails": "failed"} {
		key := theKey + "-front-" + strings.ReplaceAll(do, " ", "-")
		made := w.need(http.StatusOK, w.call(w.reader, http.MethodPost, create, create,
			`{"model":"up/m","input":`+input(do)+`,"callBackUrl":"`+callback+`"}`, "Idempotency-Key", key))
		job := fmt.Sprint(made.fields["data"].(map[string]any)["taskId"])
		w.eventually("the job never "+state, func() bool {
			r := w.need(http.StatusOK, w.call(w.reader, http.MethodGet, "/api/v1/jobs/recordInfo", "/api/v1/jobs/recordInfo?taskId="+job, nil))
			return r.fields["data"].(map[string]any)["state"] == state
		})
		task := w.need(http.StatusAccepted, w.call(w.reader, http.MethodPost, "/tasks", "/tasks",
			`{"upstream":"up","model":"m","input":`+input(do)+`,"callback_url":"`+callback+`"}`)).text("task_id")
		w.eventually("the task never "+state, func() bool {
			return w.need(http.StatusOK, w.call(w.reader, http.MethodGet, "/tasks/{id}", "/tasks/"+task, nil)).text("status") == state
		})
	}
	const value = theRefused
	keyed := []string{"Idempotency-Key", theKey + "-front-refused"}
	for _, r := range []refusal{
		{http.MethodPost, create, `{"model":"` + value, keyed, 400},
		{http.MethodPost, create, `{"model":"` + value + `","input":{}}`, keyed, 422},
		{http.MethodPost, create, `{"model":"` + value + `/` + value + `","input":{}}`, keyed, 422},
		{http.MethodPost, create, `{"model":"up/m","input":"` + value + `"}`, keyed, 400},
		{http.MethodPost, create, `{"model":"up/m","input":{},"callBackUrl":"ftp://u:` + value + `@h.example/` + value + `"}`, keyed, 400},
		{http.MethodPost, create, `{"model":"up/m","input":{},"` + theName + `":"` + value + `"}`, keyed, 400},
		{http.MethodPost, create, `{"model":"up/m","input":{"other":"` + value + `"}}`, []string{"Idempotency-Key", theKey + "-front-read-ends"}, 422},
		{http.MethodPost, create, `{"model":"up/m","input":{}}`, []string{"Idempotency-Key", theKey + " " + theKey}, 400},
		{http.MethodPost, create, `{}`, []string{"Authorization", "Bearer pawl_sk_" + value + value}, 401},
		{http.MethodGet, "/api/v1/jobs/recordInfo?taskId=" + value, "", nil, 404},
		{http.MethodGet, "/api/v1/jobs/recordInfo?" + theName + "=" + value, "", nil, 400},
		{http.MethodGet, "/api/v1/" + value, "", nil, 404},
		{http.MethodPost, "/tasks", `{"upstream":"` + value + `","model":"` + value + `","input":{}}`, nil, 422},
		{http.MethodPost, "/tasks", `{"upstream":"up","model":"m","input":{},"` + theName + `":"` + value + `"}`, nil, 400},
		{http.MethodPost, "/tasks", `{"upstream":"up","model":"m","input":{},"callback_url":"` + value + `"}`, nil, 400},
		{http.MethodGet, "/tasks/" + value, "", nil, 404},
		{http.MethodGet, "/tasks/" + value + "/" + value, "", nil, 404},
		{http.MethodGet, "/tasks//" + value, "", nil, 404},
		{http.MethodDelete, "/tasks/" + value, "", nil, 405},
	} {
		w.refused(w.reader, r)
	}
}

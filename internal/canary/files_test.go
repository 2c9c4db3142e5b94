package canary_test

import (
	"net/http"
	"strings"
)

// files captures the file of a result, gives it out by a link of ours, and holds
// back the result of another operation, whose file is captured as well.
func (w *world) files() {
	get := func(key, route, id, more string) reply {
		return w.call(key, http.MethodGet, route, strings.Replace(route, "{id}", id, 1)+more, nil)
	}
	held := w.job("up", "read held")
	held["release"] = "hold"
	hidden := w.need(http.StatusAccepted, w.call(w.reader, http.MethodPost, "/v1/operations", "/v1/operations", held, "Idempotency-Key", theKey+"-held")).text("id")
	op := w.submit("up", "read file")
	var file string
	w.eventually("the file was not captured", func() bool {
		for _, item := range items(w.need(http.StatusOK, get(w.reader, "/v1/operations/{id}/artifacts", op, ""))) {
			file, _ = item["id"].(string)
			return item["state"] == "captured"
		}
		return false
	})
	for _, key := range []string{w.reader, theAdminKey} {
		link := w.need(http.StatusFound, get(key, "/v1/artifacts/{id}", file, "")).text("url")
		token := link[strings.LastIndex(link, "/")+1:]
		w.add(fileToken, token[len(token)-32:])
		if r := w.need(http.StatusOK, w.ask("GET /files/{token}", http.MethodGet, link, nil, http.Header{})); r.body != "a film" {
			w.Errorf("the file is %q", r.body)
		}
		w.need(http.StatusNotFound, w.ask("GET /files/{token}", http.MethodGet, link+"x", nil, http.Header{}))
		w.need(http.StatusMethodNotAllowed, w.ask("GET /files/{token}", http.MethodPost, link, nil, http.Header{}))
	}
	w.eventually("the held operation has not succeeded", func() bool { return w.operation(hidden).text("state") == "succeeded" })
	w.eventually("the held file was not fetched", func() bool { return w.seen(heldResult, toProvider) })
	w.need(http.StatusOK, get(theAdminKey, "/v1/operations/{id}/artifacts", hidden, ""))
	w.need(http.StatusOK, get(theAdminKey, "/v1/operations/{id}/timeline", hidden, ""))
	w.need(http.StatusOK, get(theAdminKey, "/v1/operations/{id}", hidden, ""))
}

// seen reports whether a value of a class was written to a sink so far.
func (w *watch) seen(c class, s sink) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for text := range w.texts[s] {
		for _, v := range w.values[c] {
			if strings.Contains(text, v) {
				return true
			}
		}
	}
	return false
}

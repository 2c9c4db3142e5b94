package canary_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// signed gives the headers of an event under the standard scheme.
func (w *watch) signed(secret, id string, body []byte) http.Header {
	scheme, _ := webhook.Lookup("standard-webhooks")
	key, err := scheme.ParseKey(secret)
	if err != nil {
		w.Fatal(err)
	}
	h, err := scheme.Sign(webhook.Message{ID: id, Timestamp: time.Now().Unix(), Body: body}, key)
	if err != nil {
		w.Fatal(err)
	}
	w.add(callSignature, strings.TrimPrefix(h.Get("webhook-signature"), "v1,"))
	h.Set("Content-Type", "application/json")
	return h
}

// types are those of the events that are about no operation.
var types = []string{"order.placed", "shop.opened"}

// subscribe makes endpoints for events that are about no operation: one that takes
// them, one that echoes them, one that is handed the bytes received, and a feed.
func (w *world) subscribe() (feed string) {
	for _, mood := range []string{"ok", "html"} {
		w.need(http.StatusCreated, w.call(theAdminKey, http.MethodPost, "/v1/endpoints", "/v1/endpoints", map[string]any{
			"url": endpointAt(w.receiver.URL, mood), "secret": theEndpointSecret, "types": types, "policy": map[string]any{"attempts": 1},
		}))
	}
	w.need(http.StatusCreated, w.call(theAdminKey, http.MethodPost, "/v1/endpoints", "/v1/endpoints", map[string]any{
		"url": endpointAt(w.receiver.URL, "ok"), "secret": theEndpointSecret, "types": types[1:], "content": "original",
	}))
	return w.need(http.StatusCreated, w.call(theAdminKey, http.MethodPost, "/v1/endpoints", "/v1/endpoints", map[string]any{
		"kind": "feed", "types": types,
	})).text("id")
}

// others has events published, events of a generic source taken and refused, and
// jobs done by own workers.
func (w *world) others() {
	feed := w.subscribe()
	w.published()
	w.received()
	w.worked()
	for _, key := range []string{w.reader, theAdminKey} {
		w.eventually("the feed is empty", func() bool {
			return len(items(w.need(http.StatusOK, w.call(key, http.MethodGet, "/v1/events?endpoint", "/v1/events?after=0&endpoint="+feed, nil)))) >= 2
		})
	}
}

func (w *world) published() {
	event := func(data string) string { return `{"id":"own-1","type":"order.placed","data":{"note":"` + data + `"}}` }
	const path = "/v1/events"
	for range 2 {
		w.need(http.StatusAccepted, w.call(w.reader, http.MethodPost, path, path, event(theOwn), "Idempotency-Key", theKey+"-own"))
	}
	for _, r := range []refusal{
		{http.MethodPost, path, event(theRefused), nil, 409},
		{http.MethodPost, path, `{"id":"` + theRefused + ` !","type":"order.placed","data":1}`, nil, 400},
		{http.MethodPost, path, `{"type":"operation.` + theRefused + `","data":1}`, nil, 400},
		{http.MethodPost, path, `{"type":"order.placed","data":"` + theRefused, nil, 400},
		{http.MethodPost, path, `{"type":"order.placed","data":1,"` + theName + `":"` + theRefused + `"}`, nil, 400},
		{http.MethodPost, path, `{"type":"order.placed","data":"` + theRefused + strings.Repeat("x", 300<<10) + `"}`, nil, 413},
	} {
		w.refused(w.reader, r)
	}
}

func (w *world) received() {
	send := func(want int, path, id, text string, change ...string) {
		w.Helper()
		body := []byte(`{"id":"` + id + `","type":"shop.opened","data":{"note":"` + text + `"}}`)
		h := w.signed(theSourceSecret, id, body)
		for i := 0; i < len(change); i += 2 {
			h.Set(change[i], change[i+1])
		}
		if r := w.ask(hookAnswer, http.MethodPost, w.node.APIURL()+path, body, h); r.status != want {
			w.Errorf("event %s: %d, want %d: %s", id, r.status, want, r.body)
		}
	}
	send(202, "/hooks/shop", "shop-1", theReceived)
	send(200, "/hooks/shop", "shop-1", theReceived)
	send(401, "/hooks/shop", "shop-2", theForged, "Webhook-Signature", "v1,"+theForged)
	send(401, "/hooks/shop", "shop-3", theForged, "Webhook-Timestamp", "7")
	send(404, "/hooks/shop/"+theForged, "shop-4", theForged)
	send(413, "/hooks/shop", "shop-5", theForged+strings.Repeat(" ", 4<<20))
	w.ask(hookAnswer, http.MethodGet, w.node.APIURL()+"/hooks/shop?hub.challenge="+theForged+"&hub.verify_token="+theForged, nil, http.Header{})
}

// worked leases two jobs, completes one and fails the other.
func (w *world) worked() {
	key := w.need(http.StatusCreated, w.call(theAdminKey, http.MethodPost, "/v1/keys", "/v1/keys", map[string]any{"name": "worker", "scopes": []string{"operate"}})).text("secret")
	w.add(tenantKey, strings.TrimPrefix(key, "pawl_sk_"))
	post := func(want int, call, lease string, body any) reply {
		w.Helper()
		route := "/v1/work/{lease}/" + call
		return w.need(want, w.call(key, http.MethodPost, route, strings.Replace(route, "{lease}", lease, 1), body))
	}
	done, failed := w.submit("hands", "complete"), w.submit("hands", "fail")
	for range 2 {
		got := w.need(http.StatusOK, w.call(key, http.MethodPost, "/v1/work/lease", "/v1/work/lease", map[string]any{"wait": 10}))
		lease, _ := got.fields["operation"].(map[string]any)
		token := got.text("lease")
		post(http.StatusOK, "progress", token, map[string]any{"percent": 50, "message": "half of it"})
		post(http.StatusOK, "heartbeat", token, nil)
		if lease["id"] == done {
			post(http.StatusOK, "complete", token, map[string]any{"result": json.RawMessage(`{"text":"` + theResult + `"}`)})
		} else {
			post(http.StatusOK, "fail", token, map[string]any{"code": "content_rejected", "message": theMessage})
		}
		w.refused(key, refusal{http.MethodPost, "/v1/work/" + token + "/complete", `{"result":"` + theRefused + `"}`, nil, 409})
		w.refused(key, refusal{http.MethodPost, "/v1/work/" + token + "/fail", `{"code":"` + theRefused + `"}`, nil, 400})
		w.refused(key, refusal{http.MethodPost, "/v1/work/" + token + "/progress", `{"message":"` + theRefused + `\u0007"}`, nil, 400})
	}
	for id, state := range map[string]string{done: "succeeded", failed: "failed"} {
		if got := w.operation(id).text("state"); got != state {
			w.Errorf("the worker's job is %s, want %s", got, state)
		}
	}
	w.refused(key, refusal{http.MethodPost, "/v1/work/" + theRefused + "/complete", `{"result":1}`, nil, 404})
	w.refused(key, refusal{http.MethodPost, "/v1/work/lease", `{"capabilities":"` + theRefused + `"}`, nil, 400})
	w.refused(w.reader, refusal{http.MethodPost, "/v1/work/lease", `{"capabilities":["` + theRefused + `"]}`, nil, 403})
}

// walked checks that everything the API's own description lets one read was read.
func (w *world) walked() {
	described := w.need(http.StatusOK, w.call(w.reader, http.MethodGet, "/v1/openapi.json", "/v1/openapi.json", nil))
	paths, _ := described.fields["paths"].(map[string]any)
	if len(paths) < 20 {
		w.Errorf("%d paths are described", len(paths))
	}
	for path, item := range paths {
		methods, _ := item.(map[string]any)
		if _, read := methods["get"]; !read {
			continue
		}
		w.mu.Lock()
		seen := slices.ContainsFunc([]sink{sink("GET " + path), sink("GET " + path + " payloads")}, func(s sink) bool { return len(w.texts[s]) > 0 })
		w.mu.Unlock()
		if !seen && !strings.HasPrefix(path, "/v1/problems/") {
			w.Errorf("GET %s was never read: walk it (%s)", path, fmt.Sprint(methods["get"])[:40])
		}
	}
}

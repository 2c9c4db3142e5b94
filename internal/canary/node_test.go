package canary_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// Everything that a node does with a job, its callbacks and its deliveries,
// well or badly, keeps what it knows to itself.
func TestNode(t *testing.T) {
	w := newWorld(t)
	w.keys()
	w.rotations()
	w.endpoints()
	w.fronts()
	w.jobs()
	w.files()
	w.others()
	w.callbacks()
	w.deliveries()
	w.refusals()
	w.wire()
	w.commands()
	w.egress()
	w.redone()
	w.walk()
	w.walked()
	w.atRest()
	w.stop()
	w.atRest()
	w.damaged()
	w.look(logs, w.log.String())
	w.look(defaultLog, defaults.String())
	w.ledgerOnDisk()
	w.logged()
	w.traced()
	w.judge(must)
}

// keys makes the tenant's key, whose secrets are drawn by the node.
func (w *world) keys() {
	made := w.need(http.StatusCreated, w.call(theAdminKey, http.MethodPost, "/v1/keys", "/v1/keys", map[string]any{"name": "reader", "scopes": []string{"submit", "read"}}))
	w.reader = made.text("secret")
	w.add(tenantKey, strings.TrimPrefix(w.reader, "pawl_sk_"))
	w.add(keySecret, strings.TrimPrefix(made.text("webhook_secret"), "whsec_"))
}

// endpoints makes one that works and one of each kind that does not.
func (w *world) endpoints() {
	addresses := []string{endpointAt(w.receiver.URL, "ok")}
	for _, mood := range moods {
		addresses = append(addresses, endpointAt(w.receiver.URL, mood))
	}
	addresses = append(addresses,
		endpointAt(strings.Replace(w.receiver.URL, "http://", "https://", 1), "tls"),
		endpointAt("https://nowhere.invalid", "dns"),
		endpointAt("http://"+closedPort(w.T), "closed"),
	)
	for _, address := range addresses {
		w.need(http.StatusCreated, w.call(theAdminKey, http.MethodPost, "/v1/endpoints", "/v1/endpoints", map[string]any{
			"url": address, "secret": theEndpointSecret, "types": []string{"operation.succeeded", "operation.failed"}, "policy": map[string]any{"attempts": 2, "timeout": "2s", "schedule": []string{"0s", "50ms"}},
		}))
	}
}

// rotations makes secrets of every kind former ones, which stay in the ledger.
func (w *world) rotations() {
	for _, scheme := range []string{"standard-webhooks", "standard-webhooks-v1a", "media-v2", "body-timestamp"} {
		made := w.need(http.StatusCreated, w.call(theAdminKey, http.MethodPost, "/v1/endpoints", "/v1/endpoints", map[string]any{
			"url": endpointAt(w.receiver.URL, "ok"), "scheme": scheme, "types": []string{"operation.canceled"},
		}))
		again := w.need(http.StatusOK, w.call(theAdminKey, http.MethodPost, "/v1/endpoints/{id}/rotate-secret", "/v1/endpoints/"+made.text("id")+"/rotate-secret", nil))
		for _, r := range []reply{made, again} {
			secret := r.text("secret")
			w.add(endpointSecret, secret[strings.Index(secret, "_")+1:])
		}
	}
	key := w.need(http.StatusCreated, w.call(theAdminKey, http.MethodPost, "/v1/keys", "/v1/keys", map[string]any{"name": "rotated", "scopes": []string{"read"}}))
	again := w.need(http.StatusOK, w.call(theAdminKey, http.MethodPost, "/v1/keys/{id}/rotate-webhook-secret", "/v1/keys/"+key.text("id")+"/rotate-webhook-secret", nil))
	w.add(tenantKey, strings.TrimPrefix(key.text("secret"), "pawl_sk_"))
	for _, r := range []reply{key, again} {
		w.add(keySecret, strings.TrimPrefix(r.text("webhook_secret"), "whsec_"))
	}
}

// jobs submits one for each way in which a provider can answer.
func (w *world) jobs() {
	ends := map[string]string{
		"read ends": "succeeded", "read fails": "failed",
		"create 400": "failed", "create 422": "failed", "create 302": "failed",
		"create 500": "unconfirmed", "create cut": "unconfirmed", "create hangs": "unconfirmed", "create garbage": "unconfirmed",
	}
	ids := make(map[string]string)
	for do := range ends {
		ids[do] = w.submit("up", do)
	}
	lines := map[string]string{
		"read 404": "not_found", "read 500": "unreachable", "read hangs": "unreachable",
		"read garbage": "unreachable", "read other": "task_mismatch", "read unknown": "unknown_state",
	}
	for do := range lines {
		ids[do] = w.submit("up", do)
	}
	// Each refusal of this kind stops its upstream.
	others := map[string]string{"locked": "create 401", "busy": "create 429", "gone": "x", "plain": "x", "far": "x"}
	for up, do := range others {
		ids[up] = w.submit(up, do)
	}
	shut := w.submit("shut", "read 401")
	w.submit("up", "wait for a callback")
	w.submit("up", "take callbacks")
	for do, state := range ends {
		w.eventually(do+" never ended as "+state, func() bool { return w.operation(ids[do]).text("state") == state })
	}
	for do, line := range lines {
		w.line(ids[do], line)
	}
	for up := range others {
		w.line(ids[up], "create_failed")
	}
	w.line(shut, "unauthorized")
	// A replay, and a search by what must not leak.
	w.need(http.StatusOK, w.call(w.reader, http.MethodPost, "/v1/operations", "/v1/operations", w.job("up", "read ends"), "Idempotency-Key", theKey+"-up-read-ends"))
	w.need(http.StatusOK, w.call(w.reader, http.MethodGet, "/v1/operations", "/v1/operations?idempotency_key="+theKey+"-up-read-ends", nil))
	w.need(http.StatusOK, w.call(w.reader, http.MethodGet, "/v1/operations", "/v1/operations?page_size=1&metadata.customer="+strings.ReplaceAll(theMetadata, " ", "+"), nil))
}

// callbacks calls back in every way that a provider or a stranger may.
func (w *world) callbacks() {
	var waiting *task
	w.eventually("the job was not created", func() bool {
		waiting = w.provider.doing("wait for a callback")
		return waiting != nil && w.provider.doing("take callbacks") != nil
	})
	path := waiting.callback[strings.Index(waiting.callback, "/hooks/"):]
	token := path[strings.LastIndex(path, "/")+1:]
	event := func(id, task, state string) string {
		text, _ := json.Marshal(map[string]any{
			"id": id, "type": "task.updated", "task": task, "state": state, "result": json.RawMessage(theOutcome), "settled": true, "cost": "0.5",
			"note": theProviderText,
		})
		return string(text)
	}
	send := func(want int, path, id, body string, change ...string) {
		w.Helper()
		h := w.provider.sign(id, []byte(body))
		// What proxies in front of a node add.
		h.Set("X-Original-Url", path)
		h.Set("X-Forwarded-Uri", "http://pawl.internal"+path)
		h.Set("Referer", theMessageLink)
		// Too short and too plain to look like a credential.
		h.Set("X-Api-Key", theGateKey)
		for i := 0; i < len(change); i += 2 {
			h.Set(change[i], change[i+1])
		}
		r := w.ask(hookAnswer, http.MethodPost, w.node.APIURL()+path, []byte(body), h)
		if r.status != want {
			w.Errorf("callback %s: %d, want %d: %s", id, r.status, want, r.body)
		}
	}
	bad := strings.ReplaceAll(event("evt-f", waiting.id, "failed"), theMessage, theForged)
	send(401, path, "evt-f", bad, "Webhook-Signature", "v1,"+theForged)
	send(401, path, "evt-f", bad, "Webhook-Timestamp", "12")
	send(401, path, "evt-f", bad, "Webhook-Signature", "")
	send(404, path[:len(path)-2]+"zz", "evt-f", bad)
	send(404, "/hooks/"+theForged+"/"+token, "evt-f", bad)
	send(404, path+"/"+theForged, "evt-f", bad)
	send(415, path, "evt-f", bad, "Content-Type", theForged+"/x")
	send(413, path, "evt-f", bad+strings.Repeat(" ", 4<<20))
	// Verified, and of no use: kept as evidence for keys with scope payloads.
	send(400, path, "evt-1", strings.Replace(event("evt-1", waiting.id, "x"), `"x"`, `"thinking"`, 1))
	send(400, path, "evt-2", event("evt-2", "task-of-somebody", "succeeded"))
	send(400, path, "evt-3", `{"id":"evt-3","type":"task.updated","note":"`+theProviderText+`"`)
	send(202, path, "evt-4", strings.Replace(event("evt-4", waiting.id, "succeeded"), "task.updated", "task.unheard", 1))
	send(202, "/hooks/up", "evt-5", event("evt-5", "task-of-nobody", "succeeded"))
	// Applied, and what may follow.
	send(202, path, "evt-6", event("evt-6", waiting.id, "succeeded"))
	send(200, path, "evt-6", event("evt-6", waiting.id, "succeeded"))
	send(200, path, "evt-7", event("evt-7", waiting.id, "processing"))
	send(200, path, "evt-8", strings.Replace(event("evt-8", waiting.id, "failed"), theResult, theResult+" changed", 1))
	taking := w.provider.doing("take callbacks")
	failed, _ := json.Marshal(map[string]any{
		"id": "evt-9", "type": "task.updated", "task": taking.id, "state": "failed", "error": map[string]any{"code": "content_rejected", "message": theProviderText},
	})
	send(202, taking.callback[strings.Index(taking.callback, "/hooks/"):], "evt-9", string(failed))
	// Other methods, and paths that lead nowhere.
	for _, method := range []string{http.MethodGet, http.MethodPut, theName} {
		w.ask(hookAnswer, method, w.node.APIURL()+path, nil, http.Header{})
	}
	w.ask(hookAnswer, http.MethodPost, w.node.APIURL()+"/hooks//up/"+token+"?x="+theForged, nil, http.Header{})
	for _, base := range []string{w.node.APIURL(), w.node.AdminURL()} {
		w.ask(problems, http.MethodGet, base+"/"+theRefused+"/nowhere", nil, http.Header{})
	}
}

// deliveries waits until each endpoint that fails has a dead letter.
func (w *world) deliveries() {
	want := len(moods) + 3
	w.eventually("no dead letter of every endpoint", func() bool {
		dead := make(map[string]bool)
		r := w.call(w.reader, http.MethodGet, "/v1/deliveries", "/v1/deliveries?state=dead&page_size=200", nil)
		for _, d := range items(r) {
			dead[fmt.Sprint(d["endpoint_id"])] = true
		}
		return len(dead) >= want
	})
}

func items(r reply) (all []map[string]any) {
	list, _ := r.fields["items"].([]any)
	for _, v := range list {
		item, _ := v.(map[string]any)
		all = append(all, item)
	}
	return all
}

// egress narrows what may be dialled: the endpoint that worked is refused now.
func (w *world) egress() {
	list := w.need(http.StatusOK, w.call(w.reader, http.MethodGet, "/v1/deliveries", "/v1/deliveries?state=delivered", nil))
	id := fmt.Sprint(items(list)[0]["id"])
	w.stop()
	w.start(strings.Replace(w.config, "allow: [127.0.0.0/8]", "allow: [198.51.100.0/24]", 1))
	w.need(http.StatusAccepted, w.call(theAdminKey, http.MethodPost, "/v1/deliveries/{id}/retry", "/v1/deliveries/"+id+"/retry", nil))
	w.eventually("the delivery was not refused", func() bool {
		r := w.call(w.reader, http.MethodGet, "/v1/deliveries/{id}/attempts", "/v1/deliveries/"+id+"/attempts", nil)
		return strings.Contains(r.body, "refused")
	})
	job := w.job("up", "refused by egress")
	delete(job, "callback_url")
	made := w.need(http.StatusAccepted, w.call(w.reader, http.MethodPost, "/v1/operations", "/v1/operations", job, "Idempotency-Key", theKey+"-refused-by-egress"))
	w.line(made.text("id"), "create_failed")
}

// redone begins a replay and asks how far an erasure is.
func (w *world) redone() {
	body := map[string]any{"what": "events", "filter": map[string]any{"source": "shop", "type": "shop.opened"}, "dry_run": true}
	w.need(http.StatusAccepted, w.call(theAdminKey, http.MethodPost, "/v1/replays", "/v1/replays", body, "Idempotency-Key", theKey+"-redone"))
	w.refused(theAdminKey, refusal{http.MethodPost, "/v1/replays", `{"what":"events","filter":{"verdict":"` + theRefused + `"}}`, nil, 400})
	w.need(http.StatusOK, w.call(theAdminKey, http.MethodGet, "/v1/erasures/{name}", "/v1/erasures/default", nil))
	w.refused(theAdminKey, refusal{http.MethodPost, "/v1/erasures", `{"operation_id":"` + theRefused + `","reason":"asked","dry_run":true}`, nil, 404})
}

// walk reads everything that can be read, with and without scope payloads.
func (w *world) walk() {
	for _, key := range []string{w.reader, theAdminKey} {
		for _, list := range []struct{ path, more string }{
			{"/v1/operations", "timeline"}, {"/v1/events", ""}, {"/v1/deliveries", "attempts"}, {"/v1/reviews", ""},
			{"/v1/endpoints", ""}, {"/v1/accounts", "entries"}, {"/v1/keys", ""}, {"/v1/sources", ""}, {"/v1/replays", ""},
		} {
			for _, item := range items(w.need(http.StatusOK, w.call(key, http.MethodGet, list.path, list.path+"?page_size=200", nil))) {
				id := item["id"]
				if id == nil {
					id = item["name"] // Sources have no other.
				}
				path := list.path + "/" + fmt.Sprint(id)
				w.need(http.StatusOK, w.call(key, http.MethodGet, list.path+"/{id}", path, nil))
				if list.more != "" {
					w.need(http.StatusOK, w.call(key, http.MethodGet, list.path+"/{id}/"+list.more, path+"/"+list.more, nil))
				}
			}
		}
		for _, path := range []string{"/v1/audit?page_size=200", "/v1/upstreams", "/v1/tenants", "/v1/nodes", "/v1/status", "/v1/whoami", "/v1/event-types", "/v1/openapi.json"} {
			w.call(key, http.MethodGet, strings.Split(path, "?")[0], path, nil)
		}
	}
	for _, path := range []string{"/metrics", "/livez", "/readyz"} {
		w.need(http.StatusOK, w.ask(metrics, http.MethodGet, w.node.AdminURL()+path, nil, http.Header{}))
	}
}

// logged checks that the log was on.
func (w *world) logged() {
	for _, line := range []string{"delivery attempt", "an inbound request was refused", `"msg":"request"`, `"level":"DEBUG"`} {
		if !strings.Contains(w.log.String(), line) {
			w.Errorf("the log has no line %q", line)
		}
	}
}

// damaged breaks the ledger by hand: what its check finds names rows and rules,
// not what is in them.
func (w *world) damaged() {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(w.dir, "pawl.db"))
	if err != nil {
		w.Fatal(err)
	}
	for _, damage := range []string{
		"UPDATE operations SET version = version + 1", "UPDATE entries SET amount = amount + 1", "UPDATE events SET snapshot = '{}'",
		"UPDATE idempotency_keys SET operation = x'ffffffffffffffffffffffffffffffff'", "UPDATE event_keys SET event = x'ffffffffffffffffffffffffffffffff'",
		"UPDATE tasks SET operation = x'ffffffffffffffffffffffffffffffff'", "UPDATE deliveries SET endpoint = x'ffffffffffffffffffffffffffffffff'", "DELETE FROM api_keys",
	} {
		if _, err := db.ExecContext(w.Context(), damage); err != nil {
			w.Errorf("%s: %v", damage, err)
		}
	}
	if err := db.Close(); err != nil {
		w.Fatal(err)
	}
	for _, form := range []string{"--json=true", "--json=false"} {
		out := w.command(1, "pawl ledger check", nil, "", "ledger", "check", "--data", w.dir, form)
		if strings.Count(out, "op_") == 0 {
			w.Errorf("the check finds nothing: %s", out)
		}
	}
}

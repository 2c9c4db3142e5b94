package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/upstream"
)

// workRig is a rig with two upstreams of own workers, hands and feet, which a
// test may take away.
func workRig(t *testing.T) (*rig, *upstream.Live) {
	t.Helper()
	set := testUpstreams(t)
	for _, name := range []string{"hands", "feet"} {
		settings := config.DefaultUpstream()
		settings.Preset = config.PresetWorker
		spec, _ := upstream.Preset(config.PresetWorker)
		up, err := upstream.New(name, spec, settings)
		if err != nil {
			t.Fatal(err)
		}
		set[name] = up
	}
	live := upstream.NewLive(set)
	g := newRigOf(t, live)
	return g, live
}

var handJobs int

// handJob submits work for hands by the named key and gives its id.
func (g *rig) handJob(key, more string) string {
	g.t.Helper()
	handJobs++
	return g.call(key, "POST", "/v1/operations", `{"upstream":"hands","model":"m","input":{"prompt":"canary-prompt",  "n": 1.50}`+more+`}`,
		"Idempotency-Key", fmt.Sprint("job", handJobs)).want(202, "").text("id")
}

// taken leases one operation and gives the lease's path.
func (g *rig) taken(key string) (path string, a answer) {
	g.t.Helper()
	a = g.call(key, "POST", "/v1/work/lease", `{"wait":10}`).want(200, "")
	return "/v1/work/" + a.text("lease"), a
}

// A worker gets the oldest operation with its input as the bytes received,
// although its key may read no payloads; that is audited. Then it completes it.
func TestWorkOverTheAPI(t *testing.T) {
	g, _ := workRig(t)
	g.call("acme", "POST", "/v1/work/lease", "").want(204, "")
	id := g.handJob("acme", `,"expected_cost":{"amount":"2","currency":"USD"}`)
	path, a := g.taken("acme")
	op := a.json["operation"].(map[string]any)
	if op["id"] != id || op["state"] != "running" || a.json["attempt"] != 1.0 || a.text("expires_at") == "" || a.json["more"] != nil {
		t.Errorf("leased %s", a.body)
	}
	var raw struct {
		Operation struct{ Input json.RawMessage }
	}
	if err := json.Unmarshal(a.body, &raw); err != nil || string(raw.Operation.Input) != `{"prompt":"canary-prompt",  "n": 1.50}` {
		t.Errorf("input %s, want the one received", raw.Operation.Input)
	}
	audits := g.call("admin", "GET", "/v1/audit", "").items()
	if !slices.ContainsFunc(audits, func(i map[string]any) bool { return i["action"] == "work.lease" && i["subject"] == id }) {
		t.Errorf("no audit of the lease in %v", audits)
	}
	g.call("acme", "POST", "/v1/work/lease", "{}").want(204, "")
	h := g.call("acme", "POST", path+"/heartbeat", "").want(200, "")
	if h.json["cancel_requested"] != false || h.text("lease") != a.text("lease") || h.text("operation_id") != id || h.text("expires_at") < a.text("expires_at") {
		t.Errorf("heartbeat %s", h.body)
	}
	g.call("acme", "POST", path+"/progress", `{"percent":42.5,"message":"frame 17"}`).want(200, "")
	shown := g.call("reader", "GET", "/v1/operations/"+id, "").want(200, "")
	if shown.json["progress"] != 0.425 || shown.text("upstream_state") != "frame 17" || shown.json["version"] != op["version"] {
		t.Errorf("progress %s", shown.body)
	}
	for range 2 {
		done := g.call("acme", "POST", path+"/complete", `{"result":{"url":"x"},"cost":{"amount":"1.5","currency":"USD"}}`).want(200, "")
		cost := done.json["cost"].(map[string]any)
		if done.text("state") != "succeeded" || cost["amount"] != "1.500000000" || cost["settled"] != true || fmt.Sprint(done.json["result"]) != "map[url:x]" {
			t.Errorf("completed %s", done.body)
		}
	}
	g.call("acme", "POST", path+"/heartbeat", "").want(409, "lease_ended")
	g.call("acme", "POST", path+"/progress", `{"percent":1}`).want(409, "lease_ended")
	g.call("acme", "POST", path+"/fail", `{"code":"timeout"}`).want(409, "lease_ended")
	if log := g.log.String(); strings.Contains(log, "canary") || strings.Contains(log, a.text("lease")) {
		t.Error("the log holds an input or a lease")
	}
}

// With max, the second and further operations come beside the first; never more
// than there are.
func TestLeaseSeveral(t *testing.T) {
	g, _ := workRig(t)
	var ids []string
	for range 4 {
		ids = append(ids, g.handJob("acme", ""))
	}
	a := g.call("acme", "POST", "/v1/work/lease", `{"max":3}`).want(200, "")
	got := []string{a.json["operation"].(map[string]any)["id"].(string)}
	for _, m := range a.json["more"].([]any) {
		got = append(got, m.(map[string]any)["operation"].(map[string]any)["id"].(string))
	}
	if !slices.Equal(got, ids[:3]) {
		t.Errorf("leased %v, want the oldest three of %v", got, ids)
	}
	last := g.call("acme", "POST", "/v1/work/lease", `{"max":3}`).want(200, "")
	if last.json["more"] != nil || last.json["operation"].(map[string]any)["id"] != ids[3] {
		t.Errorf("the rest is %s", last.body)
	}
}

// A worker gets what it can do, and of its own tenant, unless its key is an
// admin's.
func TestCapabilities(t *testing.T) {
	g, _ := workRig(t)
	job := func(key, upstream, model string) string {
		handJobs++
		return g.call(key, "POST", "/v1/operations", fmt.Sprintf(`{"upstream":%q,"model":%q,"input":{}}`, upstream, model), "Idempotency-Key", fmt.Sprint("job", handJobs)).want(202, "").text("id")
	}
	jobs := map[string]string{}
	for _, up := range []string{"hands", "feet"} {
		for _, model := range []string{"m", "n"} {
			jobs[job("acme", up, model)] = up + "/" + model
		}
	}
	theirs := job("other", "hands", "x")
	for _, tc := range []struct{ key, want, got string }{
		{"acme", `["x"]`, ""},
		{"acme", `["hands/x","hands","m/hands"]`, ""},
		{"acme", `["feet/n"]`, "feet/n"},
		{"acme", `["n"]`, "hands/n"},
		{"acme", `["n"]`, ""},
		{"acme", `["z","hands/m"]`, "hands/m"},
		{"acme", `[]`, "feet/m"},
		{"acme", `[]`, ""},
	} {
		a := g.call(tc.key, "POST", "/v1/work/lease", `{"capabilities":`+tc.want+`}`)
		got := ""
		if a.status == 200 {
			got = jobs[a.json["operation"].(map[string]any)["id"].(string)]
		}
		if got != tc.got {
			t.Errorf("for %s: %q, want %q (%d)", tc.want, got, tc.got, a.status)
		}
	}
	g.call("admin", "POST", "/v1/work/lease?tenant=acme", "").want(204, "")
	a := g.call("admin", "POST", "/v1/work/lease", "").want(200, "")
	if a.json["operation"].(map[string]any)["id"] != theirs {
		t.Errorf("an admin key got %s, want %s", a.body, theirs)
	}
}

// Who waits gets what comes, at once; who has waited in vain gets 204.
func TestLeaseWaits(t *testing.T) {
	g, _ := workRig(t)
	began := time.Now()
	g.call("acme", "POST", "/v1/work/lease", `{"wait":1}`).want(204, "")
	if took := time.Since(began); took < time.Second || took > 10*time.Second {
		t.Errorf("waited %s, want 1 s", took)
	}
	waiting := g.later("acme", "POST", "/v1/work/lease", `{"wait":3600,"capabilities":["m"]}`)
	for began := time.Now(); g.desk.Waiters() != 1; time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatal("nobody waits")
		}
	}
	began = time.Now()
	id := g.handJob("acme", "")
	a := (<-waiting).want(200, "")
	if took := time.Since(began); took > 5*time.Second || a.json["operation"].(map[string]any)["id"] != id {
		t.Errorf("after %s: %s", took, a.body)
	}
	last := g.later("acme", "POST", "/v1/work/lease", `{"wait":60}`)
	for g.desk.Waiters() != 1 {
		time.Sleep(time.Millisecond)
	}
	g.desk.Close()
	(<-last).want(204, "")
	g.call("acme", "POST", "/v1/work/lease", `{"wait":60}`).want(204, "")
}

func TestWorkRequestsAreChecked(t *testing.T) {
	g, _ := workRig(t)
	for _, body := range []string{
		`{"wait":-1}`, `{"max":33}`, `{"max":-1}`, `{"capabilities":[""]}`, `{"capabilities":["a\u0000"]}`,
		`{"capabilities":["` + strings.Repeat("x", 511) + `"]}`, `{"capabilities":["x"` + strings.Repeat(`,"x"`, 100) + `]}`,
	} {
		g.call("acme", "POST", "/v1/work/lease", body).want(400, "invalid_request")
	}
	g.call("acme", "POST", "/v1/work/lease", `{"wait":1.5}`).want(400, "invalid_json")
	g.call("acme", "POST", "/v1/work/lease", `{"waits":1}`).want(400, "invalid_json")
	g.handJob("acme", `,"expected_cost":{"amount":"2","currency":"USD"}`)
	path, _ := g.taken("acme")
	for _, body := range []string{`{}`, `{"percent":-0.1}`, `{"percent":100.1}`, `{"message":"` + strings.Repeat("x", 201) + `"}`, `{"message":"a\nb"}`} {
		g.call("acme", "POST", path+"/progress", body).want(400, "invalid_request")
	}
	for _, body := range []string{`{"cost":{"amount":"-1","currency":"USD"}}`, `{"cost":{"amount":"1","currency":"usd"}}`, `{"cost":{"amount":"x","currency":"USD"}}`} {
		g.call("acme", "POST", path+"/complete", body).want(400, "invalid_request")
	}
	for _, body := range []string{`{}`, `{"code":"boom"}`, `{"code":"timeout","message":"` + strings.Repeat("x", 1001) + `"}`, `{"code":"timeout","message":"a\u0007"}`} {
		g.call("acme", "POST", path+"/fail", body).want(400, "invalid_request")
	}
	// A result has 1 MiB and not one byte more.
	result := func(n int) string { return `{"result":"` + strings.Repeat("x", n-2) + `"}` }
	g.call("acme", "POST", path+"/complete", result(maxResult+1)).want(413, "content_too_large")
	g.call("acme", "POST", path+"/complete", result(maxResult)).want(200, "")
}

// Wrong, foreign and unborn leases are the same 404.
func TestLeasesOfOthersAreUnknown(t *testing.T) {
	g, _ := workRig(t)
	g.handJob("acme", "")
	path, a := g.taken("acme")
	provided := strings.Replace(g.submit("k", openBody), "op_", "lease_", 1) + "_1"
	g.created("open", ledger.CreateAccepted, "job_1")
	bodies := map[string]string{"heartbeat": "", "progress": `{"percent":1}`, "complete": "{}", "fail": `{"code":"timeout"}`}
	for call, body := range bodies {
		g.call("other", "POST", path+"/"+call, body).want(404, "not_found")
		g.call("admin", "POST", path+"/"+call+"?tenant=other", body).want(404, "not_found")
		for _, lease := range []string{
			strings.TrimSuffix(a.text("lease"), "_1") + "_2", strings.TrimSuffix(a.text("lease"), "_1"), a.text("lease") + "0", "lease_00000000000000000000000001_1",
			"x", provided, "%2e%2e%2flease", strings.Repeat("l", 5000), a.text("lease") + "%00",
		} {
			g.call("acme", "POST", "/v1/work/"+lease+"/"+call, body).want(404, "not_found")
		}
	}
	g.call("admin", "POST", path+"/heartbeat", "").want(200, "")
}

// What a late or wrong word is refused for, by every call that may be.
func TestWorkIsRefusedByFence(t *testing.T) {
	g, live := workRig(t)
	bodies := map[string]string{"heartbeat": "", "progress": `{"percent":1}`, "complete": "{}", "fail": `{"code":"timeout","retryable":true}`}
	refused := func(path, reason string, calls ...string) {
		t.Helper()
		for call, body := range bodies {
			if len(calls) > 0 && !slices.Contains(calls, call) {
				continue
			}
			a := g.call("acme", "POST", path+"/"+call, body).want(409, reason)
			if a.text("detail") == "" {
				t.Errorf("%s is not told why", call)
			}
		}
	}
	policy := live.Now()["hands"].Policy()
	id := g.handJob("acme", "")
	first, _ := g.taken("acme")
	op, err := pawl.ParseID(pawl.PrefixOperation, id)
	if err != nil {
		t.Fatal(err)
	}
	g.call("acme", "POST", first+"/complete", `{"canceled":true}`).want(409, "cancel_not_requested")
	// Its time passes, and another worker comes.
	g.do(ledger.LeaseWork{Header: ledger.Header{Now: pawl.TimeOf(time.Now().Add(time.Hour))}, Queue: ledger.WorkQueueID(ledger.ReadQueue, "hands", "acme"), Limit: 1, Up: policy})
	rows := new(ledger.Rows)
	if err := g.driver.Load(t.Context(), &ledger.Keys{Operations: []pawl.ID{op}}, rows); err != nil {
		t.Fatal(err)
	}
	row, _ := rows.Operations.Get(op)
	g.do(ledger.Advance{Header: head(), Up: policy, Operation: op, Fence: row.Lease})
	second, _ := g.taken("acme")
	refused(first, "lease_lost")
	// It is reported as failed.
	g.call("acme", "POST", second+"/fail", `{"code":"content_rejected","message":"no"}`).want(200, "")
	again := g.call("acme", "POST", second+"/fail", `{"code":"content_rejected","message":"no"}`).want(200, "")
	if again.text("state") != "failed" || again.json["error"].(map[string]any)["code"] != "content_rejected" {
		t.Errorf("the same again: %s", again.body)
	}
	refused(second, "lease_ended", "heartbeat", "progress", "complete")
	g.handJob("acme", "")
	third, _ := g.taken("acme")
	g.call("acme", "POST", third+"/complete", "{}").want(200, "")
	refused(third, "lease_ended", "fail")
	// It ends by another's hand: a cancel that the silence of its worker confirms.
	ended := g.handJob("acme", "")
	fourth, _ := g.taken("acme")
	op, _ = pawl.ParseID(pawl.PrefixOperation, ended)
	g.call("acme", "POST", "/v1/operations/"+ended+"/cancel", "").want(202, "")
	if told := g.call("acme", "POST", fourth+"/heartbeat", "").want(200, ""); told.json["cancel_requested"] != true {
		t.Errorf("not told to stop: %s", told.body)
	}
	g.do(ledger.LeaseWork{Header: ledger.Header{Now: pawl.TimeOf(time.Now().Add(time.Hour))}, Queue: ledger.WorkQueueID(ledger.ReadQueue, "hands", "acme"), Limit: 1, Up: policy})
	rows = new(ledger.Rows)
	if err := g.driver.Load(t.Context(), &ledger.Keys{Operations: []pawl.ID{op}}, rows); err != nil {
		t.Fatal(err)
	}
	row, _ = rows.Operations.Get(op)
	g.do(ledger.Advance{Header: head(), Up: policy, Operation: op, Fence: row.Lease})
	refused(fourth, "finished")
	// The upstream is taken away: a heartbeat cannot be answered, an outcome can.
	g.handJob("acme", "")
	fifth, _ := g.taken("acme")
	g.handJob("acme", "")
	live.Swap(testUpstreams(t))
	g.h.Reload(nil, time.Hour)
	refused(fifth, "upstream_unknown", "heartbeat", "progress", "fail")
	g.call("acme", "POST", fifth+"/complete", `{"result":null}`).want(200, "")
	g.call("acme", "POST", "/v1/work/lease", "").want(204, "")
}

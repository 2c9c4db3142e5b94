package api

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

const secretLink = "https://cdn.example/x/LINKPATH.mp4?X-Amz-Signature=LINKSIGN"

// filed submits an operation and has it succeed with two links in its result.
func (g *rig) filed(key, body string) (operation string, op ledger.Operation) {
	g.t.Helper()
	operation = g.submit(key, body)
	created := g.created("open", ledger.CreateAccepted, "job_"+key)
	g.do(ledger.ReceiveEvent{Header: head(), Up: g.policy("open"), Token: created.ID, Event: "end-" + key, Body: secretLink, Obs: ledger.Observation{
		Task: created.Task, Word: "succeeded", State: pawl.Succeeded, Progress: -1,
		Result: `{"url":"` + secretLink + `","more":["http://10.0.0.1/LINKPATH","text with https://example.com inside"],"n":1.0}`,
	}})
	return operation, created
}

// captured records that an artifact is captured, or why not.
func (g *rig) captured(op pawl.ID, artifact string, outcome ledger.ArtifactOutcome) {
	g.t.Helper()
	id, err := pawl.ParseID(pawl.PrefixArtifact, artifact)
	if err != nil {
		g.t.Fatal(err)
	}
	a := g.do(ledger.LeaseArtifact{Header: head(), Artifact: id, For: time.Minute}).(ledger.Artifact)
	g.do(ledger.RecordArtifact{
		Header: head(), Operation: op, Artifact: id, Fence: a.Lease, Outcome: outcome, Size: 3,
		SHA256: sha256.Sum256([]byte("abc")), ContentType: "video/mp4", Message: "status 403: 0 of 3 bytes",
	})
}

func idsOf(items []map[string]any) (ids []string) {
	for _, item := range items {
		ids = append(ids, item["id"].(string))
	}
	return ids
}

func TestArtifacts(t *testing.T) {
	g := newRig(t)
	id, op := g.filed("a", openBody)
	path := "/v1/operations/" + id
	a := g.call("acme", "GET", path, "").want(200, "")
	files := g.call("reader", "GET", path+"/artifacts", "").want(200, "").items()
	names := idsOf(files)
	want := `"result":{"url":"` + names[0] + `","more":["` + names[1] + `","text with https://example.com inside"],"n":1.0}`
	if len(names) != 2 || !strings.Contains(string(a.body), want) || strings.Contains(string(a.body), "LINK") || len(a.json["artifacts"].([]any)) != 2 {
		t.Fatalf("%s", a.body)
	}
	if files[0]["state"] != "pending" || files[0]["sha256"] != nil {
		t.Errorf("%v", files[0])
	}
	g.call("other", "GET", path+"/artifacts", "").want(404, "not_found")
	g.call("submitter", "GET", path+"/artifacts", "").want(403, "insufficient_scope")

	file := "/v1/artifacts/" + names[0]
	g.call("acme", "GET", file, "").want(409, "not_captured")
	g.captured(op.ID, names[0], ledger.ArtifactStored)
	g.captured(op.ID, names[1], ledger.ArtifactRefused)
	moved := g.call("reader", "GET", file, "").want(302, "")
	sum := sha256.Sum256([]byte("abc"))
	if moved.header.Get("Location") != "https://pawl.example/files/"+names[0] || moved.text("url") != moved.header.Get("Location") || moved.text("until") != "2026-01-02T03:04:05.000000Z" ||
		moved.json["artifact"].(map[string]any)["sha256"] != hex.EncodeToString(sum[:]) {
		t.Errorf("%s", moved.body)
	}
	g.call("other", "GET", file, "").want(404, "not_found")
	g.call("submitter", "GET", file, "").want(403, "insufficient_scope")
	g.call("acme", "GET", "/v1/artifacts/"+id, "").want(404, "not_found")
	g.call("acme", "GET", "/v1/artifacts/"+names[1], "").want(410, "capture_failed")

	review := g.call("acme", "GET", "/v1/reviews?reason=capture", "").want(200, "").items()
	if len(review) != 1 || review[0]["operation_id"] != id {
		t.Fatalf("%v", review)
	}
}

// A retry of a success saves its files again and asks the provider for nothing
// else (O-078).
func TestRetryOfASuccess(t *testing.T) {
	g := newRig(t)
	id, op := g.filed("a", openBody)
	path := "/v1/operations/" + id
	names := idsOf(g.call("acme", "GET", path+"/artifacts", "").want(200, "").items())
	g.call("acme", "POST", path+"/retry", "{}", "Idempotency-Key", "early").want(409, "not_retryable")
	for _, name := range names {
		g.captured(op.ID, name, ledger.ArtifactRefused)
	}
	a := g.call("acme", "POST", path+"/retry", "{}", "Idempotency-Key", "again").want(200, "")
	if a.text("id") != id || a.text("state") != "succeeded" {
		t.Errorf("%s", a.body)
	}
	if again := g.call("acme", "POST", path+"/retry", "{}", "Idempotency-Key", "again").want(200, ""); again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v", again.header)
	}
	for _, file := range g.call("acme", "GET", path+"/artifacts", "").want(200, "").items() {
		if file["state"] != "pending" {
			t.Errorf("%v", file)
		}
	}
	all, err := g.driver.Operations(t.Context(), store.OperationFilter{}, store.Page{Limit: 9})
	if err != nil || len(all) != 1 || all[0].Creates != 1 {
		t.Errorf("%d operations, %v", len(all), err)
	}
}

// A held result is in no answer before it is released (1-product G4).
func TestRelease(t *testing.T) {
	g := newRig(t)
	body := strings.TrimSuffix(openBody, "}") + `,"release":"hold"}`
	waiting := g.submit("w", body)
	g.created("open", ledger.CreateAccepted, "job_w")
	g.call("acme", "POST", "/v1/operations/"+waiting+"/release", "{}").want(409, "no_result_yet")
	plain, _ := g.filed("p", openBody)
	g.call("acme", "POST", "/v1/operations/"+plain+"/release", "{}").want(409, "not_held")

	id, op := g.filed("a", body)
	path := "/v1/operations/" + id
	rows, err := g.driver.OperationFacts(t.Context(), store.Page{After: before(op.ID), Limit: 1})
	if err != nil || len(rows) != 1 || len(rows[0].Artifacts) != 2 {
		t.Fatalf("%v %v", rows, err)
	}
	file := rows[0].Artifacts[0].ID.Text(pawl.PrefixArtifact)
	for _, a := range rows[0].Artifacts {
		g.captured(op.ID, a.ID.Text(pawl.PrefixArtifact), ledger.ArtifactStored)
	}
	a := g.call("full", "GET", path, "").want(200, "")
	if a.json["result"] != nil || len(a.json["artifacts"].([]any)) != 0 || a.text("release") != "hold" || a.text("state") != "succeeded" {
		t.Errorf("%s", a.body)
	}
	if files := g.call("acme", "GET", path+"/artifacts", "").want(200, "").items(); len(files) != 0 {
		t.Errorf("%v", files)
	}
	g.call("admin", "GET", "/v1/artifacts/"+file, "").want(409, "held")
	events := g.call("full", "GET", "/v1/events?operation="+id, "").want(200, "").items()
	for _, e := range events {
		shown := g.call("full", "GET", "/v1/events/"+e["id"].(string), "").want(200, "")
		if e["type"] == "operation.artifacts.ready" || strings.Contains(string(shown.body), "art_") || shown.json["body"] != nil {
			t.Errorf("%s", shown.body)
		}
	}
	for _, place := range []string{path + "/timeline", "/v1/events?operation=" + id, "/v1/reviews?operation=" + id} {
		if text := string(g.call("full", "GET", place, "").want(200, "").body); strings.Contains(text, "LINK") || strings.Contains(text, "artifacts.ready") {
			t.Errorf("%s: %s", place, text)
		}
	}
	g.call("reader", "POST", path+"/release", "{}").want(403, "insufficient_scope")
	g.call("other", "POST", path+"/release", "{}").want(404, "not_found")
	g.call("acme", "POST", path+"/release", `{"note":"`+strings.Repeat("n", 1001)+`"}`).want(400, "invalid_request")

	review := g.call("acme", "GET", "/v1/reviews?reason=release&operation="+id, "").want(200, "").items()
	if len(review) != 1 {
		t.Fatalf("%v", review)
	}
	released := g.call("acme", "POST", path+"/release", `{"note":"rights checked"}`).want(200, "")
	if released.json["result"] == nil || len(released.json["artifacts"].([]any)) != 2 || released.text("release") != "released" {
		t.Errorf("%s", released.body)
	}
	if g.call("acme", "POST", path+"/release", "{}").want(200, "").json["version"] != released.json["version"] {
		t.Error("a second release changed something")
	}
	g.call("acme", "GET", "/v1/artifacts/"+file, "").want(302, "")
	if left := g.call("acme", "GET", "/v1/reviews?operation="+id, "").want(200, "").items(); len(left) != 0 {
		t.Errorf("%v", left)
	}
	// The decision of the review does the same.
	other, _ := g.filed("b", body)
	review = g.call("acme", "GET", "/v1/reviews?reason=release&operation="+other, "").want(200, "").items()
	g.call("acme", "POST", "/v1/reviews/"+review[0]["id"].(string)+"/resolve", `{"decision":"release","note":"ok"}`).want(200, "")
	if a := g.call("acme", "GET", "/v1/operations/"+other, "").want(200, ""); a.json["result"] == nil || a.text("release") != "released" {
		t.Errorf("%s", a.body)
	}
}

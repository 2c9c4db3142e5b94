package render_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/render"
)

// at is 2026-01-02T03:04:05Z.
const at = pawl.Time(1_767_323_045_000_000)

func id(n byte) pawl.ID { return pawl.ID{15: n} }

// operation is the snapshot of a job that has ended at version 3.
func operation(t *testing.T, change func(*ledger.OperationJSON)) ledger.Event {
	t.Helper()
	finished := at
	v := ledger.OperationJSON{
		ID: id(1).Text("op"), Version: 3, State: pawl.Succeeded, Upstream: "studio", Model: "kling-2", Metered: true,
		Cost:      &ledger.CostJSON{Amount: "0.120000000", Currency: "USD", Settled: true},
		Artifacts: []ledger.ArtifactJSON{}, CreatedAt: at - 5_000_000, UpdatedAt: at, FinishedAt: &finished,
	}
	if change != nil {
		change(&v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return ledger.Event{ID: id(2), Operation: id(1), Type: "operation." + v.State.String(), At: at, Version: 3, Snapshot: string(text)}
}

const (
	suffix1 = "00000000000000000000000001"
	suffix2 = "00000000000000000000000002"
	result  = `{"url":"art_1","big":12345678901234567890}`
)

// The bodies of each scheme, as 2-contracts §1-§3 have them.
func TestBodies(t *testing.T) {
	row := ledger.Delivery{ID: id(3), Sequence: 17}
	succeeded := render.Delivery{Row: row, Event: operation(t, nil), Metadata: `{"customer":"c1"}`, Result: result}
	refused := render.Delivery{Row: row, Event: operation(t, func(v *ledger.OperationJSON) {
		v.State, v.Cost.Amount = pawl.Failed, "0.000000000"
		v.Error = &ledger.OperationErrJSON{Code: pawl.FailContentRejected, Message: "not permitted"}
	})}
	canceled := render.Delivery{Row: row, Event: operation(t, func(v *ledger.OperationJSON) { v.State, v.Cost = pawl.Canceled, nil })}
	running := render.Delivery{Row: row, Event: operation(t, func(v *ledger.OperationJSON) {
		v.State, v.Version, v.FinishedAt, v.Cost.Settled = pawl.Running, 2, nil, false
	})}
	own := render.Delivery{Row: row, Event: ledger.Event{ID: id(2), Type: "invoice.paid", At: at}, Data: `{"n":1}`}
	inbound := ledger.Delivery{ID: id(3), Sequence: 17, Inbound: true}
	received := ledger.Event{ID: id(2), Direction: ledger.Inbound, Source: "payments", Type: "invoice.paid", At: at}

	const media = `{"code":200,"msg":"success","data":{"taskId":"job_` + suffix1 + `","model":"kling-2",`
	const mediaEnd = `"createTime":1767323040000,"completeTime":1767323045000},"request_id":"whd_` + suffix2 + `"}`
	const event = `{"id":"evt_` + suffix2 + `",`
	for _, c := range []struct {
		name, scheme string
		of           render.Delivery
		want         string
	}{
		{"succeeded", "media-v2", succeeded,
			media + `"state":"succeeded","cost":"0.120000000","settled":true,"errorCode":null,"errorMessage":null,"result":` + result + `,` + mediaEnd},
		{"failed", "media-v2", refused,
			media + `"state":"failed","cost":"0.000000000","settled":true,"errorCode":"content_rejected","errorMessage":"not permitted","result":null,` + mediaEnd},
		// No sixth word and no tenth code (7-rules R43).
		{"canceled", "media-v2", canceled,
			media + `"state":"failed","cost":"0.000000000","settled":true,"errorCode":"generation_failed","errorMessage":"canceled","result":null,` + mediaEnd},
		{"succeeded", "body-timestamp", succeeded,
			event + `"type":"ai.task.completed","created_at":"2026-01-02T03:04:05.000000Z","data":{"task_id":"task_` + suffix1 + `","status":"succeeded","version":3,"result":` + result + `}}`},
		// The type is the same for every end, the status decides (7-rules R45).
		{"canceled", "body-timestamp", canceled,
			event + `"type":"ai.task.completed","created_at":"2026-01-02T03:04:05.000000Z","data":{"task_id":"task_` + suffix1 + `","status":"canceled","version":3}}`},
		{"running", "body-timestamp", running,
			event + `"type":"ai.task.progress","created_at":"2026-01-02T03:04:05.000000Z","data":{"task_id":"task_` + suffix1 + `","status":"running","version":2}}`},
		{"own event", "standard-webhooks", own,
			event + `"type":"invoice.paid","timestamp":"2026-01-02T03:04:05.000000Z","sequence":17,"data":{"n":1}}`},
		{"received", "standard-webhooks", render.Delivery{Row: inbound, Event: received, Received: `{"a": 1}`},
			event + `"type":"invoice.paid","source":"payments","timestamp":"2026-01-02T03:04:05.000000Z","sequence":17,"data":{"a": 1}}`},
		{"received, original", "standard-webhooks", render.Delivery{Row: inbound, Event: received, Received: "{\"a\": 1}\n\xff",
			Endpoint: ledger.Endpoint{Content: ledger.OriginalContent}}, "{\"a\": 1}\n\xff"},
		{"kept", "standard-webhooks", render.Delivery{Row: ledger.Delivery{BodyKept: true}, Sent: `{"as":"sent"}`}, `{"as":"sent"}`},
	} {
		for range 2 { // The same bytes again (7-rules §3).
			got, err := c.of.Body(c.scheme)
			if err != nil || !same(t, string(got), c.want) {
				t.Errorf("%s as %s:\n%s, %v, want\n%s", c.name, c.scheme, got, err, c.want)
			}
		}
	}
}

// The native body is the operation as of its version: every member of the
// contract is there, null or not.
func TestNativeBody(t *testing.T) {
	d := render.Delivery{Row: ledger.Delivery{Sequence: 17}, Event: operation(t, nil), Metadata: `{"customer":"c1"}`, Result: result}
	body, err := d.Body("standard-webhooks")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		ID, Type, Timestamp string
		Sequence            int64
		Data                map[string]json.RawMessage
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if got.ID != "evt_"+suffix2 || got.Type != "operation.succeeded" || got.Timestamp != "2026-01-02T03:04:05.000000Z" || got.Sequence != 17 {
		t.Errorf("the envelope is %s", body)
	}
	for _, name := range []string{
		"id", "version", "state", "upstream", "model", "task_id", "upstream_state", "upstream_request_id", "adapter", "progress", "metadata",
		"correlation_id", "owner", "callback_url", "cost", "metered", "error", "result", "artifacts", "attempts", "cancel", "retry_of",
		"created_at", "submitted_at", "updated_at", "deadline", "finished_at", "next_check_at", "review_id",
	} {
		if _, ok := got.Data[name]; !ok {
			t.Errorf("data has no %s", name)
		}
	}
	for name, want := range map[string]string{
		"id": `"op_` + suffix1 + `"`, "version": "3", "state": `"succeeded"`, "metadata": `{"customer":"c1"}`, "result": result,
		"cost": `{"amount":"0.120000000","currency":"USD","settled":true}`, "created_at": `"2026-01-02T03:04:00.000000Z"`, "error": "null",
	} {
		if string(got.Data[name]) != want {
			t.Errorf("%s is %s, want %s", name, got.Data[name], want)
		}
	}
	if _, shown := got.Data["input"]; shown {
		t.Error("the input is in a delivery")
	}
}

// What cannot be sent says why in words of ours.
func TestUnsendable(t *testing.T) {
	own := ledger.Event{ID: id(2), Type: "invoice.paid", At: at}
	for name, c := range map[string]struct {
		scheme string
		of     render.Delivery
	}{
		"no event":           {"standard-webhooks", render.Delivery{}},
		"damaged result":     {"media-v2", render.Delivery{Event: operation(t, nil), Result: `{"s`}},
		"damaged snapshot":   {"media-v2", render.Delivery{Event: ledger.Event{ID: id(2), Operation: id(1), Snapshot: "{"}}},
		"no word for it":     {"body-timestamp", render.Delivery{Event: own, Data: "{}"}},
		"own without data":   {"standard-webhooks", render.Delivery{Event: own}},
		"body not kept here": {"standard-webhooks", render.Delivery{Row: ledger.Delivery{Inbound: true}, Event: own}},
	} {
		var why render.Unsendable
		if _, err := c.of.Body(c.scheme); !errors.As(err, &why) || why == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// same compares JSON by value, members in any order and numbers to the digit; what
// is no JSON by its bytes.
func same(t *testing.T, got, want string) bool {
	t.Helper()
	if !json.Valid([]byte(want)) {
		return got == want
	}
	return reflect.DeepEqual(decoded(t, got), decoded(t, want))
}

func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil || d.More() {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

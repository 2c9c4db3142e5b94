package outbox

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/vault"
	"github.com/pawlhq/pawl/webhook"
)

// jobOf is a job of an event whose operation is as given.
func jobOf(t *testing.T, v ledger.OperationJSON, result string) Job {
	t.Helper()
	v.ID, v.Artifacts = id(1).Text("op"), []ledger.ArtifactJSON{}
	snapshot, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return Job{
		delivery: ledger.Delivery{ID: id(3), Sequence: 9},
		event: ledger.Event{
			ID: id(2), Operation: id(1), Type: "operation." + v.State.String(), At: 1_767_323_045_000_000,
			Version: v.Version, Snapshot: string(snapshot),
		},
		result: result,
	}
}

const (
	suffix1 = "00000000000000000000000001"
	suffix2 = "00000000000000000000000002"
)

// The whole bodies of 2-contracts §2 and §3, in the words of 7-rules R43.
func TestDialects(t *testing.T) {
	made, ended := pawl.Time(1_767_323_040_123_456), pawl.Time(1_767_323_044_000_000)
	open := &ledger.CostJSON{Amount: "0.150000000", Currency: "USD"}
	final := &ledger.CostJSON{Amount: "0.120000000", Currency: "USD", Settled: true}
	free := &ledger.CostJSON{Amount: "0.000000000", Currency: "USD", Settled: true}
	failure := &ledger.OperationErrJSON{Code: pawl.FailContentRejected, Message: "no"}
	half := 0.5
	for _, c := range []struct {
		v         ledger.OperationJSON
		result    string
		media     string
		versioned string
	}{
		{ledger.OperationJSON{State: pawl.Pending, Version: 4, Cost: open}, "",
			`"state":"queued","cost":"0.150000000","settled":false`, `progress|"status":"pending","version":4`},
		{ledger.OperationJSON{State: pawl.Unconfirmed, Version: 2, Cost: open}, "",
			`"state":"queued","cost":"0.150000000","settled":false`, `progress|"status":"pending","version":2`},
		{ledger.OperationJSON{State: pawl.Running, Version: 2, Cost: open, Progress: &half}, "",
			`"state":"processing","cost":"0.150000000","settled":false`, `progress|"status":"running","version":2,"progress":0.5`},
		{ledger.OperationJSON{State: pawl.Succeeded, Version: 3, Cost: open, FinishedAt: &ended}, `{"n": 9007199254740993}`,
			`"state":"succeeded","cost":"0.150000000","settled":false,"result":{"n":9007199254740993}`,
			`completed|"status":"succeeded","version":3,"result":{"n":9007199254740993}`},
		{ledger.OperationJSON{State: pawl.Succeeded, Version: 4, Cost: final, FinishedAt: &ended}, `{"u":"<&>"}`,
			`"state":"succeeded","cost":"0.120000000","settled":true,"result":{"u":"<&>"}`,
			`completed|"status":"succeeded","version":4,"result":{"u":"<&>"}`},
		{ledger.OperationJSON{State: pawl.Failed, Version: 3, Cost: free, Error: failure, FinishedAt: &ended}, "",
			`"state":"failed","cost":"0.000000000","settled":true,"errorCode":"content_rejected","errorMessage":"no"`,
			`completed|"status":"failed","version":3`},
		{ledger.OperationJSON{State: pawl.Canceled, Version: 3, Cost: free, FinishedAt: &ended}, "",
			`"state":"failed","cost":"0.000000000","settled":true,"errorCode":"generation_failed","errorMessage":"canceled"`,
			`completed|"status":"canceled","version":3`},
		{ledger.OperationJSON{State: pawl.Expired, Version: 3, Cost: free, FinishedAt: &ended}, "",
			`"state":"expired","cost":"0.000000000","settled":true`, `completed|"status":"failed","version":3`},
		{ledger.OperationJSON{State: pawl.Running, Version: 2}, "",
			`"state":"processing","cost":"0.000000000","settled":false`, `progress|"status":"running","version":2`},
	} {
		c.v.Model, c.v.CreatedAt = "kling-2", made
		j := jobOf(t, c.v, c.result)
		complete := ""
		if c.v.FinishedAt != nil {
			complete = `,"completeTime":1767323044000`
		}
		check(t, j, "media-v2", `{"code":200,"msg":"success","request_id":"whd_`+suffix2+`","data":{"taskId":"job_`+suffix1+
			`","model":"kling-2",`+c.media+`,"createTime":1767323040123`+complete+`}}`)
		kind, data, _ := strings.Cut(c.versioned, "|")
		check(t, j, "body-timestamp", `{"id":"evt_`+suffix2+`","type":"ai.task.`+kind+`","created_at":"2026-01-02T03:04:05.000000Z","data":{"task_id":"task_`+
			suffix1+`",`+data+`}}`)
	}
}

func check(t *testing.T, j Job, scheme, want string) {
	t.Helper()
	body, err := j.body(scheme)
	if err != nil {
		t.Errorf("%s: %v", scheme, err)
	}
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Errorf("%s: %s", scheme, diff)
	}
	again, _ := j.body(scheme)
	if string(again) != string(body) {
		t.Errorf("%s: other bytes the second time", scheme)
	}
}

// A body of 256 KiB is sent; one byte more, and the result goes by link
// (2-contracts §1, limits).
func TestBodyLimit(t *testing.T) {
	v := ledger.OperationJSON{State: pawl.Succeeded, Version: 3, CreatedAt: 1}
	for _, scheme := range []string{"standard-webhooks", "media-v2", "body-timestamp"} {
		empty, err := jobOf(t, v, `""`).body(scheme)
		if err != nil {
			t.Fatal(err)
		}
		room := 256*1024 - len(empty)
		if body, err := jobOf(t, v, `"`+strings.Repeat("x", room)+`"`).body(scheme); err != nil || len(body) != 256*1024 {
			t.Errorf("%s at the limit: %d bytes, %v", scheme, len(body), err)
		}
		for _, more := range []int{1, 1 << 20} {
			want := strings.Replace(string(empty), `"result":""`, `"result":{"href":"/v1/operations/op_`+suffix1+`"}`, 1)
			check(t, jobOf(t, v, `"`+strings.Repeat("x", room+more)+`"`), scheme, want)
		}
	}
}

func TestUnsendable(t *testing.T) {
	v := ledger.OperationJSON{State: pawl.Succeeded}
	damaged := jobOf(t, v, "")
	damaged.event.Snapshot = "{"
	for name, j := range map[string]Job{
		"no event": {}, "damaged result": jobOf(t, v, `{"a"`), "damaged snapshot": damaged,
	} {
		var cannot unsendable
		if _, err := j.body("standard-webhooks"); !errors.As(err, &cannot) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A kept body is repeated whatever became of the event since.
func TestKeptBody(t *testing.T) {
	j := Job{delivery: ledger.Delivery{BodyKept: true}, sent: `{"as":"sent"}`}
	if body, err := j.body("standard-webhooks"); err != nil || string(body) != `{"as":"sent"}` {
		t.Errorf("%s %v", body, err)
	}
}

func TestSecretsInForce(t *testing.T) {
	endpoint, key := pawl.NewID(1, 1), pawl.NewID(1, 2)
	hook := Job{endpoint: ledger.Endpoint{ID: endpoint, Kind: ledger.WebhookEndpoint, Secret: "new", FormerSecret: "old", FormerUntil: 100}}
	callback := Job{endpoint: ledger.Endpoint{ID: endpoint, Kind: ledger.CallbackEndpoint}, key: ledger.APIKey{ID: key, WebhookSecret: "new", FormerSecret: "old", FormerUntil: 100}}
	for _, c := range []struct {
		job  Job
		at   pawl.Time
		want []sealedSecret
	}{
		{hook, 99, []sealedSecret{{endpoint, "new"}, {endpoint, "old"}}}, {hook, 100, []sealedSecret{{endpoint, "new"}}},
		{callback, 99, []sealedSecret{{key, "new"}, {key, "old"}}}, {callback, 100, []sealedSecret{{key, "new"}}},
	} {
		if got := c.job.secrets(c.at); !slices.Equal(got, c.want) {
			t.Errorf("at %d: %v, want %v", c.at, got, c.want)
		}
	}
}

// The keyring is bounded, whatever the number of endpoints.
func TestKeyringIsBounded(t *testing.T) {
	v, err := vault.New(t.Context(), vault.URL(vault.NewKey()))
	if err != nil {
		t.Fatal(err)
	}
	scheme, _ := webhook.Lookup(schemeMediaV2)
	r := newKeyring(v)
	for n := range maxKeys + 10 {
		owner := pawl.NewID(1, uint64(n))
		sealed, err := v.Seal(t.Context(), owner, "secret")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.key(scheme, sealedSecret{owner, sealed}); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.known) > maxKeys || len(r.known) == 0 {
		t.Errorf("%d keys are remembered, %d are the most", len(r.known), maxKeys)
	}
}

package dialect

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

const (
	suffix1 = "00000000000000000000000001"
	suffix2 = "00000000000000000000000002"
)

func id(n byte) (id pawl.ID) {
	id[15] = n
	return id
}

// The whole bodies of 2-contracts §2 and §3, in the words of 7-rules R43.
func TestCallbacks(t *testing.T) {
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
		asked     string
	}{
		{ledger.OperationJSON{State: pawl.Pending, Version: 4, Cost: open}, "",
			`"state":"queued","cost":"0.150000000","settled":false,"errorCode":null,"errorMessage":null,"result":null`, `progress|"status":"pending","version":4`, ""},
		{ledger.OperationJSON{State: pawl.Unconfirmed, Version: 2, Cost: open}, "",
			`"state":"queued","cost":"0.150000000","settled":false,"errorCode":null,"errorMessage":null,"result":null`, `progress|"status":"pending","version":2`, ""},
		{ledger.OperationJSON{State: pawl.Running, Version: 2, Cost: open, Progress: &half}, "",
			`"state":"processing","cost":"0.150000000","settled":false,"errorCode":null,"errorMessage":null,"result":null`, `progress|"status":"running","version":2,"progress":0.5`, ""},
		{ledger.OperationJSON{State: pawl.Succeeded, Version: 3, Cost: open, FinishedAt: &ended}, `{"n": 9007199254740993}`,
			`"state":"succeeded","cost":"0.150000000","settled":false,"errorCode":null,"errorMessage":null,"result":{"n":9007199254740993}`,
			`completed|"status":"succeeded","version":3,"result":{"n":9007199254740993}`, ""},
		{ledger.OperationJSON{State: pawl.Succeeded, Version: 4, Cost: final, FinishedAt: &ended}, `{"u":"<&>"}`,
			`"state":"succeeded","cost":"0.120000000","settled":true,"errorCode":null,"errorMessage":null,"result":{"u":"<&>"}`,
			`completed|"status":"succeeded","version":4,"result":{"u":"<&>"}`, ""},
		{ledger.OperationJSON{State: pawl.Failed, Version: 3, Cost: free, Error: failure, FinishedAt: &ended}, "",
			`"state":"failed","cost":"0.000000000","settled":true,"errorCode":"content_rejected","errorMessage":"no","result":null`,
			`completed|"status":"failed","version":3`, ""},
		{ledger.OperationJSON{State: pawl.Canceled, Version: 3, Cost: free, FinishedAt: &ended}, "",
			`"state":"failed","cost":"0.000000000","settled":true,"errorCode":"generation_failed","errorMessage":"canceled","result":null`,
			`completed|"status":"canceled","version":3`, ""},
		{ledger.OperationJSON{State: pawl.Expired, Version: 3, Cost: free, FinishedAt: &ended}, "",
			`"state":"expired","cost":"0.000000000","settled":true,"errorCode":null,"errorMessage":null,"result":null`, `completed|"status":"failed","version":3`, ""},
		{ledger.OperationJSON{State: pawl.Failed, Version: 3, Cost: free, Error: &ledger.OperationErrJSON{Code: pawl.FailTimeout}, FinishedAt: &ended}, "",
			`"state":"failed","cost":"0.000000000","settled":true,"errorCode":"timeout","errorMessage":null,"result":null`,
			`completed|"status":"failed","version":3`, "studio/kling-2"},
		{ledger.OperationJSON{State: pawl.Running, Version: 2}, "",
			`"state":"processing","cost":"0.000000000","settled":false,"errorCode":null,"errorMessage":null,"result":null`, `progress|"status":"running","version":2`, ""},
	} {
		c.v.Model, c.v.CreatedAt = "kling-2", made
		c.v.ID, c.v.AskedModel = "op_"+suffix1, c.asked
		complete := "null"
		if c.v.FinishedAt != nil {
			complete = "1767323044000"
		}
		model := "kling-2"
		if c.asked != "" {
			model = c.asked
		}
		check(t, c.v, c.result, "media-v2", `{"code":200,"msg":"success","data":{"taskId":"job_`+suffix1+
			`","model":"`+model+`",`+c.media+`,"createTime":1767323040123,"completeTime":`+complete+`},"request_id":"whd_`+suffix2+`"}`)
		kind, data, _ := strings.Cut(c.versioned, "|")
		check(t, c.v, c.result, "body-timestamp", `{"id":"evt_`+suffix2+`","type":"ai.task.`+kind+`","created_at":"2026-01-02T03:04:05.000000Z","data":{"task_id":"task_`+
			suffix1+`",`+data+`}}`)
	}
}

func check(t *testing.T, v ledger.OperationJSON, result, scheme, want string) {
	t.Helper()
	v.Artifacts = []ledger.ArtifactJSON{}
	snapshot, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	e := ledger.Event{
		ID: id(2), Operation: id(1), Type: "operation." + v.State.String(), At: 1_767_323_045_000_000,
		Version: v.Version, Snapshot: string(snapshot),
	}
	for range 2 { // The same bytes the second time.
		body, err := Render(scheme, e, "", result)
		if err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
		if diff := cmp.Diff(want, string(body)); diff != "" {
			t.Errorf("%s: %s", scheme, diff)
		}
	}
}

// The order of the dialects' words (2-contracts §2, §3): a client that has seen
// one of a rank never sees one of a lower rank.
var ranks = map[string]int{
	"queued": 0, "pending": 0, "processing": 1, "running": 1, "succeeded": 2, "failed": 2, "canceled": 2, "expired": 2,
}

// Every move that the state table allows, by whatever cause, keeps or raises the
// rank in either vocabulary; so does every sequence of moves (7-rules R43). A
// correction (R9) leads from one last word to another, or to the same.
func TestNoMoveGoesBack(t *testing.T) {
	var moves int
	for from := pawl.Pending; from <= pawl.Expired; from++ {
		for to := pawl.Pending; to <= pawl.Expired; to++ {
			for cause := pawl.BySubmit; cause <= pawl.ByOperator; cause++ {
				if !pawl.CanMove(from, to, cause) {
					continue
				}
				moves++
				for name, word := range map[string]func(pawl.State) string{MediaV2: mediaState, BodyTimestamp: versionedState} {
					was, known := ranks[word(from)]
					is, also := ranks[word(to)]
					if !known || !also || is < was {
						t.Errorf("%s: %s to %s shows %q after %q", name, from, to, word(to), word(from))
					}
				}
			}
		}
	}
	if moves < 20 {
		t.Errorf("only %d moves", moves)
	}
}

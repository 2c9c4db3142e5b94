package dialect

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Whatever an operation goes through, corrections included, what callbacks and
// reads say of it never goes back in either dialect, and the version of
// body-timestamp is higher with every other status (7-rules R43).
func TestNoSequenceGoesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state, version := pawl.Pending, int64(1)
		var media, task, status string
		var held int64
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			v := ledger.OperationJSON{ID: "op_" + suffix1, State: state, Version: version, Artifacts: []ledger.ArtifactJSON{}}
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			e := ledger.Event{ID: id(2), Operation: id(1), Version: version, Snapshot: string(text)}
			var m struct{ Data struct{ State string } }
			var b struct {
				Type string
				Data struct {
					Status  string
					Version int64
				}
			}
			for scheme, into := range map[string]any{MediaV2: &m, BodyTimestamp: &b} {
				body, err := Render(scheme, e, "", "")
				if err == nil {
					err = json.Unmarshal(body, into)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if read := mediaTaskOf(v).State; read != m.Data.State || versionedTaskOf(v).Status != b.Data.Status {
				t.Fatalf("a read says %s, the callback %s", read, m.Data.State)
			}
			if media != "" && (ranks[m.Data.State] < ranks[media] || ranks[b.Data.Status] < ranks[task]) {
				t.Fatalf("%s shows %s after %s, %s after %s", state, m.Data.State, media, b.Data.Status, task)
			}
			media, task = m.Data.State, b.Data.Status
			if task != status && b.Data.Version <= held {
				t.Fatalf("%s has version %d after %d", task, b.Data.Version, held)
			}
			status, held = task, b.Data.Version
			if done := ranks[task] == 2; done != (b.Type == "ai.task.completed") {
				t.Fatalf("%s is told as %s", task, b.Type)
			}

			// The next move, or news that the dialects have no word for.
			var next []pawl.State
			for to := pawl.Pending; to <= pawl.Expired; to++ {
				for cause := pawl.BySubmit; cause <= pawl.ByOperator; cause++ {
					if pawl.CanMove(state, to, cause) {
						next = append(next, to)
					}
				}
			}
			state = rapid.SampledFrom(append(next, state)).Draw(t, "next")
			version++
		}
	})
}

package outbox

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/dialect"
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
)

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
	scheme, _ := webhook.Lookup(dialect.MediaV2)
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

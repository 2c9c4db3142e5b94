package outbox

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/dialect"
	"github.com/pawlhq/pawl/internal/ledger"
)

// An event that is about no operation has its data as it was given, under the
// id that its tenant gave it, and no words in the dialects (7-rules R49).
func TestOwnBody(t *testing.T) {
	j := Job{
		delivery: ledger.Delivery{ID: id(3), Sequence: 9},
		event:    ledger.Event{ID: id(2), ExternalID: "order-7", Type: "order.paid", At: 1_767_323_045_000_000},
		data:     `{"total": 1.10, "html": "<&>"}`,
	}
	const want = `{"id":"order-7","type":"order.paid","timestamp":"2026-01-02T03:04:05.000000Z","sequence":9,"data":{"total":1.10,"html":"<&>"}}`
	for _, scheme := range []string{"standard-webhooks", "standard-webhooks-v1a"} {
		if got, err := j.body(scheme); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", scheme, got, err, want)
		}
	}
	for _, scheme := range []string{dialect.MediaV2, dialect.BodyTimestamp} {
		var why unsendable
		if _, err := j.body(scheme); !errors.As(err, &why) {
			t.Errorf("%s: %v, want it to be unsendable", scheme, err)
		}
	}
	for what, data := range map[string]string{"lost": "", "damaged": `{"a"`, "too large": `"` + strings.Repeat("x", ledger.MaxOutbound) + `"`} {
		j.data = data
		var why unsendable
		if _, err := j.body("standard-webhooks"); !errors.As(err, &why) {
			t.Errorf("data %s: %v, want it to be unsendable", what, err)
		}
	}
	j.event.ExternalID, j.data = "", "1"
	if got, err := j.body("standard-webhooks"); err != nil || !strings.HasPrefix(string(got), `{"id":"`+id(2).Text("evt")+`"`) {
		t.Errorf("without an id of its own: %s, %v", got, err)
	}
}

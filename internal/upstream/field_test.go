package upstream

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
)

// A word that ends a task ends it on both ways in, since both read one table:
// "aborted" without an output is a failure, never a success with nothing
// (O-055).
func TestO055EndingWordOnBothPaths(t *testing.T) {
	spec, ok := Preset("sim")
	if !ok {
		t.Fatal("no preset sim")
	}
	spec.States = maps.Clone(spec.States)
	spec.States["aborted"] = pawl.Failed
	settings := config.DefaultUpstream()
	body := `{"type":"task.updated","task":"job","state":"aborted","result":null}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
	defer server.Close()
	settings.Preset, settings.BaseURL, settings.Currency, settings.Key = "sim", server.URL, "EUR", secret(t, "sk-test")
	settings.WebhookKeys = []config.DatedSecret{{Key: secret(t, testKeys["sim"])}}
	u, err := New("up", spec, settings)
	if err != nil {
		t.Fatal(err)
	}
	read := u.Read(t.Context(), newClient(t), "job")
	if read.Outcome != ledger.ReadObserved || read.Observation.State != pawl.Failed || read.Observation.Result != "" {
		t.Errorf("read: %v, %+v", read.Outcome, read.Observation)
	}
	called, rejection := u.ParseCallback(signed(t, u, "evt_1", []byte(body)), []byte(body), signedAt)
	if rejection != nil || called.Observation.State != pawl.Failed || called.Observation.Result != "" {
		t.Errorf("callback: %+v, %+v", rejection, called.Observation)
	}
	if read.Observation.Word != "aborted" || called.Observation.Word != "aborted" {
		t.Errorf("words %q and %q, want the provider's own", read.Observation.Word, called.Observation.Word)
	}
}

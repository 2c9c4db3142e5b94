package upstream

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Own workers are an upstream without an address, which calls nobody and is
// called by nobody.
func TestWorkerPreset(t *testing.T) {
	c, err := config.Parse("f.yaml", []byte("upstreams: {w: {preset: worker, attempts: 7, lease: 30s}}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := Build(c)
	if err != nil {
		t.Fatal(err)
	}
	u := set["w"]
	p := u.Policy()
	if !u.Worked() || !p.Worker || p.WorkLease != 30*time.Second || p.SubmitAttempts != 7 || p.Adapter != ledger.WorkerAdapter || !p.Cancels {
		t.Errorf("policy %+v", p)
	}
	if p.Callbacks || p.Reads || p.Lookups || p.Idempotent || u.CallsBack() {
		t.Errorf("it is called: %+v", p)
	}
	if config.MaxAttempts != ledger.MaxWorkAttempts {
		t.Errorf("%d attempts may be configured, and %d are counted", config.MaxAttempts, ledger.MaxWorkAttempts)
	}
	// A description of that name cannot be slipped in.
	if _, err := Parse([]byte("name: worker\nversion: 1\n")); err == nil {
		t.Error("a description without calls is taken")
	}
}

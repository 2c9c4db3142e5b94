package upstream

import (
	"slices"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
)

// workerSpec describes own workers, who come for their work: there is nothing to
// call, so that no YAML can say it.
var workerSpec = Spec{Name: config.PresetWorker, Version: 1}

// Worked reports whether own workers do the work, and not a provider.
func (u Upstream) Worked() bool { return u.spec.Name == config.PresetWorker }

// newWorked joins the description of own workers with the settings of one
// upstream, which [config.Config.Validate] has checked.
func newWorked(name string, settings config.Upstream) Upstream {
	return Upstream{name: name, spec: workerSpec, settings: settings}
}

// workPolicy makes a policy one of own workers.
func workPolicy(p ledger.Upstream, s config.Upstream) ledger.Upstream {
	p.Worker, p.WorkLease, p.SubmitAttempts = true, s.Lease, int32(s.Attempts)
	// A worker is told with its next heartbeat.
	p.Cancels = true
	return p
}

// known are the presets that a configuration may name.
func known() []string {
	names := append(Presets(), config.PresetWorker)
	slices.Sort(names)
	return names
}

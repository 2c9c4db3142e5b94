// Package demo runs the main job on one machine without any provider: a real
// node on a temporary ledger, the misbehaving sim as three upstreams, and a
// receiver that verifies what it is sent. At the end the books of all three
// are compared, and the invariants of the ledger are checked.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/sim"
)

// Options say how large a demo is and where it writes.
type Options struct {
	// Operations is how many are submitted; 200 if zero.
	Operations int
	// Seed draws the fault plan.
	Seed uint64
	// Out takes the closing table, Progress the lines in between; nil drops
	// them.
	Out, Progress io.Writer
	// JSON makes the closing table one JSON document.
	JSON bool
	// Patience is how long the demo waits for everything to end; 5 minutes if
	// zero.
	Patience time.Duration
	// Incident lets one provider and one receiver fail for so long when the books
	// were compared, while the application goes on; 0 for none. It needs Stay.
	Incident time.Duration
	// Stay is called when the books were compared, while the node still runs; it
	// ends when Stay returns. nil ends it at once.
	Stay func(context.Context, Place) error
}

// Place is where the node of a demo is.
type Place struct {
	// API and Admin are the addresses of its listeners; the console is at
	// Admin + "/console".
	API, Admin string
	// Key is its admin key.
	Key string
}

// ErrDiffers means that the demo ended and something did not hold; the table
// says what.
var ErrDiffers = errors.New("demo: the books do not agree")

// Speed of the sim, and the price of each operation in the demo's currency.
const (
	speed    = 4
	currency = "USD"
)

// Run runs one demo. It returns [ErrDiffers] if a check failed.
func Run(ctx context.Context, o Options) (err error) {
	o = o.withDefaults()
	dir, err := os.MkdirTemp("", "pawl-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &stage{o: o, dir: filepath.Join(dir, "data"), plan: sim.NewPlan(o.Seed, o.Operations, o.faults())}
	defer func() { err = errors.Join(err, s.close()) }()
	fmt.Fprintf(o.Progress, "seed %d, %d operations, fault plan %s\n", o.Seed, o.Operations, s.plan.Hash()[:16])
	stays := ctx
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	started := time.Now()
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"start the sim, the receiver and a node", s.start},
		{"submit the operations", s.submit},
		{"wait until every outcome is known and delivered", s.settle},
		{"stop the node and start it again on its ledger", s.restart},
	}
	for _, step := range steps {
		fmt.Fprintf(o.Progress, "%6.1fs  %s\n", time.Since(started).Seconds(), step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("demo: %s: %w", step.what, err)
		}
	}
	report, err := s.compare(ctx)
	if err != nil {
		return fmt.Errorf("demo: compare the books: %w", err)
	}
	report.Seconds = time.Since(started).Seconds()
	if err := report.write(o.Out, o.JSON); err != nil {
		return err
	}
	if o.Stay != nil {
		over, err := s.incident(stays)
		if err != nil {
			return err
		}
		defer over()
		if err := o.Stay(stays, Place{s.node.APIURL(), s.node.AdminURL(), s.api.key}); err != nil {
			return err
		}
	}
	if !report.OK() {
		return ErrDiffers
	}
	return nil
}

// faults are what the plan may contain. Before an incident nothing may be left
// that asks a person, so that whoever clears it can see that it is over.
func (o Options) faults() sim.Options {
	all := sim.Options{Currency: currency}
	if o.Incident > 0 {
		all.Without = []sim.Fault{sim.CallbackConflict, sim.CreateLost, sim.CreateSlow, sim.CreateFailedBefore, sim.CreateFailedAfter}
	}
	return all
}

func (o Options) withDefaults() Options {
	if o.Operations <= 0 {
		o.Operations = 200
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Patience <= 0 {
		o.Patience = 5 * time.Minute
	}
	return o
}

// upstreams names the upstream of each dialect in the demo's configuration.
var upstreams = map[sim.Dialect]string{sim.Native: "sim", sim.MediaV2: "studio", sim.BodyTimestamp: "tasks"}

// Upstreams is the part of a configuration that makes a sim's dialects three
// upstreams of a node on the same machine.
func Upstreams(provider string, server *sim.Server) string {
	var b strings.Builder
	b.WriteString("egress: {allow: [127.0.0.0/8]}\n")
	fmt.Fprintf(&b, "tenants: {default: {account: {currency: %s, credit: \"1000000\"}}}\nupstreams:\n", currency)
	presets := map[sim.Dialect]string{sim.Native: "sim", sim.MediaV2: "media-v2", sim.BodyTimestamp: "body-timestamp"}
	for _, d := range sim.Dialects() {
		preset, keys := presets[d], fmt.Sprintf("%q", server.Secret(d))
		if !server.Signs(d) {
			preset, keys = preset+"-unsigned", ""
		}
		fmt.Fprintf(&b, `  %s:
    preset: %s
    base_url: %s
    key: %q
    webhook_keys: [%s]
    currency: %s
    deadline: 1h
    timeout: 2s
    concurrency: 32
    read: {first: 500ms, factor: 1.5, max: 2s, rate: 50}
    owner: the demo
`, upstreams[d], preset, provider, server.Key(), keys, currency)
	}
	return b.String()
}

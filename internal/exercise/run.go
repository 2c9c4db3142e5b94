package exercise

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

// run is one exercise under way.
type run struct {
	o      Options
	out    string
	raw    []byte
	fix    Fixture
	ring   keyring
	dialer *dialer
	wire   *wire

	program string
	dir     string
	receipt receipt
	checks  []Check
	book    book
	// ports are those of the receiver and the provider, then all others.
	ports []string
	// ended is what the crash's event came to where nobody was killed.
	ended standing
}

// all plays, closes, checks and gives the files of the folder.
func (r *run) all(ctx context.Context) (folder, error) {
	r.receipt = receipt{Tool: r.o.Tool, StartedAt: pawl.TimeOf(time.Now())}
	var err error
	if r.program, err = os.Executable(); err != nil {
		return nil, err
	}
	if r.receipt.SHA256.Binary.Before, err = hashFile(r.program); err != nil {
		return nil, err
	}
	r.receipt.SHA256.Fixture.Before = sha256Hex(r.raw)
	if r.dir, err = os.MkdirTemp("", "pawl-exercise-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(r.dir)
	if err := r.main(ctx); err != nil {
		return nil, err
	}
	if err := r.crashes(ctx); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("given up: %w", err)
	}
	r.afterwards(ctx)
	return r.files()
}

func (r *run) note(name, evidence string, err error) {
	c := Check{Name: name, Pass: err == nil, Evidence: evidence}
	if err != nil {
		c.Evidence = strings.TrimPrefix(evidence+"; "+strings.ReplaceAll(err.Error(), "\n", "; "), "; ")
	}
	r.checks = append(r.checks, c)
}

// main plays the fixture's steps on a real ledger.
func (r *run) main(ctx context.Context) (err error) {
	driver, err := sqlite.Open(ctx, filepath.Join(r.dir, "ledger"), sqlite.Options{})
	if err != nil {
		return err
	}
	s, err := openStage(r.fix, r.ring, driver, r.dialer, r.wire)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r.ports = s.addresses()
	if err := s.bindAll(ctx); err != nil {
		return err
	}
	r.bound(ctx, s)
	crash, _ := r.fix.crashEvent()
	var all []played
	for _, step := range r.fix.Steps {
		p, err := s.play(ctx, step)
		if err != nil {
			r.checks = append(r.checks, Check{Name: step.Check, ExpectedRefusal: step.Refusal, Evidence: err.Error()})
			continue
		}
		if step.Check == crash.Check {
			r.ended = p.after[step.task()]
		}
		r.checks = append(r.checks, p.judge())
		all = append(all, p)
	}
	r.counted(s)
	r.book, err = s.write(ctx, all)
	r.note(checkOneVerdict, fmt.Sprintf("ledger.json: %d verified events, each with its verdict", len(r.book.Events)), err)
	err = violations(ctx, driver)
	r.note(checkInvariants, fmt.Sprintf("ledger.json: pawl ledger check over %d operations in the temporary ledger", len(r.book.Operations)), err)
	return nil
}

// bound checks how things are before the first step.
func (r *run) bound(ctx context.Context, s *stage) {
	all, err := s.standings(ctx)
	var wrong []error
	for _, op := range r.fix.Operations {
		if got := all[op.Task]; err == nil && (got.State != pawl.Running || got.UpstreamState != op.Word) {
			wrong = append(wrong, fmt.Errorf("%s is %s/%s, expected running/%s", op.Task, got.State, got.UpstreamState, op.Word))
		}
	}
	evidence := fmt.Sprintf("ledger.json: tasks %s are running, bound by submit, lease and acceptance", strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	r.note(checkBound, evidence, errors.Join(append(wrong, err)...))
}

// counted checks what reached the provider.
func (r *run) counted(s *stage) {
	creates, others, reads := s.provider.counts()
	want := make(map[string]int)
	total := 0
	for _, step := range r.fix.Steps {
		if step.Read != nil {
			want[step.Read.Task]++
			total++
		}
	}
	var err error
	if !maps.Equal(want, reads) || others > 0 {
		err = fmt.Errorf("the provider counted %s and %d other requests, expected %s", listed(reads), others, listed(want))
	}
	r.note(checkReads, fmt.Sprintf("ledger.json: %d status reads were asked for, %s were made", total, listed(reads)), err)
	err = nil
	if creates != 0 {
		err = fmt.Errorf("%d creates reached the provider", creates)
	}
	r.note(checkCreates, fmt.Sprintf("ledger.json: the provider counted %d calls of %s %s since the operations were bound", creates, r.fix.spec.Create.Method, r.fix.spec.Create.Path), err)
}

// listed writes counts by task.
func listed(counts map[string]int) string {
	var parts []string
	for _, task := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d of %s", counts[task], task))
	}
	return orNone(strings.Join(parts, ", "))
}

// crashes kills a child at both points.
func (r *run) crashes(ctx context.Context) error {
	client, err := r.dialer.client()
	if err != nil {
		return err
	}
	defer client.Close()
	c := &crasher{fix: r.fix, raw: r.raw, ring: r.ring, program: r.program, dir: r.dir, dialer: r.dialer, client: client, wire: r.wire}
	if err := c.open(); err != nil {
		return err
	}
	r.ports = append(r.ports, c.port.address())
	for _, one := range [...]struct{ point, check string }{{stopAfterCommit, checkCrashA}, {stopBeforeDelivery, checkCrashB}} {
		b, err := c.run(ctx, one.point, one.check)
		if err == nil {
			err = b.judge(r.ended)
		}
		r.book.Crashes = append(r.book.Crashes, b)
		r.note(one.check, fmt.Sprintf("ledger.json: first life %q, answers %d and %d to the same event, %s/%s v%d, outcomes %s in %d deliveries",
			orNone(b.Killed), b.FirstAnswer, b.RepeatAnswer, b.State, b.Upstream, b.Version, strings.Join(b.Outcomes, ", "), b.Deliveries), err)
	}
	r.ports = append(r.ports, c.ports...)
	return c.close()
}

// afterwards checks what must hold once everything is closed.
func (r *run) afterwards(ctx context.Context) {
	err := replay(ctx, r.dialer, r.fix, r.book, r.wire.exchanges())
	r.note(checkReplay, fmt.Sprintf("wire/: %d exchanges, the inbound ones and the reads played again on a ledger in memory", len(r.wire.exchanges())), err)
	var open []error
	for _, address := range r.ports {
		open = append(open, r.dialer.refusesConnections(ctx, address))
	}
	r.note(checkPorts, fmt.Sprintf("provider %s and receiver %s refuse, and so do %d others that were used", r.ports[0], r.ports[1], len(r.ports)-2), errors.Join(open...))
	err = os.RemoveAll(r.dir)
	if there := absent(r.dir); err == nil && there != nil {
		err = fmt.Errorf("%s is still there", r.dir)
	}
	r.note(checkRemoved, r.dir+" does not exist any more", err)
	asked, refused := r.dialer.list()
	err = nil
	if len(refused) > 0 {
		err = fmt.Errorf("asked for and refused: %s", strings.Join(refused, ", "))
	}
	r.note(checkDialled, fmt.Sprintf("%d connections were asked for, %d of them not to 127.0.0.1", asked, len(refused)), err)
	r.unchanged()
}

func (r *run) unchanged() {
	h := &r.receipt.SHA256
	var err error
	if h.Binary.After, err = hashFile(r.program); err == nil {
		var again []byte
		again, err = loadFixture(r.o.Fixture)
		h.Fixture.After = sha256Hex(again)
	}
	if err == nil && !(h.Binary.same() && h.Fixture.same()) {
		err = errors.New("the SHA-256 before and after differ")
	}
	evidence := "execution-receipt.json: SHA-256 of " + r.program
	if r.o.Fixture != "" {
		path, _ := filepath.Abs(r.o.Fixture)
		evidence += " and " + path
	} else {
		evidence += " and the built-in fixture"
	}
	r.note(checkUnchanged, evidence+" before and after", err)
}

// files makes the folder.
func (r *run) files() (folder, error) {
	r.receipt.FinishedAt, r.receipt.Checks = pawl.TimeOf(time.Now()), r.checks
	public, err := r.receipt.normalize(r.hidden())
	if err != nil {
		return nil, err
	}
	r.checks = public.Checks
	f := folder{fileFixture: r.raw}
	add := func(name string, v any) {
		var failed error
		f[name], failed = encode(v)
		err = errors.Join(err, failed)
	}
	for _, x := range r.wire.exchanges() {
		add(wireName(x), x)
	}
	add(fileLedger, r.book)
	add(fileReceipt, public)
	add(fileFailure, public.failures())
	return f, errors.Join(err, f.seal())
}

// hidden are the absolute paths that a receipt may come to hold.
func (r *run) hidden() []hiddenPath {
	hidden := []hiddenPath{{r.out, "{out}"}, {r.dir, "{ledger}"}, {r.program, "{program}"}, {os.TempDir(), "{temporary}"}}
	if r.o.Fixture != "" {
		path, _ := filepath.Abs(r.o.Fixture)
		hidden = append(hidden, hiddenPath{path, "{fixture}"})
	}
	if home, err := os.UserHomeDir(); err == nil {
		hidden = append(hidden, hiddenPath{home, "{home}"})
	}
	if here, err := os.Getwd(); err == nil {
		hidden = append(hidden, hiddenPath{here, "{here}"})
	}
	return hidden
}

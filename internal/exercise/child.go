package exercise

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/outbox"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/sqlite"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// childVariable is set in the environment of a child and nowhere else.
const childVariable = "PAWL_EXERCISE_CHILD"

// IsChild reports whether this process was started by an exercise, to be
// killed: the program must call [Child] then and nothing else, before it looks
// at its arguments.
func IsChild() bool { return os.Getenv(childVariable) != "" }

// Child is the node that an exercise kills: receiver, store and outbox on the
// ledger that the first line of standard input names. It ends when standard
// input does, and gives the exit status.
func Child(ctx context.Context) int { return child(ctx, os.Stdin, os.Stdout) }

// The points at which a child stops to be killed.
const (
	// stopAfterCommit: the event is committed, nobody has been answered.
	stopAfterCommit = "after-commit-before-answer"
	// stopBeforeDelivery: the event is committed and answered, no byte of its
	// outcome has been sent.
	stopBeforeDelivery = "after-commit-before-delivery"
)

// order is what a child is told, on one line.
type order struct {
	Fixture []byte `json:"fixture"`
	Run     string `json:"run"`
	Ledger  string `json:"ledger"`
	Stop    string `json:"stop,omitempty"`
}

// message is a line that a child writes; one field is set.
type message struct {
	Ready   string `json:"ready,omitempty"`
	Stopped string `json:"stopped,omitempty"`
	Dialled string `json:"dialled,omitempty"`
	Error   string `json:"error,omitempty"`
}

// victim is a child at work.
type victim struct {
	order   order
	mu      sync.Mutex
	out     *json.Encoder
	stopped chan struct{}
	once    sync.Once
}

func child(ctx context.Context, in io.Reader, out io.Writer) int {
	v := &victim{out: json.NewEncoder(out), stopped: make(chan struct{})}
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &v.order)
	}
	if err == nil {
		err = v.live(ctx, lines)
	}
	if err != nil {
		v.say(message{Error: err.Error()})
		return 1
	}
	return 0
}

func (v *victim) say(m message) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.out.Encode(m) // whoever should read it is gone, and so is the reason to live
}

// stop tells the parent and stands still, holding whatever the caller holds.
func (v *victim) stop(where string) {
	v.once.Do(func() {
		v.say(message{Stopped: where})
		close(v.stopped)
	})
	select {}
}

// live serves until there is no more input.
func (v *victim) live(ctx context.Context, in io.Reader) (err error) {
	fix, err := ParseFixture(v.order.Fixture)
	if err != nil {
		return err
	}
	ring, err := parseKeyring(v.order.Run)
	if err != nil {
		return err
	}
	driver, err := sqlite.Open(ctx, v.order.Ledger, sqlite.Options{})
	if err != nil {
		return err
	}
	core, err := newCore(fix, ring, driver, "http://127.0.0.1:1", v.committed)
	if err != nil {
		return err
	}
	d := &dialer{before: v.dialling}
	client, err := d.client()
	if err != nil {
		return errors.Join(err, core.close())
	}
	hooks, err := listen(core.receiver(telemetry.NewMetrics(nil)))
	if err != nil {
		return errors.Join(err, core.close())
	}
	secrets, err := ring.vault(ctx)
	if err != nil {
		return errors.Join(err, hooks.close(), core.close())
	}
	box := outbox.New(outbox.Options{Store: core.store, Reader: driver, Client: client, Vault: secrets, Poll: 50 * time.Millisecond})
	if err := box.FreeLeases(ctx); err != nil {
		return errors.Join(err, hooks.close(), core.close())
	}
	go func() { _ = box.Run(context.WithoutCancel(ctx)) }()
	v.say(message{Ready: hooks.address()})
	_, _ = io.Copy(io.Discard, in)
	select {
	case <-v.stopped:
		return errors.New("the parent went away before it killed its child")
	default:
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return errors.Join(hooks.close(), box.Drain(limit), core.close())
}

// committed runs after a commit and before its answers are released.
func (v *victim) committed(c store.Commit) {
	if v.order.Stop != stopAfterCommit {
		return
	}
	for _, change := range c.Rows.Events.Changes() {
		if change.Now.Direction == ledger.Inbound {
			v.stop(stopAfterCommit)
		}
	}
}

// dialling runs before each connection: here only the outbox makes any.
func (v *victim) dialling(address string) {
	v.say(message{Dialled: address})
	if v.order.Stop == stopBeforeDelivery {
		v.stop(stopBeforeDelivery)
	}
}

package exercise

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/upstream"
)

//go:embed fixture.json
var builtIn []byte

// maxFixture bounds a fixture, maxSteps what it may ask for.
const (
	maxFixture = 8 << 20
	maxSteps   = 500
)

// Fixture is what an exercise plays: a provider's description, the operations
// bound to its tasks, and what arrives, in order. docs/exercise.md describes
// its JSON.
type Fixture struct {
	// About is free text for the reader.
	About string `json:"about,omitempty"`
	// Upstream is the provider's description, with the keys of a preset.
	Upstream   jsontext.Value     `json:"upstream"`
	Operations []FixtureOperation `json:"operations"`
	Steps      []Step             `json:"steps"`

	spec upstream.Spec
}

// FixtureOperation is one operation that is bound to a task before the first
// step.
type FixtureOperation struct {
	// Task is the provider's id of it.
	Task string `json:"task"`
	// Word is the provider's state word when it accepted the task.
	Word string `json:"word"`
}

// Step is one thing that arrives, and what must come of it: an event or the
// answer to a read, exactly one of them.
type Step struct {
	// Check names the check that the step is, in the receipts.
	Check string     `json:"check"`
	Event *Inbound   `json:"event,omitempty"`
	Read  *ReadReply `json:"read,omitempty"`
	// Before is what the operation must be before the step.
	Before *Expect `json:"before,omitempty"`
	Expect Expect  `json:"expect"`
	// Refusal marks a step that must be refused; Recovery one that belongs to
	// the reconciliation.
	Refusal  bool `json:"refusal,omitempty"`
	Recovery bool `json:"recovery,omitempty"`
	// Look says where to look if the check fails.
	Look string `json:"look,omitempty"`
}

// Inbound is an event as it was captured. It is signed anew, with the secret of
// the run.
type Inbound struct {
	ID string `json:"id"`
	// To is the task of the operation whose callback address it comes to;
	// empty for the source's own address.
	To   string         `json:"to,omitempty"`
	Body jsontext.Value `json:"body"`
	// Age is how many seconds ago it was signed.
	Age int64 `json:"age,omitempty"`
	// Stranger signs it with another secret.
	Stranger bool `json:"stranger,omitempty"`
}

// ReadReply is what the provider answers to the one status read of a task.
type ReadReply struct {
	Task string `json:"task"`
	// Status is the HTTP status, 200 if zero.
	Status int            `json:"status,omitempty"`
	Body   jsontext.Value `json:"body"`
}

// Expect is what must be observed; empty fields are not compared. Status is of
// the receiver's answer, Verdict of the event or read, the states are those of
// the operation that the step is about.
type Expect struct {
	Status        int    `json:"status,omitempty"`
	Verdict       string `json:"verdict,omitempty"`
	State         string `json:"state,omitempty"`
	UpstreamState string `json:"upstream_state,omitempty"`
}

// loadFixture reads a fixture's bytes: the built-in one if no file is named.
func loadFixture(file string) ([]byte, error) {
	if file == "" {
		return builtIn, nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFixture {
		return nil, errors.New("the file is larger than 8 MiB; capture fewer events")
	}
	return os.ReadFile(file)
}

// ParseFixture reads a fixture strictly and checks it whole: unknown members,
// a description that is none and steps that cannot be played are errors.
func ParseFixture(data []byte) (Fixture, error) {
	var f Fixture
	if len(data) > maxFixture {
		return f, errors.New("fixture: it is larger than 8 MiB; capture fewer events")
	}
	if err := json.Unmarshal(data, &f, json.RejectUnknownMembers(true)); err != nil {
		return f, fmt.Errorf("fixture: %w", err)
	}
	spec, err := upstream.Parse(f.Upstream)
	if err != nil {
		return f, fmt.Errorf("fixture: upstream: %w", err)
	}
	f.spec = spec
	if err := f.check(); err != nil {
		return f, fmt.Errorf("fixture: %w", err)
	}
	return f, nil
}

var checkShape = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,79}$`)

func (f Fixture) check() error {
	if f.spec.Callback == nil {
		return errors.New("upstream.callback: is missing; the exercise is about callbacks")
	}
	if len(f.Operations) == 0 || len(f.Steps) == 0 || len(f.Steps) > maxSteps {
		return fmt.Errorf("operations and steps must not be empty, and there can be %d steps at most", maxSteps)
	}
	tasks := make(map[string]bool)
	for _, op := range f.Operations {
		state, known := f.spec.States[op.Word]
		if op.Task == "" || len(op.Task) > 255 || tasks[op.Task] || !known || state != pawl.Running {
			return errors.New("operations: each needs a task of its own and a word that maps to running")
		}
		tasks[op.Task] = true
	}
	names := make(map[string]bool)
	for _, s := range f.Steps {
		if _, ours := reserved[s.Check]; ours || !checkShape.MatchString(s.Check) || names[s.Check] {
			return errors.New("steps: each needs a check of its own: lower-case letters, digits, _ . -")
		}
		names[s.Check] = true
		if err := s.check(f, tasks); err != nil {
			return fmt.Errorf("steps: %s: %w", s.Check, err)
		}
	}
	if _, ok := f.crashEvent(); !ok {
		return errors.New("steps: one event must be expected to be applied and to end an operation: it is what the crash is tried with")
	}
	return nil
}

func (s Step) check(f Fixture, tasks map[string]bool) error {
	switch {
	case (s.Event == nil) == (s.Read == nil):
		return errors.New("must have either event or read")
	case s.Event != nil && (s.Event.ID == "" || len(s.Event.Body) == 0):
		return errors.New("event: id and body are needed")
	case s.Event != nil && s.Event.To != "" && !tasks[s.Event.To]:
		return errors.New("event: to must be a task of operations")
	case s.Read != nil && (!tasks[s.Read.Task] || len(s.Read.Body) == 0):
		return errors.New("read: a task of operations and a body are needed")
	case s.Read != nil && f.spec.Read == nil:
		return errors.New("read: the description has no read")
	case s.Read != nil && s.Read.Status != 0 && (s.Read.Status < 200 || s.Read.Status > 599):
		return errors.New("read: status must be 200 to 599")
	case s.task() == "" && (s.Before != nil || s.Expect.State != "" || s.Expect.UpstreamState != ""):
		return errors.New("a state can be expected only where an operation is named: set event.to")
	case s.Refusal && (s.Expect.Verdict == pawl.Applied.String() || s.Expect.Status/100 == 2):
		return errors.New("a refusal cannot be expected to be applied")
	}
	if _, known := pawl.ParseVerdict(s.Expect.Verdict); s.Expect.Verdict != "" && !known {
		return errors.New("expect.verdict: not a verdict")
	}
	return nil
}

// task is that of the operation that the step is about, "" for none.
func (s Step) task() string {
	if s.Read != nil {
		return s.Read.Task
	}
	return s.Event.To
}

// crashEvent is the first event that ends an operation.
func (f Fixture) crashEvent() (Step, bool) {
	for _, s := range f.Steps {
		state, ok := pawl.ParseState(s.Expect.State)
		if s.Event != nil && s.Event.To != "" && s.Expect.Verdict == pawl.Applied.String() && ok && state.Terminal() {
			return s, true
		}
	}
	return Step{}, false
}

// operation is the one bound to a task.
func (f Fixture) operation(task string) FixtureOperation {
	for _, op := range f.Operations {
		if op.Task == task {
			return op
		}
	}
	return FixtureOperation{}
}

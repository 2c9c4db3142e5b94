package exercise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/upstream"
)

// Captured is an operation as a ledger has it, for [Capture].
type Captured struct {
	// Description is the provider's description, as YAML or JSON.
	Description []byte
	// Task is the provider's id of the operation's task.
	Task string
	// Seen is what came of it, oldest first.
	Seen []Seen
}

// Seen is an event that was received, or a read that brought something.
type Seen struct {
	// Event is the event's id at its sender and Body its raw body; a read has
	// neither.
	Event string
	Body  []byte
	// Verdict is what became of it, State the operation's state after it.
	Verdict pawl.Verdict
	State   pawl.State
}

// Capture makes a fixture of a real operation. What identifies, orders and
// prices a task stays; every other value of the bodies is replaced, results and
// messages among them. Reads, whose answers a ledger does not keep, are made
// anew from the state that they told. All is played once on a ledger in memory,
// and what comes to something else there is left out and counted. The error says
// what the operation lacks.
func Capture(ctx context.Context, c Captured) (text []byte, left int, err error) {
	spec, err := upstream.Parse(c.Description)
	if err != nil {
		return nil, 0, err
	}
	if spec.Callback == nil {
		return nil, 0, errors.New("the provider does not call back, and the exercise is about callbacks")
	}
	if c.endedByRead() {
		return nil, 0, errors.New("a read ended it before any callback did, and the exercise tries its crashes with the callback that ends an operation")
	}
	plain, err := plainDescription(c.Description)
	if err != nil {
		return nil, 0, err
	}
	f := Fixture{About: "Captured from an operation; payloads are replaced.", Upstream: plain, spec: spec}
	f.Operations = []FixtureOperation{{Task: c.Task, Word: wordOf(spec, pawl.Running)}}
	for i, seen := range c.Seen {
		step, err := seen.step(spec, c.Task, c.Seen[i+1:])
		if err != nil {
			return nil, 0, err
		}
		step.Check = fmt.Sprintf("step_%d_%s", i+1, step.Expect.Verdict)
		f.Steps = append(f.Steps, step)
	}
	if err := f.check(); err != nil {
		return nil, 0, err
	}
	played, err := f.playable(ctx)
	if err != nil {
		return nil, 0, err
	}
	if err := played.check(); err != nil {
		return nil, 0, fmt.Errorf("%d of its steps come to something else without what the ledger does not keep: %w", len(f.Steps)-len(played.Steps), err)
	}
	text, err = json.Marshal(played, jsontext.WithIndent("  "))
	return text, len(f.Steps) - len(played.Steps), err
}

// endedByRead reports whether the first end was told by a read.
func (c Captured) endedByRead() bool {
	i := slices.IndexFunc(c.Seen, func(e Seen) bool { return e.Verdict == pawl.Applied && e.State.Terminal() })
	return i >= 0 && c.Seen[i].Event == ""
}

func (e Seen) step(spec upstream.Spec, task string, later []Seen) (Step, error) {
	expect := Expect{Verdict: e.Verdict.String(), State: e.State.String()}
	if e.Event == "" {
		body, err := e.answer(spec, task, later)
		return Step{Recovery: true, Read: &ReadReply{Task: task, Body: body}, Expect: expect}, err
	}
	expect.Status = answerTo(e.Verdict)
	body, err := replaced(e.Body, kept(spec))
	return Step{Event: &Inbound{ID: e.Event, To: task, Body: body}, Expect: expect, Refusal: expect.Status/100 != 2}, err
}

// answerTo is how the receiver answers (2-contracts §1).
func answerTo(v pawl.Verdict) int {
	switch v {
	case pawl.Duplicate, pawl.Stale, pawl.Conflict:
		return 200
	case pawl.Rejected, pawl.UnknownState:
		return 400
	}
	return 202
}

// wordOf is the first of the provider's words for a state.
func wordOf(spec upstream.Spec, state pawl.State) string {
	if words := wordsOf(spec, state); len(words) > 0 {
		return words[0]
	}
	return ""
}

// kept are the places of a callback whose values stay.
func kept(spec upstream.Spec) map[jsontext.Pointer]bool {
	f := spec.Callback.Fields
	keep := make(map[jsontext.Pointer]bool)
	for _, p := range append([]string{
		f.Task, f.State, f.Version, f.Progress, f.Cost, f.Currency, f.Settled, f.ErrorCode, spec.Callback.Type, spec.Envelope.Code,
	}, spec.Callback.Event.From...) {
		if strings.HasPrefix(p, "/") {
			keep[jsontext.Pointer(p)] = true
		}
	}
	return keep
}

// replaced is a JSON text whose values, but for those kept, say nothing: the
// shape stays, texts become "replaced", numbers 0.
func replaced(body []byte, keep map[jsontext.Pointer]bool) (jsontext.Value, error) {
	in := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	var text bytes.Buffer
	out := jsontext.NewEncoder(&text, jsontext.AllowDuplicateNames(true))
	for {
		token, err := in.ReadToken()
		if err == io.EOF {
			return jsontext.Value(bytes.TrimSpace(text.Bytes())), nil
		}
		if err != nil {
			return nil, errors.New("the body of an event is no JSON, and cannot be captured")
		}
		parent, members := in.StackIndex(in.StackDepth())
		isName := parent == '{' && members%2 == 1
		if !isName && !keep[in.StackPointer()] {
			switch token.Kind() {
			case '"':
				token = jsontext.String("replaced")
			case '0':
				token = jsontext.Int(0)
			}
		}
		if err := out.WriteToken(token); err != nil {
			return nil, err
		}
	}
}

// answer is one to a read that says no more than the task's state and, of a task
// that goes on, what the next event repeated: that is why it was stale.
func (e Seen) answer(spec upstream.Spec, task string, later []Seen) (jsontext.Value, error) {
	if spec.Read == nil {
		return nil, errors.New("the description has no read")
	}
	root := make(map[string]any)
	f, said := spec.Read.Fields, spec.Callback.Fields
	for _, v := range [][2]string{{f.Task, task}, {f.State, wordOf(spec, e.State)}, {f.Result, "replaced"}} {
		if v[0] != "" && (v[0] != f.Result || e.State == pawl.Succeeded) {
			place(root, v[0], v[1])
		}
	}
	next := slices.IndexFunc(later, func(e Seen) bool { return e.Event != "" })
	if next >= 0 && later[next].Verdict == pawl.Stale && !e.State.Terminal() {
		for _, v := range [][2]string{{f.State, said.State}, {f.Version, said.Version}, {f.Progress, said.Progress}, {f.Cost, said.Cost}} {
			if value := valueAt(later[next].Body, v[1]); v[0] != "" && value != nil {
				place(root, v[0], value)
			}
		}
	}
	return json.Marshal(root, json.Deterministic(true))
}

// valueAt is the value at a pointer into objects, nil if there is none.
func valueAt(body jsontext.Value, pointer string) jsontext.Value {
	if !strings.HasPrefix(pointer, "/") {
		return nil
	}
	for name := range jsontext.Pointer(pointer).Tokens() {
		var members map[string]jsontext.Value
		if json.Unmarshal(body, &members) != nil {
			return nil
		}
		body = members[name]
	}
	return body
}

// place puts a value at a pointer into objects.
func place(root map[string]any, pointer string, value any) {
	names := slices.Collect(jsontext.Pointer(pointer).Tokens())
	for _, name := range names[:len(names)-1] {
		next, ok := root[name].(map[string]any)
		if !ok {
			next = make(map[string]any)
			root[name] = next
		}
		root = next
	}
	root[names[len(names)-1]] = value
}

// plainDescription is a description as the JSON that a fixture holds.
func plainDescription(text []byte) (jsontext.Value, error) {
	plain, err := yaml.YAMLToJSON(text)
	return jsontext.Value(plain), err
}

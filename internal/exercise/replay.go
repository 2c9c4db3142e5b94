package exercise

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store/memory"
)

// replay plays the recorded events and reads of a run once more, on a ledger in
// memory: receiver, parser and rules are the real ones, and events are signed
// anew by whoever signed them, as long ago as then. It compares every answer
// and the ledger at the end.
func replay(ctx context.Context, d *dialer, fix Fixture, want book, wire []exchange) error {
	ring, err := parseKeyring(want.Run)
	if err != nil {
		return fmt.Errorf("ledger.json: %w", err)
	}
	main := ofPhases(wire, phaseEvents, phaseRecovery)
	got, found, err := replayOn(ctx, d, fix, ring, main)
	if err != nil {
		return err
	}
	err = errors.Join(found, want.sameAs(got))
	for _, point := range [...]string{stopAfterCommit, stopBeforeDelivery} {
		sent := slices.DeleteFunc(ofPhases(wire, point), func(x exchange) bool { return x.Kind != callback })
		_, found, failed := replayOn(ctx, d, fix, ring, sent)
		err = errors.Join(err, found, failed)
	}
	return err
}

func ofPhases(wire []exchange, phases ...string) (some []exchange) {
	for _, x := range wire {
		if slices.Contains(phases, x.Phase) {
			some = append(some, x)
		}
	}
	return some
}

// replayOn plays exchanges on a ledger of their own. It tells what differs
// beside what kept it from playing.
func replayOn(ctx context.Context, d *dialer, fix Fixture, ring keyring, recorded []exchange) (_ book, found, err error) {
	s, err := openStage(fix, ring, memory.New(memory.Options{}), d, &wire{})
	if err != nil {
		return book{}, nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.bindAll(ctx); err != nil {
		return book{}, nil, err
	}
	var all []played
	var differences []error
	for _, x := range recorded {
		step, err := x.step(fix)
		if err != nil {
			return book{}, nil, fmt.Errorf("%s: %w", wireName(x), err)
		}
		p, err := s.play(ctx, step)
		if err != nil {
			return book{}, nil, fmt.Errorf("%s: replay: %w", wireName(x), err)
		}
		differences = append(differences, x.sameAs(p.exchange))
		all = append(all, p)
	}
	b, err := s.write(ctx, all)
	return b, errors.Join(differences...), err
}

// step is what makes a recorded exchange happen again.
func (x exchange) step(fix Fixture) (Step, error) {
	s := Step{Check: x.Check, Recovery: x.Phase == phaseRecovery}
	bound := func(task string) bool { return fix.operation(task).Task != "" }
	switch {
	case x.Kind == callback && (x.SignedBy == forSource || x.SignedBy == forStranger) && (x.To == "" || bound(x.To)):
		s.Event = &Inbound{ID: x.EventID, To: x.To, Body: jsontext.Value(x.Request.Body), Age: x.Age, Stranger: x.SignedBy == forStranger}
		return s, nil
	case x.Kind == read && x.Answer != nil:
		at, err := url.ParseRequestURI(x.Request.Path)
		if err != nil {
			return s, err
		}
		if task := taskAsked(fix.spec, x.Request.Method, at); bound(task) {
			s.Read = &ReadReply{Task: task, Status: x.Answer.Status, Body: jsontext.Value(x.Answer.Body)}
			return s, nil
		}
	}
	return s, errors.New("this exchange is none that a run makes")
}

// sameAs compares an exchange with its replay, except for what differs by
// nature: times, numbers and the ledger's own ids.
func (x exchange) sameAs(again exchange) error {
	a, b := x.plain(), again.plain()
	if x.Lost != "" {
		b.status, b.answer = 0, ""
	}
	if a != b {
		return fmt.Errorf("%s: the replay differs: recorded %+v, replayed %+v", wireName(x), a, b)
	}
	return nil
}

// plainExchange is what must be the same in a replay.
type plainExchange struct {
	kind    kind
	request string
	headers string
	status  int
	answer  string
}

func (x exchange) plain() plainExchange {
	p := plainExchange{kind: x.Kind, request: x.Request.Method + " " + x.Request.Path + "\n" + x.Request.Body, status: statusOf(x)}
	p.headers = steady(x.Request.Headers)
	if x.Answer != nil {
		p.answer = steady(x.Answer.Headers) + x.Answer.Body
		if id := answeredID(x); id != "" {
			p.answer = strings.ReplaceAll(p.answer, id, pawl.PrefixEvent)
		}
	}
	return p
}

// steady are the headers that a repeat has too: all but the times.
func steady(headers map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if !strings.HasSuffix(name, "timestamp") {
			b.WriteString(name + ": " + headers[name] + "\n")
		}
	}
	return b.String()
}

// sameAs compares two ledgers, except for ids and numbers of exchanges.
func (b book) sameAs(again book) error {
	if x, y := b.plain(), again.plain(); !slices.Equal(x, y) {
		return fmt.Errorf("ledger.json: the replay ends otherwise:\nrecorded %s\nreplayed %s", strings.Join(x, " · "), strings.Join(y, " · "))
	}
	return nil
}

func (b book) plain() (lines []string) {
	for _, op := range b.Operations {
		lines = append(lines, fmt.Sprintf("%s %s/%s v%d, %d reads", op.TaskID, op.State, op.UpstreamState, op.Version, op.StatusReads))
	}
	slices.Sort(lines)
	for _, e := range b.Events {
		lines = append(lines, fmt.Sprintf("%s of %s: %s (%s)", e.ID, e.TaskID, e.Verdict, e.Reason))
	}
	for _, r := range b.Reads {
		lines = append(lines, fmt.Sprintf("read of %s: %s", r.TaskID, r.Verdict))
	}
	emitted := make([]string, 0, len(b.Emitted))
	for _, e := range b.Emitted {
		emitted = append(emitted, fmt.Sprintf("%s: %s v%d", e.TaskID, e.Type, e.Version))
	}
	slices.Sort(emitted)
	return append(lines, emitted...)
}

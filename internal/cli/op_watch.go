package cli

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/pawlhq/pawl"
)

type opWatchCmd struct {
	ID string `arg:"" help:"The operation, op_…."`
}

// Help teaches by example.
func (opWatchCmd) Help() string {
	return `Prints what has happened to the operation, and then what happens, until it has ended. The exit status is 0 if it succeeded, and 1 for every other end; Ctrl-C ends the watching, not the operation.

` + examples(`pawl op watch op_01…`, `pawl op watch op_01… --json`)
}

// Run looks at the timeline alone: reading the operation itself would be
// audited for keys that may see its input.
func (c *opWatchCmd) Run(s *session) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	w := &watcher{lines: &lineTable{columns: []string{"at", "kind", "verdict", "state", "version", "reason", "actor", "event_id", "repeats"}}}
	wait := newBackoff(500*time.Millisecond, 5*time.Second)
	for {
		a, err := client.call(s.ctx, http.MethodGet, operations+"/"+id(c.ID)+"/timeline", nil, nil)
		switch {
		case err == nil:
			more, err := w.print(s, a.body)
			if err != nil {
				return err
			}
			if w.state.Terminal() {
				return w.outcome()
			}
			if more {
				wait = newBackoff(500*time.Millisecond, 5*time.Second)
			}
		case s.ctx.Err() != nil || final(err) || !isPassing(err) || w.printed == nil:
			return err
		}
		if err := pause(s.ctx, wait.next(retryAfter(err))); err != nil {
			return err
		}
	}
}

// watcher prints the lines of a timeline once each.
type watcher struct {
	lines *lineTable
	// printed counts equal lines: a timeline may have them.
	printed map[string]int
	state   pawl.State
	version int64
}

// print prints what is new and reports whether there was any.
func (w *watcher) print(s *session, body []byte) (more bool, err error) {
	var p struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := decode(body, &p); err != nil {
		return false, err
	}
	found := make(map[string]int, len(p.Items))
	for _, item := range p.Items {
		var line struct {
			State   pawl.State `json:"state"`
			Version int64      `json:"version"`
		}
		if err := decode(item, &line); err != nil {
			return more, err
		}
		if line.State != 0 && line.Version >= w.version {
			w.state, w.version = line.State, line.Version
		}
		found[string(item)]++
		if found[string(item)] <= w.printed[string(item)] {
			continue
		}
		more = true
		if err := s.printItem(w.lines, item); err != nil {
			return more, err
		}
	}
	w.printed = found
	return more, nil
}

func (w *watcher) outcome() error {
	if w.state != pawl.Succeeded {
		return errShown
	}
	return nil
}

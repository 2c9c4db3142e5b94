package exercise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// process is a running child.
type process struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	messages chan message
	complain opening
	// address is that of its receiver.
	address string
}

// startChild runs this program once more, as [Child], and waits until it
// serves.
func startChild(ctx context.Context, program string, o order, d *dialer) (*process, error) {
	line, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, program, "exercise"), messages: make(chan message, 16)}
	// A program that is several commands by its name stays the one it is.
	p.cmd.Args[0] = os.Args[0]
	p.cmd.Env = append(os.Environ(), childVariable+"=1")
	p.cmd.Stderr = &p.complain
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("the child could not be started: %w", err)
	}
	go p.listenTo(out, d)
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return nil, errors.Join(fmt.Errorf("the child ended at once: %w", err), p.kill())
	}
	m, err := p.await(ctx, func(m message) bool { return m.Ready != "" })
	if err != nil {
		return nil, errors.Join(err, p.kill())
	}
	p.address = m.Ready
	return p, nil
}

// listenTo passes on what the child says, and notes what it dials.
func (p *process) listenTo(out io.Reader, d *dialer) {
	defer close(p.messages)
	lines := json.NewDecoder(out)
	for {
		var m message
		if lines.Decode(&m) != nil {
			_, _ = io.Copy(io.Discard, out)
			return
		}
		if m.Dialled != "" {
			d.note(m.Dialled)
			continue
		}
		p.messages <- m
	}
}

// await waits for a message of the child.
func (p *process) await(ctx context.Context, wanted func(message) bool) (message, error) {
	for {
		select {
		case m, ok := <-p.messages:
			switch {
			case !ok:
				return m, fmt.Errorf("the child ended early: %s", p.complain.text())
			case m.Error != "":
				return m, fmt.Errorf("the child failed: %s", m.Error)
			case wanted(m):
				return m, nil
			}
		case <-ctx.Done():
			return message{}, errors.New("the child did not get there in time")
		}
	}
}

// stopped waits until the child stands still at a point.
func (p *process) stopped(ctx context.Context, where string) error {
	_, err := p.await(ctx, func(m message) bool { return m.Stopped == where })
	return err
}

// kill sends SIGKILL and waits for the end. It may be called after the end.
func (p *process) kill() error {
	if p.cmd.ProcessState != nil {
		return nil
	}
	err := p.cmd.Process.Kill()
	_ = p.end()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// finish lets the child end by itself.
func (p *process) finish() error {
	err := p.in.Close()
	if ended := p.end(); ended != nil {
		return fmt.Errorf("the child did not end well: %w: %s", ended, p.complain.text())
	}
	return err
}

func (p *process) end() error {
	for range p.messages {
		// The pipe must be read to its end before Wait closes it.
	}
	return p.cmd.Wait()
}

// state says how the process ended, such as "signal: killed".
func (p *process) state() string {
	if p.cmd.ProcessState == nil {
		return "running"
	}
	return p.cmd.ProcessState.String()
}

// opening keeps the first part of what a child complains about.
type opening struct {
	mu sync.Mutex
	b  []byte
}

// Write implements [io.Writer]; it never fails.
func (t *opening) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p[:min(len(p), 2048-min(2048, len(t.b)))]...)
	return len(p), nil
}

func (t *opening) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return orNone(strings.TrimSpace(string(t.b)))
}

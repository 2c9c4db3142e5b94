package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/client"
)

const (
	// adminKey is valid in one test only.
	adminKey = "pawl_sk_certificates0123456789abcdef01234567"
	// senderSecret signs what the learning platform sends to Pawl.
	senderSecret = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
)

// ahead is how many courses are completed before their messages are out.
const ahead = 50

// states are those that an event of a generic source may be in.
var states = []string{"received", "waiting", "done", "review"}

// TestThroughPawl: the platform tells Pawl of 500 completed courses, each one to
// three times, and Pawl tells a receiver that is killed 20 times. Every event that
// Pawl took is in one of four states at every moment, and all are done in the end:
// 500 certificates and 500 messages. The naive receiver, which looks at no id,
// makes more.
func TestThroughPawl(t *testing.T) {
	receiver, pawl := build(t, "."), build(t, "../../cmd/pawl")
	t.Run("careful", func(t *testing.T) {
		certificates, messages := relay(t, pawl, receiver)
		if certificates != learners || messages != learners {
			t.Errorf("%d certificates and %d messages, want %d of each", certificates, messages, learners)
		}
	})
	t.Run("naive", func(t *testing.T) {
		certificates, messages := relay(t, pawl, receiver, "-naive")
		if certificates <= learners || messages <= learners {
			t.Errorf("%d certificates and %d messages: it does no harm, so the test shows nothing", certificates, messages)
		}
		t.Logf("%d certificates and %d messages for %d learners", certificates, messages, learners)
	})
}

// relayed is the way through Pawl: the node, and what it has answered.
type relayed struct {
	t      *testing.T
	bin    string
	url    string
	client *client.Client
	// sending is held for reading by senders, and for writing by whoever wants
	// nothing to be sent.
	sending sync.RWMutex
	// taken counts answers 202, repeats those of 200.
	taken, repeats atomic.Int64
}

// relay has all learners told to Pawl while the receiver behind it is killed, and
// counts what that has made in the end.
func relay(t *testing.T, pawl, bin string, more ...string) (certificates, messages int) {
	file, mail := filepath.Join(t.TempDir(), "school.db"), newMailbox(t)
	r := newReceiver(t, bin, file, mail.URL, more...)
	p := newRelayed(t, pawl, r.url())
	began := time.Now()
	var senders sync.WaitGroup
	todo := make(chan int, learners)
	for n := range learners {
		todo <- n
	}
	close(todo)
	for range 8 {
		senders.Go(func() {
			for n := range todo {
				// Courses are completed as the school goes on, so that kills meet all of it.
				for told := 0; told < n-ahead; _, told = mail.messages() {
					time.Sleep(time.Millisecond)
				}
				for range 1 + n%3 {
					p.tell(n)
				}
			}
		})
	}
	dice := rand.New(rand.NewPCG(3, 4))
	seen := make(map[string]int)
	for i := range kills { // spread over what the receiver does
		for told := 0; told < (i+1)*learners/(kills+1); _, told = mail.messages() {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(dice.IntN(20)) * time.Millisecond)
		r.kill()
		for state, n := range p.look() {
			seen[state] += n
		}
		r.start()
	}
	senders.Wait()
	for deadline := time.Now().Add(30 * time.Second); !p.allDone(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 30 s: %v", p.byState())
		}
	}
	took := time.Since(began)
	p.finished()
	for range 500 { // messages follow the answers
		if _, n := mail.messages(); n == learners {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	messages, _ = mail.messages()
	t.Logf("%s; at the %d kills, added up: %v; %d answers 202 and %d of 200; %d attempts", took.Round(10*time.Millisecond), kills, seen, p.taken.Load(), p.repeats.Load(), p.attempts())
	return count(t, file), messages
}

// newRelayed runs a real node with a source and an endpoint at the receiver's door.
func newRelayed(t *testing.T, bin, door string) *relayed {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf(`
listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
data: %q
egress: {allow: [127.0.0.0/8]}
sources: {learning: {scheme: standard-webhooks, secrets: [%q], tenant: default}}
`, filepath.Join(dir, "data"), senderSecret)
	path := filepath.Join(dir, "pawl.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &relayed{t: t, bin: bin}
	cmd := exec.Command(bin, "serve", "--config", path)
	cmd.Env = append(os.Environ(), "PAWL_ADMIN_KEY="+adminKey)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the node did not stop cleanly: %v", err)
		}
	})
	var ready struct{ API string }
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		t.Fatalf("the node says %q: %v", line, err)
	}
	p.url = ready.API
	if p.client, err = client.New(client.Options{Server: p.url, Key: adminKey, Tenant: "default"}); err != nil {
		t.Fatal(err)
	}
	_, err = p.client.CreateEndpoint(t.Context(), client.NewEndpoint{
		URL: door, Content: "original", Secret: secret,
		Policy: &client.Policy{Attempts: 50, Timeout: "5s", Schedule: []string{"0s", "20ms", "50ms", "100ms", "200ms"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tell sends an event to Pawl once; the platform repeats by itself.
func (p *relayed) tell(n int) {
	p.sending.RLock()
	defer p.sending.RUnlock()
	request, err := signed(p.t.Context(), p.url+"/hooks/learning", senderSecret, n)
	if err != nil {
		p.t.Error(err)
		return
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Error(err)
		return
	}
	_ = answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusAccepted:
		p.taken.Add(1)
	case http.StatusOK:
		p.repeats.Add(1)
	default:
		p.t.Errorf("event %d was answered %d", n, answer.StatusCode)
	}
}

// look asks for the events by state while nothing is sent and the receiver is
// dead, once two answers are the same: each event that was answered 202 must be in
// one state.
func (p *relayed) look() map[string]int {
	p.t.Helper()
	p.sending.Lock()
	defer p.sending.Unlock()
	before := p.byState()
	for range 100 {
		now := p.byState()
		if !maps.Equal(before, now) { // The last answers of the receiver are still being written down.
			before = now
			continue
		}
		counts := make(map[string]int)
		for event, in := range now {
			if strings.Contains(in, " ") || !slices.Contains(states, in) {
				p.t.Errorf("%s is in the states %q", event, in)
			}
			counts[in]++
		}
		if all := int(p.taken.Load()); len(now) != all {
			p.t.Errorf("%d events in %v, and %d were answered 202", len(now), counts, all)
		}
		return counts
	}
	p.t.Error("events change though nothing can have happened to them")
	return nil
}

// byState are the events, each with the states whose lists have it.
func (p *relayed) byState() map[string]string {
	p.t.Helper()
	all := make(map[string]string)
	for _, state := range states {
		for e, err := range p.client.Events(p.t.Context(), client.EventFilter{Source: "learning", State: state}) {
			if err != nil {
				p.t.Fatal(err)
			}
			if e.State != state {
				p.t.Errorf("%s is in the list of %s and shows %s", e.ID, state, e.State)
			}
			all[e.ExternalID] = strings.TrimSpace(all[e.ExternalID] + " " + state)
		}
	}
	return all
}

// allDone reports whether every event is done.
func (p *relayed) allDone() bool {
	all := p.byState()
	for _, in := range all {
		if in != "done" {
			return false
		}
	}
	return len(all) == learners
}

// count is how many events the command line lists in a state.
func (p *relayed) count(state string) int {
	p.t.Helper()
	cmd := exec.Command(p.bin, "event", "list", "--source", "learning", "--state", state, "--csv")
	cmd.Env = append(os.Environ(), "PAWL_SERVER="+p.url, "PAWL_KEY="+adminKey)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(rows) == 0 {
		p.t.Fatalf("%v: %.200s", err, out)
	}
	return len(rows) - 1
}

// finished holds what is left against the four states, by the command line.
func (p *relayed) finished() {
	p.t.Helper()
	for _, state := range states {
		want := 0
		if state == "done" {
			want = learners
		}
		if n := p.count(state); n != want {
			p.t.Errorf("%d events are %s, want %d", n, state, want)
		}
	}
	if p.taken.Load() != learners {
		p.t.Errorf("%d were answered 202", p.taken.Load())
	}
}

// attempts is how often Pawl has told the receiver.
func (p *relayed) attempts() (n int) {
	p.t.Helper()
	for d, err := range p.client.Deliveries(context.WithoutCancel(p.t.Context()), client.DeliveryFilter{}) {
		if err != nil {
			p.t.Fatal(err)
		}
		n += d.Attempts
	}
	return n
}

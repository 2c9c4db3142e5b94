package cli

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// intake is a server of submits that keeps what it was sent.
type intake struct {
	mu     sync.Mutex
	keys   []string
	bodies []string
	// answer handles the n-th submit, counted from 1; nil accepts.
	answer func(n int, w http.ResponseWriter, r *http.Request)
}

const accepted = `{"id":"op_1","version":1,"state":"pending"}`

func (i *intake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := readAll(r.Body)
	i.mu.Lock()
	i.keys = append(i.keys, r.Header.Get("Idempotency-Key"))
	i.bodies = append(i.bodies, string(body))
	n := len(i.keys)
	i.mu.Unlock()
	if i.answer != nil {
		i.answer(n, w, r)
		return
	}
	reply(w, http.StatusAccepted, accepted)
}

func (i *intake) seen() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.keys)
}

func submitArgs(more ...string) []string {
	return append([]string{"op", "submit", "--upstream", "u", "--model", "m", "--input", `{"prompt":"secret words"}`}, more...)
}

// remembered are the files of state.
func remembered(t *testing.T, w *world) (names []string) {
	t.Helper()
	err := filepath.WalkDir(w.env["PAWL_STATE_DIR"], func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestSubmitBody(t *testing.T) {
	in := &intake{}
	w := newWorld(t, fake(t, in.ServeHTTP))
	file := filepath.Join(t.TempDir(), "job.json")
	// The bytes of the input stay as they are: order, spaces, numbers.
	const input = `{"z": 1.0,  "a":9007199254740993, "h":"<&>"}`
	if err := os.WriteFile(file, []byte(input+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rest := []string{
		"--callback-url", "https://a.example/?x=1&y=2", "--metadata", "k=v;w=2", "--metadata", "l=", "--correlation", "c",
		"--expected-cost", "0.12:USD", "--deadline", "2h", "--owner", "o", "--account", "acct_1",
	}
	want := `{"input":` + input + `,"upstream":"u","model":"m","callback_url":"https://a.example/?x=1&y=2","metadata":{"k":"v;w=2","l":""},` +
		`"correlation_id":"c","expected_cost":{"amount":"0.120000000","currency":"USD"},"deadline":"2026-05-28T22:26:40.000000Z","owner":"o","account":"acct_1"}`
	for _, source := range []string{input, "@" + file, "-"} {
		w.stdin = strings.NewReader(input)
		w.run(append([]string{"op", "submit", "--upstream", "u", "--model", "m", "--input", source}, rest...)...).want(t, ExitDone, "op_1", "")
		if got := in.bodies[len(in.bodies)-1]; got != want {
			t.Errorf("from %q\n got %s\nwant %s", source, got, want)
		}
	}
	w.run(submitArgs("--deadline", "2026-06-01T10:00:00+02:00")...).want(t, ExitDone, "", "")
	if got := in.bodies[len(in.bodies)-1]; !strings.Contains(got, `"deadline":"2026-06-01T08:00:00.000000Z"`) {
		t.Errorf("body %s", got)
	}
}

// An answered command is over: the same one again is a new job (R48).
func TestAnsweredCommandIsANewJob(t *testing.T) {
	in := &intake{}
	w := newWorld(t, fake(t, in.ServeHTTP))
	for range 2 {
		r := w.run(submitArgs()...)
		r.want(t, ExitDone, "op_1", "")
		if r.stderr != "" {
			t.Errorf("stderr %q", r.stderr)
		}
	}
	if k := in.seen(); len(k) != 2 || k[0] == k[1] || k[0] == "" {
		t.Errorf("keys %q", k)
	}
	if left := remembered(t, w); len(left) != 0 {
		t.Errorf("remembered %q", left)
	}
}

// Pressed twice is one job: after an answer that came too late for every try of
// a script, and after Ctrl-C while the server works (R48; O-010).
func TestO010CommandPressedTwice(t *testing.T) {
	t.Run("too late", commandTimesOut)
	t.Run("interrupted", commandIsInterrupted)
}

// commandTimesOut: the server takes the job and answers after the command has
// given up, four times.
func commandTimesOut(t *testing.T) {
	in := &intake{}
	in.answer = func(n int, w http.ResponseWriter, r *http.Request) {
		if n <= 4 {
			<-r.Context().Done()
			return
		}
		reply(w, http.StatusAccepted, accepted)
	}
	w := newWorld(t, fake(t, in.ServeHTTP))
	w.run(submitArgs("--patience", "50ms", "--retry", "3")...).want(t, ExitUnreachable, "", "run the same command again")
	checkState(t, w)
	w.run(submitArgs("--patience", "10s", "--retry", "3")...).want(t, ExitDone, "op_1", "idempotency key is used again")
	w.run(submitArgs()...).want(t, ExitDone, "op_1", "")
	k := in.seen()
	if len(k) != 6 || k[0] == "" || k[0] == k[5] {
		t.Fatalf("keys %q, want five of one job and one of the next", k)
	}
	for _, again := range k[:5] {
		if again != k[0] {
			t.Errorf("keys %q, want five of one job and one of the next", k)
		}
	}
	if left := remembered(t, w); len(left) != 0 {
		t.Errorf("remembered %q", left)
	}
}

// commandIsInterrupted: Ctrl-C while the server works, then the same again.
func commandIsInterrupted(t *testing.T) {
	in := &intake{}
	arrived := make(chan struct{}, 1)
	in.answer = func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			arrived <- struct{}{}
			<-r.Context().Done()
			return
		}
		reply(w, http.StatusAccepted, accepted)
	}
	w := newWorld(t, fake(t, in.ServeHTTP))
	w.signals = make(chan os.Signal, 2)
	go func() { <-arrived; w.signals <- os.Interrupt }()
	w.run(submitArgs()...).want(t, ExitFailed, "", "run the same command again")
	checkState(t, w)

	w.now = w.now.Add(3 * time.Minute)
	// Another job is not the same command.
	w.run(submitArgs("--owner", "x")...).want(t, ExitDone, "op_1", "")
	w.run(submitArgs()...).want(t, ExitDone, "op_1", "idempotency key is used again")
	k := in.seen()
	if len(k) != 3 || k[0] != k[2] || k[0] == k[1] {
		t.Errorf("keys %q", k)
	}
	if left := remembered(t, w); len(left) != 0 {
		t.Errorf("remembered %q", left)
	}
}

// checkState: private, and without anything of the job or the API key.
func checkState(t *testing.T, w *world) {
	t.Helper()
	left := remembered(t, w)
	if len(left) != 1 {
		t.Fatalf("remembered %q", left)
	}
	info, err := os.Stat(left[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	text, err := os.ReadFile(left[0])
	if err != nil || strings.Contains(string(text)+left[0], "secret words") || strings.Contains(string(text), testKey) {
		t.Errorf("state %s, error %v", text, err)
	}
}

// The key is written down before anything is sent.
func TestRememberedBeforeSending(t *testing.T) {
	in := &intake{}
	w := newWorld(t, "")
	in.answer = func(_ int, rw http.ResponseWriter, r *http.Request) {
		left := remembered(t, w)
		if len(left) != 1 {
			t.Errorf("remembered %q", left)
			return
		}
		var state struct{ Key string }
		text, _ := os.ReadFile(left[0])
		if err := json.Unmarshal(text, &state); err != nil || state.Key != r.Header.Get("Idempotency-Key") {
			t.Errorf("state %s, key %s", text, r.Header.Get("Idempotency-Key"))
		}
		reply(rw, http.StatusAccepted, accepted)
	}
	w.env["PAWL_SERVER"] = fake(t, in.ServeHTTP)
	w.run(submitArgs()...).want(t, ExitDone, "op_1", "")
	if len(in.seen()) != 1 {
		t.Error("nothing was sent")
	}
}

// Its own tries use one key: after 503, and after an answer that was cut.
func TestRetries(t *testing.T) {
	in := &intake{answer: func(n int, w http.ResponseWriter, _ *http.Request) {
		switch n {
		case 1:
			reply(w, http.StatusServiceUnavailable, `{"title":"T","reason":"unavailable"}`)
		case 2:
			w.Header().Set("Content-Length", "100")
			reply(w, http.StatusAccepted, accepted)
		default:
			reply(w, http.StatusAccepted, accepted)
		}
	}}
	w := newWorld(t, fake(t, in.ServeHTTP))
	w.run(submitArgs()...).want(t, ExitDone, "op_1", "trying again with the same key (2 of 3)")
	if k := in.seen(); len(k) != 3 || k[0] != k[1] || k[1] != k[2] {
		t.Errorf("keys %q", k)
	}
}

func TestOutcomes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		exit   int
		kept   bool
	}{
		{"refused: too little credit", http.StatusPaymentRequired, ExitFailed, false},
		{"refused: mismatch", http.StatusUnprocessableEntity, ExitFailed, false},
		{"busy", http.StatusServiceUnavailable, ExitFailed, true},
		{"broken", http.StatusInternalServerError, ExitFailed, true},
		{"slow down", http.StatusTooManyRequests, ExitFailed, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := &intake{answer: func(_ int, w http.ResponseWriter, _ *http.Request) { reply(w, tt.status, `{"title":"T"}`) }}
			w := newWorld(t, fake(t, in.ServeHTTP))
			w.run(submitArgs("--retry", "0")...).want(t, tt.exit, "", "T")
			if kept := len(remembered(t, w)) == 1; kept != tt.kept || len(in.seen()) != 1 {
				t.Errorf("kept %v, want %v; %d calls", kept, tt.kept, len(in.seen()))
			}
		})
	}
	w := newWorld(t, gone(t))
	w.run(submitArgs("--retry", "0")...).want(t, ExitUnreachable, "", "did not answer")
	if len(remembered(t, w)) != 1 {
		t.Error("a command that was not answered is forgotten")
	}
}

func TestOverrides(t *testing.T) {
	in := &intake{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusServiceUnavailable, `{"title":"T"}`)
	}}
	w := newWorld(t, fake(t, in.ServeHTTP))
	w.run(submitArgs("--retry", "0")...)
	w.run(submitArgs("--retry", "0", "--new")...)
	w.run(submitArgs("--retry", "0")...)
	w.run(submitArgs("--retry", "0", "--idempotency-key", "mine")...)
	k := in.seen()
	if len(k) != 4 || k[0] == k[1] || k[1] != k[2] || k[3] != "mine" {
		t.Errorf("keys %q", k)
	}
	// Another API key, or another server, is another command.
	w.env["PAWL_KEY"] = testKey + "2"
	w.run(submitArgs("--retry", "0")...)
	if k := in.seen(); k[4] == k[2] {
		t.Error("two API keys share a remembered key")
	}
}

// After a day the server may have forgotten the key: a person must look.
func TestOldMemory(t *testing.T) {
	in := &intake{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusServiceUnavailable, `{"title":"T"}`)
	}}
	w := newWorld(t, fake(t, in.ServeHTTP))
	w.run(submitArgs("--retry", "0")...)
	w.now = w.now.Add(24*time.Hour + time.Second)
	w.run(submitArgs("--retry", "0")...).want(t, ExitFailed, "", "--new")
	if len(in.seen()) != 1 {
		t.Error("an old key was sent")
	}
	in.answer = nil
	w.run(submitArgs("--new")...).want(t, ExitDone, "op_1", "")
}

func TestDamagedMemory(t *testing.T) {
	in := &intake{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusServiceUnavailable, `{"title":"T"}`)
	}}
	w := newWorld(t, fake(t, in.ServeHTTP))
	w.run(submitArgs("--retry", "0")...)
	if err := os.WriteFile(remembered(t, w)[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run(submitArgs("--retry", "0")...).want(t, ExitFailed, "", "damaged")
	w.env["PAWL_STATE_DIR"] = "/dev/null/x"
	w.run(submitArgs("--retry", "0")...).want(t, ExitFailed, "", "PAWL_STATE_DIR")
	if len(in.seen()) != 1 {
		t.Error("sent without a memory")
	}
}

// An answer that could not be printed was not given.
func TestUnprintedAnswer(t *testing.T) {
	in := &intake{}
	w := newWorld(t, fake(t, in.ServeHTTP))
	var stderr strings.Builder
	status := Main(context.Background(), submitArgs(), Env{
		Stdin: w.stdin, Stdout: full{}, Stderr: &stderr, Now: func() time.Time { return w.now },
		LookupEnv: func(name string) (string, bool) { return w.env[name], true },
	})
	if status != ExitFailed || len(remembered(t, w)) != 1 {
		t.Errorf("status %d, stderr %q", status, stderr.String())
	}
	w.run(submitArgs()...).want(t, ExitDone, "op_1", "used again")
	if k := in.seen(); k[0] != k[1] {
		t.Errorf("keys %q", k)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, fs.ErrClosed }

// Equal commands that run side by side are one job; each says so or made it.
func TestSideBySide(t *testing.T) {
	const n = 4
	in := &intake{}
	var all sync.WaitGroup
	all.Add(n)
	in.answer = func(_ int, w http.ResponseWriter, _ *http.Request) {
		all.Done()
		all.Wait() // Nobody is answered before everybody has asked.
		reply(w, http.StatusAccepted, accepted)
	}
	w := newWorld(t, fake(t, in.ServeHTTP))
	var done sync.WaitGroup
	for range n {
		done.Go(func() {
			if r := w.run(submitArgs()...); r.status != ExitDone {
				t.Errorf("status %d, stderr %q", r.status, r.stderr)
			}
		})
	}
	done.Wait()
	if k := slices.Compact(in.seen()); len(k) != 1 {
		t.Errorf("keys %q", k)
	}
	if left := remembered(t, w); len(left) != 0 {
		t.Errorf("remembered %q", left)
	}
}

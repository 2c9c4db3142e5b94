package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/exercise"
	"github.com/pawlhq/pawl/internal/sim"
)

// TestMain makes this test's program the pawl of the scripts.
func TestMain(m *testing.M) {
	if exercise.IsChild() {
		os.Exit(exercise.Child(context.Background()))
	}
	testscript.Main(m, map[string]func(){
		"pawl": func() { os.Exit(Main(context.Background(), os.Args[1:], System())) },
	})
}

func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

// The exercise kills processes against the clock: it runs beside nothing else.
func TestExercise(t *testing.T) { runScripts(t, "testdata/exercise") }

func runScripts(t *testing.T, dir string) {
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PAWL_STATE_DIR", e.WorkDir+"/state")
			e.Values[nodeKey{}] = &node{t: t}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": cmdServe, "stop": cmdStop, "provider": cmdProvider, "capture": cmdCapture, "status": cmdStatus,
		},
		RequireExplicitExec: true,
	})
}

// node is the server of a script.
type node struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Reader
}

type nodeKey struct{}

func nodeOf(ts *testscript.TestScript) *node { return ts.Value(nodeKey{}).(*node) }

// cmdServe starts "pawl serve" on free ports, waits until it is ready, and
// points PAWL_SERVER at it, through a proxy that holds its answers against its
// description. Its standard error goes to serve.log.
func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("use ! exec pawl serve")
	}
	n := nodeOf(ts)
	program, err := exec.LookPath("pawl")
	ts.Check(err)
	n.cmd = exec.Command(program, append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, args...)...)
	n.cmd.Dir = ts.MkAbs(".")
	n.cmd.Env = os.Environ()
	for _, name := range [...]string{"PAWL_ADMIN_KEY", "PROVIDER_URL", "PROVIDER_KEY", "PROVIDER_SECRET"} {
		n.cmd.Env = append(n.cmd.Env, name+"="+ts.Getenv(name))
	}
	log, err := os.OpenFile(ts.MkAbs("serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	defer log.Close()
	n.cmd.Stderr = log
	stdout, err := n.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(n.cmd.Start())
	ts.Defer(func() { _ = n.cmd.Process.Kill(); _ = n.cmd.Wait() })
	n.stdout = bufio.NewReader(stdout)
	line, err := n.stdout.ReadString('\n')
	if err != nil {
		ts.Fatalf("serve was not ready: %v\n%s", err, ts.ReadFile("serve.log"))
	}
	var ready struct {
		Ready      bool
		API, Admin string
	}
	ts.Check(json.Unmarshal([]byte(line), &ready))
	if want := `{"ready":true,"api":"` + ready.API + `","admin":"` + ready.Admin + `"}` + "\n"; line != want {
		ts.Fatalf("ready line %q, want %q", line, want)
	}
	proxy := checkedProxy(n.t, ready.API)
	ts.Defer(proxy.Close)
	ts.Setenv("PAWL_SERVER", proxy.URL)
	ts.Setenv("NODE_PID", strconv.Itoa(n.cmd.Process.Pid))
	ts.Setenv("NODE_ADDRESS", strings.TrimPrefix(ready.API, "http://"))
}

// cmdStop asks the node to stop by SIGINT or SIGTERM and wants a clean exit
// without any further line on standard output.
func cmdStop(ts *testscript.TestScript, _ bool, args []string) {
	n := nodeOf(ts)
	signal := syscall.SIGTERM
	if len(args) == 1 && args[0] == "INT" {
		signal = syscall.SIGINT
	}
	ts.Check(n.cmd.Process.Signal(signal))
	rest, err := io.ReadAll(n.stdout)
	ts.Check(err)
	if err := n.cmd.Wait(); err != nil {
		ts.Fatalf("serve ended with %v\n%s", err, ts.ReadFile("serve.log"))
	}
	if len(rest) > 0 {
		ts.Fatalf("more on standard output: %q", rest)
	}
}

// cmdProvider starts a provider without faults: PROVIDER_URL, PROVIDER_KEY,
// and in JOB the input of a job that will succeed.
func cmdProvider(ts *testscript.TestScript, _ bool, _ []string) {
	plan := sim.NewPlan(1, 50, sim.Options{Dialects: []sim.Dialect{sim.Native}, Without: sim.Faults()})
	server, err := sim.NewServer(plan, sim.Config{Speed: 10})
	ts.Check(err)
	url, err := server.Start()
	ts.Check(err)
	ts.Defer(func() { _ = server.Close() })
	for n := range plan.Len() {
		if s, _ := plan.Script(n); s.Final == pawl.Succeeded {
			ts.Setenv("JOB", `{"n":`+strconv.Itoa(n)+`}`)
			ts.Setenv("PRICE", s.Price.String()+":USD")
		}
	}
	ts.Setenv("PROVIDER_URL", url)
	ts.Setenv("PROVIDER_ADDRESS", strings.TrimPrefix(url, "http://"))
	ts.Setenv("PROVIDER_KEY", server.Key())
	ts.Setenv("PROVIDER_SECRET", server.Secret(sim.Native))
}

// cmdCapture sets a variable to a member of a JSON file, or of the first of
// its items: capture NAME FILE MEMBER.
func cmdCapture(ts *testscript.TestScript, _ bool, args []string) {
	var doc map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &doc))
	if items, ok := doc["items"].([]any); ok && len(items) > 0 {
		doc = items[0].(map[string]any)
	}
	text, ok := doc[args[2]].(string)
	if !ok {
		ts.Fatalf("no member %s", args[2])
	}
	ts.Setenv(args[0], text)
}

// cmdStatus runs pawl and wants that exit status: status 2 op list.
func cmdStatus(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("pawl", args[1:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

package cli

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// leaf is a command that can be run.
type leaf struct {
	path string
	node *kong.Node
}

// leaves are all commands, the hidden ones aside.
func leaves(t *testing.T) []leaf {
	t.Helper()
	parser, err := newParser(new(commands), Env{})
	if err != nil {
		t.Fatal(err)
	}
	var all []leaf
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		if len(n.Children) == 0 && !n.Hidden {
			all = append(all, leaf{strings.TrimPrefix(n.FullPath(), "pawl "), n})
		}
		for _, child := range n.Children {
			walk(child)
		}
	}
	walk(parser.Model.Node)
	if len(all) < 40 {
		t.Fatalf("%d commands", len(all))
	}
	return all
}

// arguments are what a command needs beyond what follows from its grammar.
var arguments = map[string]string{
	"replay deliveries": "--all",
	"replay events":     "--all",
	"op submit":         "--upstream u --model m --input {}",
	"op resolve":        "op_1 failed",
	"endpoint create":   "https://example.com/",
	"endpoint update":   "ep_1 --owner x",
	"account credit":    "acct_1 1.00:USD",
	"account create":    "EUR",
	"event publish":     "--type a.b --data {}",
	"key update":        "key_1 --name x",
	"work lease":        "",
	"work progress":     "lease_1 --percent 1",
	"listen":            "--print-secret",
	"trigger":           "operation.succeeded --endpoint ep_1",
}

// args is a command line that makes sense to a server.
func (l leaf) args() []string {
	line := strings.Fields(l.path)
	if more, ok := arguments[l.path]; ok {
		return append(line, strings.Fields(more)...)
	}
	for _, p := range l.node.Positional {
		word := "x_1"
		if words := p.EnumSlice(); len(words) > 0 && words[0] != "" {
			word = words[0]
		}
		if p.Required || p.Target.Kind() != reflect.Slice {
			line = append(line, word)
		}
	}
	for _, f := range l.node.Flags {
		if f.Required {
			line = append(line, "--"+f.Name, "x")
		}
	}
	return line
}

// talks reports whether a command talks to a server.
func (l leaf) talks() bool {
	top := l.node
	for top.Parent.Type != kong.ApplicationNode {
		top = top.Parent
	}
	// A wrapping key is drawn on the spot, and upstream check looks at files.
	return top.Group != nil && top.Group.Key == "api" && l.path != "key wrapping" && l.path != "upstream check"
}

// The exit status says what became of a command, of every one that talks to a
// server: 1 refused, 2 usage, 3 not reachable (2-contracts §6).
func TestExitStatusOfEveryCommand(t *testing.T) {
	refusing := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusForbidden, `{"title":"no","reason":"insufficient_scope","detail":"this call needs more"}`)
	})
	const nobody = "http://127.0.0.1:1"
	for _, l := range leaves(t) {
		t.Run(l.path, func(t *testing.T) {
			newWorld(t, nobody).run(append(l.args(), "--no-such-flag")...).want(t, ExitUsage, "", "unknown flag")
			if !l.talks() {
				return
			}
			args := l.args()
			if flagNamed(l.node, "--retry") != nil {
				args = append(args, "--retry", "0")
			}
			if l.path == "event list" {
				newWorld(t, nobody).run("event", "list", "--until", "then").want(t, ExitUsage, "", "")
			}
			newWorld(t, nobody).run(args...).want(t, ExitUnreachable, "", "did not answer")
			newWorld(t, refusing).run(args...).want(t, ExitFailed, "", "insufficient_scope: this call needs more")
		})
	}
}

// --json gives JSON from every command that answers a question of a server.
func TestJSONOfEveryCommand(t *testing.T) {
	answering := fake(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/timeline"):
			reply(w, http.StatusOK, `{"items":[{"kind":"event","version":2,"state":"succeeded"}]}`)
		case strings.HasSuffix(r.URL.Path, "/rewrap"):
			reply(w, http.StatusOK, `{"wrapping_key":"a","done":true}`)
		case strings.HasPrefix(r.URL.Path, "/v1/artifacts/"):
			// The SHA-256 of "abc" is the first example of FIPS 180-2.
			reply(w, http.StatusFound, `{"artifact":{"id":"art_1","size":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},"url":"http://`+r.Host+`/files/x"}`)
		case r.URL.Path == "/files/x":
			_, _ = w.Write([]byte("abc"))
		case strings.HasSuffix(r.URL.Path, "/test"):
			reply(w, http.StatusAccepted, `{"id":"dlv_1","state":"delivered"}`)
		case strings.HasPrefix(r.URL.Path, "/v1/replays/") && r.Method == http.MethodGet:
			reply(w, http.StatusOK, `{"id":"rpl_1","what":"deliveries","state":"done","total":1,"done":1}`)
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("ETag", `"1"`)
			reply(w, http.StatusOK, `{"id":"op_1","state":"succeeded","version":2,"items":[]}`)
		}
	})
	for _, l := range leaves(t) {
		if !l.talks() {
			continue
		}
		t.Run(l.path, func(t *testing.T) {
			t.Chdir(t.TempDir())
			r := newWorld(t, answering).run(append(l.args(), "--json")...)
			r.want(t, ExitDone, "", "")
			if err := json.Unmarshal([]byte(r.stdout), new(map[string]any)); err != nil {
				t.Errorf("%q is no JSON object: %v", r.stdout, err)
			}
		})
	}
}

// Completion follows the grammar.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"":                                     "op", // among others
		"op":                                   "op",
		"op ":                                  "watch",
		"op wa":                                "wait watch",
		"op resolve op_1 not":                  "not_created",
		"op list --st":                         "--state",
		"op list --upstream studio --":         "--csv",
		"op list --upstream ":                  "",
		"op list --json --":                    "--csv",
		"key create ci --scopes ":              "submit read operate payloads admin",
		"completion ":                          "bash zsh fish",
		"serve --log-level ":                   "debug info warn error",
		"serve --log-level=x --config ":        "",
		"nonsense ":                            "",
		"op get ":                              "",
		"--server http://127.0.0.1:1 endpoint": "endpoint",
	} {
		words := strings.Split(line, " ")
		r := newWorld(t, "").run(append([]string{"__complete", "--"}, words...)...)
		r.want(t, ExitDone, "", "")
		var got []string
		for l := range strings.Lines(r.stdout) {
			word, help, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "\t")
			if help == "" || strings.HasPrefix(word, "__") {
				t.Errorf("%q: %q", line, l)
			}
			got = append(got, word)
		}
		if line == "" || line == "op " || strings.HasSuffix(line, " --") || line == "op list --st" {
			if !slices.Contains(got, want) {
				t.Errorf("%q: %v, want %s among them", line, got, want)
			}
			continue
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", line, got, want)
		}
	}
}

// A real bash completes with the script.
func TestCompletionInBash(t *testing.T) {
	for line, want := range map[string]string{"pawl op wa": "wait watch", "pawl completion ": "bash zsh fish", "pawl op get ": ""} {
		words := strings.Split(line, " ")
		program := `source <(pawl completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pawl; echo "${COMPREPLY[*]}"; complete -p pawl`
		out, err := exec.CommandContext(t.Context(), "bash", append([]string{"-c", program, "bash"}, words...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(string(out), "\n"); got != want || !strings.Contains(string(out), "-F _pawl pawl") {
			t.Errorf("%q: %q, want %q", line, out, want)
		}
	}
	for _, shell := range []string{"zsh", "fish"} {
		r := newWorld(t, "").run("completion", shell)
		r.want(t, ExitDone, "pawl __complete", "")
		if path, err := exec.LookPath(shell); err == nil {
			cmd := exec.CommandContext(t.Context(), path, "-n")
			cmd.Stdin = strings.NewReader(r.stdout)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s does not read its script: %v %s", shell, err, out)
			}
		}
	}
}

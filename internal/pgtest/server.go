package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/pawlhq/pawl/internal/apt"
)

// Server is a running PostgreSQL of our own. Its methods are used by one
// goroutine.
type Server struct {
	url  string
	stop func() error
	// kill ends it as a crash does, again starts what was killed.
	kill  func() error
	again func(context.Context) error
	log   func() string
}

// Log is what the server has logged since its latest start, with the SQLSTATE of
// each error.
func (s *Server) Log() string { return s.log() }

// Kill ends the server at once, as a crash does; nothing of it is removed.
func (s *Server) Kill() error { return s.kill() }

// Restart starts a server that was killed, at the same address.
func (s *Server) Restart(ctx context.Context) error { return s.again(ctx) }

// URL is where databases can be made, as a superuser.
func (s *Server) URL() string { return s.url }

// Stop ends the server and removes everything of it.
func (s *Server) Stop() error { return s.stop() }

// startTimeout bounds the wait until a server answers.
const startTimeout = 60 * time.Second

// Start starts a server by whichever way this machine has. Settings such as
// "fsync=on" win over those that make tests quick.
func Start(ctx context.Context, settings ...string) (*Server, error) {
	bin, err := binaries()
	if errors.Is(err, errNoBinaries) && os.Geteuid() == 0 {
		if installed := apt.Install(ctx, "postgresql"); installed != nil {
			err = errors.Join(err, installed)
		} else {
			bin, err = binaries()
		}
	}
	if err == nil {
		return startLocal(ctx, bin, settings)
	}
	s, contained := startContainer(ctx, settings)
	if contained == nil {
		return s, nil
	}
	return nil, fmt.Errorf("no PostgreSQL for the tests: set %s to the URL of one, or install PostgreSQL (Debian: postgresql): %w",
		Variable, errors.Join(err, contained))
}

// startLocal makes a cluster in a temporary folder and runs it.
func startLocal(ctx context.Context, bin string, settings []string) (_ *Server, err error) {
	dir, err := os.MkdirTemp("", "pawl-postgres-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	as, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if err := as.run(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	l := &local{as: as, bin: bin, dir: dir, data: data, port: port, settings: settings}
	if err := l.start(ctx); err != nil {
		return nil, err
	}
	return &Server{
		url: serverURL("postgres", port), again: l.start,
		stop: func() error { l.end(syscall.SIGINT); return os.RemoveAll(dir) }, // fast shutdown
		kill: func() error { l.end(syscall.SIGQUIT); return nil },
		log:  func() string { return l.log.String() },
	}, nil
}

// local is a server of our own in a folder.
type local struct {
	as             account
	bin, dir, data string
	port           int
	settings       []string
	cmd            *exec.Cmd
	ended          chan error
	log            *output
}

// output is what a process writes while others look.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// options are those of a server's command line: of a setting that is there twice
// the later holds.
func options(settings []string) (args []string) {
	quick := []string{"fsync=off", "max_connections=300", "log_min_messages=warning", "log_error_verbosity=verbose"}
	for _, s := range append(quick, settings...) {
		args = append(args, "-c", s)
	}
	return args
}

func (l *local) start(ctx context.Context) error {
	// What the tests kill is processes, and the page cache outlives them, so
	// that syncing would only cost time.
	args := append([]string{"-D", l.data, "-h", "127.0.0.1", "-p", strconv.Itoa(l.port), "-k", l.dir}, options(l.settings)...)
	l.cmd = l.as.command(filepath.Join(l.bin, "postgres"), args...)
	l.log = new(output)
	l.cmd.Stdout, l.cmd.Stderr = l.log, l.log
	l.cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	if err := l.cmd.Start(); err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	ended, cmd := make(chan error, 1), l.cmd
	l.ended = ended
	go func() {
		ended <- cmd.Wait()
		close(ended)
	}()
	if err := await(ctx, l.port, l.ended); err != nil {
		l.end(syscall.SIGQUIT)
		return fmt.Errorf("%w:\n%s", err, l.log)
	}
	return nil
}

// end signals the server and waits for its end.
func (l *local) end(signal syscall.Signal) {
	_ = l.cmd.Process.Signal(signal)
	<-l.ended
}

func serverURL(user string, port int) string {
	u := url.URL{Scheme: "postgres", User: url.User(user), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "/postgres", RawQuery: "sslmode=disable"}
	return u.String()
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// await returns when the server takes queries, or says why it never will.
func await(ctx context.Context, port int, ended <-chan error) error {
	deadline := time.Now().Add(startTimeout)
	for {
		probe, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := ping(probe, serverURL("postgres", port))
		cancel()
		if err == nil {
			return nil
		}
		select {
		case ended := <-ended:
			return fmt.Errorf("postgres ended at once: %w", errors.Join(ended, err))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("postgres does not answer: %w", err)
		}
	}
}

// startContainer runs a server in a container.
func startContainer(ctx context.Context, settings []string) (*Server, error) {
	if _, err := exec.LookPath("docker"); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	publish := fmt.Sprintf("127.0.0.1:%d:5432", port)
	run := append([]string{"run", "--detach", "--publish", publish, "--env", "POSTGRES_HOST_AUTH_METHOD=trust", "postgres:17"}, options(settings)...)
	out, err := exec.CommandContext(ctx, "docker", run...).Output()
	if err != nil {
		return nil, fmt.Errorf("docker run: %w", err)
	}
	id := string(bytes.TrimSpace(out))
	docker := func(args ...string) error { return exec.Command("docker", append(args, id)...).Run() }
	stop := func() error { return docker("rm", "--force", "--volumes") }
	if err := await(ctx, port, nil); err != nil {
		return nil, errors.Join(err, stop())
	}
	return &Server{
		url: serverURL("postgres", port), stop: stop,
		kill: func() error { return docker("kill") },
		log: func() string {
			text, _ := exec.Command("docker", "logs", id).CombinedOutput()
			return string(text)
		},
		again: func(ctx context.Context) error {
			if err := docker("start"); err != nil {
				return err
			}
			return await(ctx, port, nil)
		},
	}, nil
}

package systemd_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/systemd"
)

// manager is a service manager's socket, named in the environment.
func manager(t *testing.T, name string) func() string {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", "")
	t.Setenv("WATCHDOG_PID", "")
	return func() string {
		t.Helper()
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		text := make([]byte, 1024)
		n, err := conn.Read(text)
		if err != nil {
			return ""
		}
		return string(text[:n])
	}
}

// A life is told in order, one datagram each; what comes after the end is not, and
// children do not inherit the manager (OP-09, OP-10).
func TestLifeIsTold(t *testing.T) {
	for name, socket := range map[string]string{"path": filepath.Join(t.TempDir(), "s"), "abstract": "@pawl-test-" + filepath.Base(t.TempDir()) + time.Now().Format("150405.000000")} {
		t.Run(name, func(t *testing.T) {
			next := manager(t, socket)
			n := systemd.FromEnvironment(slog.New(slog.DiscardHandler))
			for _, key := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
				if _, ok := os.LookupEnv(key); ok {
					t.Errorf("children inherit %s", key)
				}
			}
			n.Ready("Serving a")
			n.Reloading()
			n.Ready("Serving b")
			n.Reloading()
			n.Stopping("Ending")
			n.Ready("Serving c")
			n.Stopping("Ending again")
			for _, want := range []string{
				"READY=1\nSTATUS=Serving a", `RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]*`, "READY=1\nSTATUS=Serving b",
				`RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]*`, "STOPPING=1\nSTATUS=Ending", "",
			} {
				if got := next(); !regexp.MustCompile("^" + want + "$").MatchString(got) {
					t.Errorf("told %q, want %q", got, want)
				}
			}
		})
	}
}

// The watchdog is fed as long as there is progress, not without, and while the
// process stops (OP-11).
func TestWatchdogNeedsProgress(t *testing.T) {
	next := manager(t, filepath.Join(t.TempDir(), "s"))
	t.Setenv("WATCHDOG_USEC", "100000")
	var log bytes.Buffer
	n := systemd.FromEnvironment(slog.New(slog.NewTextHandler(&log, nil)))
	watch := func(progressed time.Time) (told string) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); n.Watch(ctx, func() time.Time { return progressed }) }()
		told = next()
		stop()
		<-done
		for next() != "" {
			continue
		}
		return told
	}
	if got := watch(time.Now().Add(time.Hour)); got != "WATCHDOG=1" {
		t.Errorf("progress: told %q", got)
	}
	if got := watch(time.Now().Add(-time.Minute)); got != "" {
		t.Errorf("no progress: told %q", got)
	}
	if !strings.Contains(log.String(), "stand still") {
		t.Errorf("the log does not tell: %s", log.String())
	}
	n.Stopping("Ending")
	next()
	if got := watch(time.Now().Add(-time.Minute)); got != "WATCHDOG=1" {
		t.Errorf("stopping: told %q", got)
	}
}

// Without a manager, or with one that is gone, everything goes on as ever.
func TestNobodyIsTold(t *testing.T) {
	next := manager(t, filepath.Join(t.TempDir(), "s"))
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "100000")
	var log bytes.Buffer
	for _, n := range []*systemd.Notifier{nil, systemd.FromEnvironment(slog.New(slog.NewTextHandler(&log, nil)))} {
		n.Ready("a")
		n.Reloading()
		n.Watch(t.Context(), time.Now) // returns at once
		n.Stopping("b")
	}
	if got := next(); got != "" || log.Len() > 0 {
		t.Errorf("told %q, logged %s", got, log.String())
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	systemd.FromEnvironment(slog.New(slog.NewTextHandler(&log, nil))).Ready("a")
	if !strings.Contains(log.String(), "could not be told") {
		t.Errorf("logged %q", log.String())
	}
}

// Package systemd tells the service manager that started the process how it
// fares, by the protocol of sd_notify. Without such a manager it says nothing.
package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// patience is how long a manager that reads nothing is waited for.
const patience = time.Second

// Notifier tells the service manager. Nil, and one that was made without a
// manager, tell nobody. It is safe for concurrent use.
type Notifier struct {
	socket   string
	watchdog time.Duration
	log      *slog.Logger

	mu       sync.Mutex
	stopping bool
}

// FromEnvironment is the notifier of the manager that the environment names. It
// takes the variables out of the environment: what this process starts must not
// speak in its name.
func FromEnvironment(log *slog.Logger) *Notifier {
	n := &Notifier{socket: os.Getenv("NOTIFY_SOCKET"), log: log}
	_ = os.Unsetenv("NOTIFY_SOCKET")
	every, err := daemon.SdWatchdogEnabled(true)
	if err != nil {
		log.Warn("the service manager's watchdog is not understood and not fed", "error", err)
	}
	n.watchdog = every
	return n
}

// Ready says that the process serves, for the first time or after a reload, and
// in one line how.
func (n *Notifier) Ready(status string) { n.tell(daemon.SdNotifyReady, "STATUS="+status) }

// Reloading says that a reload has begun; [Notifier.Ready] ends it. The time lets
// the manager know which request for a reload this answers.
func (n *Notifier) Reloading() {
	n.tell(daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
}

// Stopping says that the process ends, once and for good: a reload that ends after
// it is not told of.
func (n *Notifier) Stopping(status string) {
	n.tell(daemon.SdNotifyStopping, "STATUS="+status)
}

// Watch feeds the manager's watchdog until the context ends, as long as progressed
// gives a time that is less than the watchdog's limit ago. While the process
// stops it is fed all the same: then the manager's limit for stopping holds.
func (n *Notifier) Watch(ctx context.Context, progressed func() time.Time) {
	if n == nil || n.socket == "" || n.watchdog == 0 {
		return
	}
	ticker := time.NewTicker(n.watchdog / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if time.Since(progressed()) < n.watchdog || n.stops() {
			n.send(daemon.SdNotifyWatchdog)
		} else {
			n.log.Error("the node's loops stand still: the service manager's watchdog is not fed", "limit", n.watchdog.String())
		}
	}
}

func (n *Notifier) stops() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stopping
}

// tell says where the process is in its life, in order; after Stopping nothing.
func (n *Notifier) tell(state string, more ...string) {
	if n == nil || n.socket == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopping {
		return
	}
	n.stopping = state == daemon.SdNotifyStopping
	n.send(append([]string{state}, more...)...)
}

// send makes one datagram of the lines. It is not [daemon.SdNotify], which reads
// the environment each time and waits without end for a manager that hangs.
func (n *Notifier) send(lines ...string) {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err == nil {
		defer conn.Close()
		_ = conn.SetWriteDeadline(time.Now().Add(patience))
		_, err = fmt.Fprint(conn, strings.Join(lines, "\n"))
	}
	if err != nil {
		n.log.Warn("the service manager could not be told", "state", lines[0], "error", err)
	}
}

package cli

import (
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A real process tells its service manager when it serves, reloads and stops, and
// feeds the watchdog in between (OP-09, OP-11).
func TestServiceManagerIsTold(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	p := &process{T: t, dir: dir}
	p.write("pawl.yaml", "data: data\n")
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "4000000") // Of whichever process: its id is not known yet.
	t.Setenv("WATCHDOG_PID", "")
	fed := 0
	// next is what is told next beside the watchdog's food.
	next := func() string {
		t.Helper()
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		text := make([]byte, 1024)
		for {
			n, err := conn.Read(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(text[:n]); got != "WATCHDOG=1" {
				return got
			}
			fed++
		}
	}
	want := func(pattern string) {
		t.Helper()
		if got := next(); !regexp.MustCompile("^" + pattern + "$").MatchString(got) {
			t.Errorf("told %q, want %q", got, pattern)
		}
	}
	t.Cleanup(func() { // After the process's end.
		want("STOPPING=1\nSTATUS=Finishing what is under way, for 10s at most")
		if fed == 0 {
			t.Error("the watchdog was not fed")
		}
	})
	p = serveIn(t, dir)
	serving := "READY=1\nSTATUS=" + regexp.QuoteMeta(fmt.Sprintf("Serving %s, admin %s", p.api, p.admin))
	want(serving)
	p.hangup("the configuration was reloaded")
	want(`RELOADING=1\nMONOTONIC_USEC=\d+`)
	want(serving)
	p.write("pawl.yaml", "data: data\nno such key: 1\n")
	p.hangup("the configuration was not reloaded")
	want(`RELOADING=1\nMONOTONIC_USEC=\d+`)
	want(serving + "; the new configuration has faults and is not in force, see the log")
	time.Sleep(3 * time.Second) // More than half of the watchdog's limit.
	if log := p.log(); strings.Contains(log, "stand still") || strings.Contains(log, "could not be told") {
		t.Error(log)
	}
}

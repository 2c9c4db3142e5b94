package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/apt"
)

// Pooled starts a PgBouncer in transaction mode before the server of a
// database and gives the database's URL through it. It ends with the test.
func Pooled(t testing.TB, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal("the database has no URL")
	}
	bin, err := apt.Program(t.Context(), "pgbouncer", "pgbouncer", "/usr/sbin/pgbouncer")
	if err != nil {
		t.Fatalf("no PgBouncer for the tests: %v", err)
	}
	dir, err := os.MkdirTemp("", "pawl-pgbouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	as, err := configure(dir, u, port)
	if err != nil {
		t.Fatal(err)
	}
	cmd := as.command(bin, filepath.Join(dir, "pgbouncer.ini"))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	query := u.Query()
	query.Set("pooler", "transaction")
	query.Set("sslmode", "disable")
	u.RawQuery = query.Encode()
	if err := reachable(t.Context(), u.Host); err != nil {
		t.Fatalf("pgbouncer does not answer: %v\n%s", err, log.String())
	}
	return u.String()
}

// configure writes the settings of a PgBouncer before the server of u.
func configure(dir string, u *url.URL, port int) (account, error) {
	target := "host=" + u.Hostname()
	if u.Port() != "" {
		target += " port=" + u.Port()
	}
	password, _ := u.User.Password()
	if password != "" {
		target += " password='" + password + "'"
	}
	// Few connections to the server, so that transactions of one client land on
	// many of them.
	ini := fmt.Sprintf(`[databases]
* = %s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = transaction
max_client_conn = 300
default_pool_size = 8
server_round_robin = 1
`, target, port, filepath.Join(dir, "users"))
	for name, text := range map[string]string{
		"pgbouncer.ini": ini, "users": fmt.Sprintf("%q %q\n", u.User.Username(), password),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return account{}, err
		}
	}
	return unprivileged(dir)
}

func reachable(ctx context.Context, address string) error {
	var d net.Dialer
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

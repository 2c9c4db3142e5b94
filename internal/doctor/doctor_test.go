package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// examOf is an examination of a data folder with a ledger in it, which is open as
// in a running node until the test ends.
func examOf(t *testing.T) (*exam, *sqlite.Driver) {
	t.Helper()
	cfg := config.Default()
	cfg.Data = filepath.Join(t.TempDir(), "data")
	d, err := sqlite.Open(t.Context(), cfg.Data, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return newExam(cfg, Options{}), d
}

// has checks that there is just one finding of a check and level, with these words
// in what was seen and what to do.
func (e *exam) has(t *testing.T, level Level, seen, do string) {
	t.Helper()
	n := 0
	for _, f := range e.found {
		if f.Level == level && strings.Contains(f.Seen, seen) && strings.Contains(f.Do, do) {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d findings are %s with %q and %q, want 1: %+v", n, level, seen, do, e.found)
	}
}

// none checks that nothing is wrong.
func (e *exam) none(t *testing.T) {
	t.Helper()
	for _, f := range e.found {
		if f.Level != OK || f.Do != "" {
			t.Errorf("%+v", f)
		}
	}
	if len(e.found) == 0 {
		t.Error("nothing was looked at")
	}
}

func TestClock(t *testing.T) {
	for _, c := range []struct {
		name   string
		shared bool
		ahead  time.Duration
		level  Level
		seen   string
	}{
		{"agrees", true, 0, OK, "agrees with it"},
		{"agrees nearly", true, time.Second, OK, "agrees with it"},
		{"behind", true, time.Minute, Fault, "the clock is 1m0s behind it"},
		{"ahead", true, -time.Minute, Fault, "the clock is 1m0s ahead of it"},
		{"behind the last commit", false, time.Hour, Fault, "the clock is 1h0m0s behind it"},
		{"long after the last commit", false, -time.Hour, OK, "agrees with it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &exam{}
			if c.shared {
				e.cfg.Database = secret(t, "postgres://u@127.0.0.1/db")
			}
			e.clock(t.Context(), "it", func(context.Context) (pawl.Time, error) { return pawl.TimeOf(time.Now().Add(c.ahead)), nil })
			e.has(t, c.level, c.seen, "")
			if len(e.found) != 1 {
				t.Errorf("%+v", e.found)
			}
		})
	}
}

// secret is a text that prints nothing.
func secret(t *testing.T, text string) config.Secret {
	t.Helper()
	out, err := config.NewSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The ledger that was written by a clock that has been set back since.
func TestClockOfLedger(t *testing.T) {
	e, d := examOf(t)
	e.database(t.Context())
	e.none(t)
	late := pawl.NewID(pawl.TimeOf(time.Now().Add(time.Hour)), 1)
	if err := d.Update(t.Context(), late, func(store.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	e.database(t.Context())
	e.has(t, Fault, "behind this ledger's last commit", "NTP")
}

func TestLargeLog(t *testing.T) {
	e, _ := examOf(t)
	// What follows the frames of a log is no frame: nothing is read of it.
	if err := os.Truncate(filepath.Join(e.cfg.Data, "pawl.db-wal"), logLarge+1<<20); err != nil {
		t.Fatal(err)
	}
	e.database(t.Context())
	e.has(t, Warning, "the log of the ledger has 257 MiB", "lsof")
}

func TestSchemaOfLedger(t *testing.T) {
	older := "DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)"
	newer := "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, true)"
	t.Run("applied", func(t *testing.T) {
		e := &exam{}
		if !e.schema([]store.Migration{{Version: 1, Name: "0001_a.sql", AppliedAt: 1}}, nil) || len(e.found) != 0 {
			t.Errorf("%+v", e.found)
		}
	})
	t.Run("pending", func(t *testing.T) {
		e := &exam{}
		if e.schema([]store.Migration{{Version: 1, Name: "0001_a.sql", AppliedAt: 1}, {Version: 2, Name: "0002_b.sql"}}, nil) {
			t.Error("it is read all the same")
		}
		e.has(t, Warning, "1 steps of the schema are pending", "backup first")
	})
	for _, c := range []struct {
		name, change string
		level        Level
		seen         string
	}{
		{"nothing to tell", "SELECT 1", OK, "the ledger opens and is read"},
		{"older", older, Warning, "1 steps of the schema are pending"},
		{"newer", newer, Fault, "it has 9000, this one knows"},
		{"empty", "DROP SCHEMA public CASCADE; CREATE SCHEMA public", OK, noLedger},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := &exam{cfg: config.Default()}
			database := pgtest.Database(t)
			e.cfg.Database = secret(t, database)
			if err := postgres.Migrate(t.Context(), database); err != nil {
				t.Fatal(err)
			}
			change(t, database, c.change)
			e.database(t.Context())
			e.has(t, c.level, c.seen, "")
			for _, f := range e.found {
				if f.Level != OK && c.level == OK {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// Which of the two does not answer: the pooler or what is behind it.
func TestPooler(t *testing.T) {
	database := pgtest.Database(t)
	if err := postgres.Migrate(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	e := &exam{cfg: config.Default()}
	e.cfg.Database = secret(t, pgtest.Pooled(t, database))
	e.database(t.Context())
	e.none(t)
	change(t, database, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE goose_db_version (nothing int)")
	e.found = nil
	e.database(t.Context())
	e.has(t, Fault, "", "the pooler at 127.0.0.1:")
}

func TestHindrance(t *testing.T) {
	for _, c := range []struct {
		h     postgres.Hindrance
		err   error
		level Level
		seen  string
	}{
		{postgres.Hindrance{Age: transactionOld}, nil, "", ""},
		{postgres.Hindrance{Age: transactionOld + time.Second, Who: "pid 7", DeadRows: 12}, nil, Warning, "a transaction has been open for 5m1s: pid 7; 12 dead rows"},
		{postgres.Hindrance{}, errors.New("permission denied"), Warning, "permission denied"},
	} {
		e := &exam{old: transactionOld}
		e.hindrance(t.Context(), func(context.Context) (postgres.Hindrance, error) { return c.h, c.err })
		if c.level == "" {
			if len(e.found) > 0 {
				t.Errorf("%+v", e.found)
			}
			continue
		}
		e.has(t, c.level, c.seen, "")
	}
}

// TestOpenTransaction: somebody has begun a transaction in the ledger's database
// and forgotten it. The database itself says who; its end is all there is to do.
func TestOpenTransaction(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	if err := postgres.Migrate(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	other, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(t.Context())
	for _, statement := range []string{"SET application_name = 'somebody'", "BEGIN", "INSERT INTO sources (name) VALUES ('s')"} {
		if _, err := other.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(1100 * time.Millisecond) // Its age is told in whole seconds.
	look := func(old time.Duration) *exam {
		e := &exam{cfg: config.Default(), old: old}
		e.cfg.Database = secret(t, database)
		e.database(t.Context())
		return e
	}
	who := fmt.Sprintf("process %d of user %s, program somebody, idle in transaction", other.PgConn().PID(), other.Config().User)
	look(time.Millisecond).has(t, Warning, who, "end it")
	look(transactionOld).none(t)
	if _, err := other.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	look(time.Millisecond).none(t)
}

// as runs fn without the rights of root, as most nodes run.
func as(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // The thread ends with the function, and its rights with it.
		head, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		if err := unix.Capset(&head, &none[0]); err != nil {
			panic(err)
		}
		fn()
	}()
	<-done
}

func TestFolder(t *testing.T) {
	for _, c := range []struct {
		name  string
		mode  fs.FileMode
		level Level
		seen  string
		do    string
	}{
		{"right", 0o700, OK, "MiB are free", ""},
		{"not writable", 0o500, Fault, "cannot be written by this user", "chown"},
		{"others may look in", 0o750, Warning, "(mode 0750)", "chmod 700"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, _ := examOf(t)
			e.cfg.Disk.MinFree = 1
			if err := os.Chmod(e.cfg.Data, c.mode); err != nil {
				t.Fatal(err)
			}
			as(e.disk)
			e.has(t, c.level, c.seen, c.do)
		})
	}
	for _, name := range []string{"secret.key", "admin.key", "pawl.db"} {
		e, _ := examOf(t)
		path := filepath.Join(e.cfg.Data, name)
		if err := errors.Join(os.WriteFile(filepath.Join(e.cfg.Data, "secret.key"), nil, 0o600), os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o640)); err != nil {
			t.Fatal(err)
		}
		e.secrets()
		e.has(t, Fault, "others may read "+path+" (mode 0640)", "chmod 600 "+path)
	}
}

// What answers at the public address, while a node runs here or none does.
func TestCallbacks(t *testing.T) {
	answers := func(body string, status int, at string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, at) {
				http.Error(w, "the proxy knows nothing of this", http.StatusBadGateway)
				return
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc // nil refuses the connection
		runs   bool
		level  Level
		seen   string
	}{
		{"a node", answers("alive\n", 200, "/livez"), true, OK, "/livez was answered by a Pawl"},
		{"a node whose hooks alone are passed on", answers(`{"reason":"method"}`, 405, "/hooks/"), true, OK, "was answered 405 by a Pawl"},
		{"no upstream by this name", answers(`{"reason":"unknown_source"}`, 404, "/hooks/"), true, OK, "was answered 404 by a Pawl"},
		{"something else", answers("hello", 200, "/"), true, Fault, "was answered 200, and not by a Pawl"},
		{"something else, no node here", answers("hello", 200, "/"), false, Fault, "was answered 200, and not by a Pawl"},
		{"another's 405", answers("method not allowed", 405, "/"), true, Fault, "was answered 405, and not by a Pawl"},
		{"refused while a node runs", nil, true, Fault, "connection refused"},
		{"refused and no node here", nil, false, Warning, "no node of this configuration runs here either"},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := httptest.NewServer(c.answer)
			defer srv.Close()
			e := &exam{cfg: config.Default(), web: srv.Client()}
			e.cfg.PublicURL = srv.URL
			if c.answer == nil {
				srv.Close()
			}
			if c.runs {
				e.api = "http://127.0.0.1:1"
			}
			e.callbacks(t.Context())
			e.has(t, c.level, c.seen, "")
			if len(e.found) != 1 {
				t.Errorf("%+v", e.found)
			}
		})
	}
}

// Asking upstreams is a read of their list with the key, and nothing without
// --online.
func TestOnline(t *testing.T) {
	for _, c := range []struct {
		name, preset, key string
		status            int
		online            bool
		level             Level
		seen              string
		asked             int
	}{
		{"not asked", "sim", "k", 200, false, OK, "up has a key", 0},
		{"no key", "sim", "", 200, false, Warning, "up has no key", 0},
		{"takes the key", "sim", "k", 200, true, OK, "up takes the key", 1},
		{"refuses the key", "sim", "k", 401, true, Fault, "up refuses the key", 1},
		{"is broken", "sim", "k", 500, true, Fault, "up did not show its list", 1},
		{"knows no harmless read", "media-v2", "k", 200, true, OK, "knows no harmless read", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Method+" "+r.Header.Get("Authorization"))
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(`{"code":200,"data":{"items":[]},"items":[],"tasks":[]}`))
			}))
			defer srv.Close()
			key := ""
			if c.key != "" {
				key = "key: " + c.key + ", "
			}
			cfg, err := config.Parse("test.yaml", []byte(fmt.Sprintf(`
data: %s
listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
egress: {allow: [127.0.0.0/8]}
upstreams:
  up: {preset: %s, base_url: "%s", %swebhook_keys: [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw]}
`, filepath.Join(t.TempDir(), "data"), c.preset, srv.URL, key)), os.LookupEnv)
			if err != nil {
				t.Fatal(err)
			}
			e := &exam{found: Run(t.Context(), cfg, Options{Online: c.online})}
			e.has(t, c.level, c.seen, "")
			if len(asked) != c.asked {
				t.Errorf("asked %v, want %d", asked, c.asked)
			}
			for _, a := range asked {
				if a != "GET Bearer k" {
					t.Errorf("asked %s", a)
				}
			}
		})
	}
}

// files are what a folder holds, with modes and times: reading by others alone
// leaves them.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		info, infoErr := entry.Info()
		err = errors.Join(err, infoErr)
		all = append(all, fmt.Sprint(entry.Name(), info.Mode(), info.Size()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// copied is a folder with some of a ledger's files.
func copied(t *testing.T, from string, names ...string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		// A mode that Pawl does not give: it must stay.
		if err := errors.Join(os.WriteFile(filepath.Join(to, name), text, 0o640), os.Chmod(filepath.Join(to, name), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// Nothing of a ledger's folder changes by a look: neither beside a node, nor after
// a stop, a crash, or a copy.
func TestNothingIsChanged(t *testing.T) {
	e, d := examOf(t)
	running := e.cfg.Data
	// A commit, so that the log is not empty.
	if err := d.Update(t.Context(), pawl.NewID(pawl.TimeOf(time.Now()), 1), func(store.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	crashed, bare := copied(t, running, "pawl.db", "pawl.db-wal", "pawl.db-shm"), copied(t, running, "pawl.db", "pawl.db-wal")
	for _, c := range []struct {
		name, dir string
		level     Level
		seen      string
	}{
		{"running", running, OK, "the ledger opens and is read"},
		{"crashed", crashed, OK, "the ledger opens and is read"},
		{"copied without its index", bare, Warning, "was copied with its log"},
		{"stopped", "", OK, "the ledger opens and is read"},
	} {
		if c.dir == "" {
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			c.dir = copied(t, running, "pawl.db")
		}
		e.cfg.Data, e.found = c.dir, nil
		before := files(t, c.dir)
		e.database(t.Context())
		e.has(t, c.level, c.seen, "")
		if after := files(t, c.dir); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%s: %v, before %v", c.name, after, before)
		}
	}
}

// The proxy of the environment is for what is outside: it neither answers for the
// ports of this machine nor is it shown the admin key.
func TestAdminKeyIsShownToNoProxy(t *testing.T) {
	const secret = "pawl_sk_canary"
	shown := ""
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown += r.URL.String() + " " + r.Header.Get("Authorization") + "\n"
		_, _ = io.WriteString(w, "alive\n")
	}))
	defer proxy.Close()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/livez":
			_, _ = io.WriteString(w, "alive\n")
		case "/v1/whoami":
			if r.Header.Get("Authorization") != "Bearer "+secret {
				w.WriteHeader(http.StatusUnauthorized)
			}
			_, _ = io.WriteString(w, `{"scopes":["admin"]}`)
		}
	}))
	defer node.Close()
	cfg := config.Default()
	cfg.Listen, cfg.AdminListen, cfg.PublicURL = node.Listener.Addr().String(), "127.0.0.1:0", "https://pawl.example"
	by, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	e := newExam(cfg, Options{AdminKey: secret})
	e.web = client(http.ProxyURL(by))
	e.ports(t.Context())
	e.key(t.Context())
	if shown != "" {
		t.Error("the proxy was asked for:", shown)
	}
	e.has(t, OK, "the admin key of PAWL_ADMIN_KEY or PAWL_KEY works", "")
}

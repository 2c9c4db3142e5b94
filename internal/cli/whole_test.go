package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
	"github.com/pawlhq/pawl/internal/store/sqlite"
	"github.com/pawlhq/pawl/internal/store/storetest"
)

// loaded is a folder with a sound ledger of n operations.
func loaded(t *testing.T, n int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	d, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := store.NewCommitter(d, store.Options{})
	err = storetest.Load(t.Context(), c, n)
	if err = errors.Join(err, c.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// rowsOf is every row of a ledger by its table, in an order of the rows' own.
func rowsOf(t *testing.T, w store.Whole) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	counts, err := w.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		err := w.Export(t.Context(), c.Table, 0, func(row any) error {
			all[c.Table] = append(all[c.Table], fmt.Sprintf("%#v", row))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(all[c.Table])
	}
	return all
}

func rowsIn(t *testing.T, dir string) map[string][]string {
	t.Helper()
	r, err := sqlite.OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return rowsOf(t, r)
}

// signaled starts pawl and sends it a signal as soon as something holds; it says
// whether the signal came before the end, and what pawl said.
func signaled(t *testing.T, signal syscall.Signal, when func() bool, args ...string) (in bool, said string) {
	t.Helper()
	program, err := exec.LookPath("pawl")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	stderr, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for sent := false; ; {
		select {
		case err := <-ended:
			text, _ := os.ReadFile(stderr.Name())
			return sent && err != nil, string(text)
		case <-time.After(time.Millisecond):
			if !sent && when() {
				_ = cmd.Process.Signal(signal)
				sent = true
			}
		}
	}
}

// succeed runs pawl in a process to its good end.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("pawl")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

// TestCopyKilled: a copy that is killed (kill -9) at whatever table goes on from
// there, and nothing is lost or doubled.
func TestCopyKilled(t *testing.T) {
	server, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	dir, url := loaded(t, 1500), server.URL()
	want := rowsIn(t, dir)
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	r, err := postgres.OpenReadOnly(t.Context(), url+"&application_name=watcher")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	kills := 0
	for _, table := range []string{"operations", "events", "history", "payloads"} {
		in, said := signaled(t, syscall.SIGKILL, func() bool {
			state, ok, err := r.CopyState(context.Background())
			return err == nil && ok && state.Table == table && state.FinishedAt == 0
		}, "copy", "--from", dir, "--to", url)
		if in {
			kills++
		} else if said != "" {
			t.Fatalf("the copy failed by itself: %s", said)
		}
		// No node starts on half a ledger.
		if state, _, err := r.CopyState(t.Context()); err != nil {
			t.Fatal(err)
		} else if _, err := postgres.Open(t.Context(), url, postgres.Options{}); state.FinishedAt == 0 && !errors.Is(err, store.ErrUnfinishedCopy) {
			t.Errorf("a node on a half copy: %v", err)
		}
	}
	if kills == 0 {
		t.Error("no copy was killed on its way")
	}
	t.Logf("%d kills; %s", kills, succeed(t, "copy", "--from", dir, "--to", url))
	if diff := cmp.Diff(want, rowsOf(t, r)); diff != "" {
		t.Errorf("(-source +copy):\n%s", diff)
	}
}

// TestBackupKilled: neither kill -9 nor Ctrl-C leaves half a backup under its
// name, and the next one is not hindered. So it is with a restore.
func TestBackupKilled(t *testing.T) {
	t.Parallel()
	dir := loaded(t, 600)
	file := filepath.Join(t.TempDir(), "saved.db")
	there := func(path string) func() bool {
		return func() bool { _, err := os.Stat(path); return err == nil }
	}
	// The polite one first: what the other leaves would be taken for its own.
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		in, said := signaled(t, signal, there(file+".partial"), "backup", "--data", dir, "--out", file)
		if !in {
			t.Fatalf("%v came too late: %s", signal, said)
		}
		if there(file)() {
			t.Errorf("%v: half a backup has the name of a whole one", signal)
		}
		if left := there(file + ".partial")(); left && signal == syscall.SIGINT {
			t.Errorf("%v left something: %s", signal, said)
		}
	}
	succeed(t, "backup", "--data", dir, "--out", file)
	if there(file + ".partial")() {
		t.Error("the former try is still there")
	}
	back := filepath.Join(t.TempDir(), "back")
	// The polite one first: what the other leaves would be taken for its own.
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		in, said := signaled(t, signal, there(filepath.Join(back, "restoring", "pawl.db")), "restore", "--from", file, "--data", back)
		if !in || there(filepath.Join(back, "pawl.db"))() {
			t.Fatalf("%v came too late: %s", signal, said)
		}
		if left := there(filepath.Join(back, "restoring"))(); left && signal == syscall.SIGINT {
			t.Errorf("%v left something: %s", signal, said)
		}
	}
	succeed(t, "restore", "--from", file, "--data", back)
	want, got := rowsIn(t, dir), rowsIn(t, back)
	for _, table := range []string{"operations", "queues", "history", "audits"} { // What the marks change.
		delete(want, table)
		delete(got, table)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-ledger +restored):\n%s", diff)
	}
}

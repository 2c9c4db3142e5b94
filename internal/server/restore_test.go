package server

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

// lose removes the ledger of a stopped node, and restored brings a backup back as
// "pawl restore" does.
func (w *world) lose() {
	w.Helper()
	for _, name := range []string{"pawl.db", "pawl.db-wal", "pawl.db-shm"} {
		if err := os.RemoveAll(filepath.Join(w.cfg.Data, name)); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) backedUp() (file string) {
	w.Helper()
	file = filepath.Join(w.TempDir(), "backup.db")
	broken := func(v ledger.Violation) error { w.Errorf("the backup breaks %s: %s", v.Rule, v.Detail); return nil }
	if _, err := sqlite.Backup(w.Context(), w.cfg.Data, file, broken, func(string, int64, int64) {}); err != nil {
		w.Fatal(err)
	}
	return file
}

func (w *world) restored(file string) (doubts store.Doubts) {
	w.Helper()
	err := sqlite.Restore(w.Context(), file, w.cfg.Data, func(d *sqlite.Driver, since pawl.Time) (err error) {
		c := store.NewCommitter(d, store.Options{})
		defer func() { _ = c.Close() }()
		doubts, err = store.Doubt(w.Context(), c, d, since)
		return err
	}, func(string, int64, int64) {})
	if err != nil {
		w.Fatal(err)
	}
	return doubts
}

// ids are the webhook-ids of every attempt for an event of an operation.
func (w *world) ids(op, kind string) (ids []string) {
	for _, d := range w.sink.attempts() {
		if d.op == op && d.kind == kind {
			ids = append(ids, d.id)
		}
	}
	return ids
}

// TestRestoreDrill is 4-standards DB-09: submit, deliver, back up, go on, lose,
// restore, reconcile. No job is created twice, whatever became of it after the
// backup, and what is sent again has the webhook-id that it had.
func TestRestoreDrill(t *testing.T) {
	for _, c := range []struct {
		dialect string
		// again says that the provider takes the same key for the same job.
		again bool
	}{{"body-timestamp", false}, {"media-v2", true}} {
		t.Run(c.dialect, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.dialect)
			ep := w.endpoint().at("id")
			endpoint := func(action string) {
				t.Helper()
				r := w.get("/v1/endpoints/" + ep)
				w.want(http.StatusOK, w.call(http.MethodPost, "/v1/endpoints/"+ep+"/"+action, nil, "If-Match", r.header.Get("ETag")))
			}
			ended, wire := w.running("ended")
			w.finish(ended, wire)
			w.told(ended, "operation.running", "operation.succeeded")
			// One runs, with its first event waiting; one is yet to be created.
			endpoint("pause")
			running, onItsWay := w.running("running")
			w.deliveries(running, 1, "pending")
			w.want(http.StatusOK, w.call(http.MethodPost, "/v1/upstreams/up/pause", map[string]any{}))
			waiting := w.submit("waiting")
			backup := w.backedUp()

			// After the backup: the waiting one is created, the running one ends, and
			// another one comes.
			w.want(http.StatusOK, w.call(http.MethodPost, "/v1/upstreams/up/resume", nil))
			endpoint("enable")
			task := w.state(waiting, "running").at("task_id")
			w.finish(running, onItsWay)
			w.told(running, "operation.running", "operation.succeeded")
			w.running("unknown")
			creates := len(w.provider.created())
			w.drain()
			w.lose()

			doubts := w.restored(backup)
			if doubts.Operations != 1 || !slices.Equal(doubts.Upstreams, []string{"up"}) {
				t.Errorf("doubts %+v, want one operation and the upstream up", doubts)
			}
			w.start()
			w.now(ended, "succeeded")
			// Reads go on while creates wait.
			w.provider.say(done(onItsWay.task))
			w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations/"+running+"/reconcile", nil))
			w.state(running, "succeeded")
			w.now(waiting, "pending")
			// Whoever submits again what the backup does not know waits, too.
			second := w.submit("unknown")
			if n := len(w.provider.created()); n != creates {
				t.Fatalf("%d creates before anybody has looked, want %d", n, creates)
			}
			endpoint("enable")
			w.deliveries(running, 2, "delivered")
			// The event that waited in the backup is sent once more, under its id.
			if ids := w.ids(running, "operation.running"); len(ids) != 2 || ids[0] != ids[1] {
				t.Errorf("the event that waited in the backup was sent with the webhook-ids %v", ids)
			}
			if ids := w.ids(ended, "operation.succeeded"); len(ids) != 1 {
				t.Errorf("what was delivered before the backup was sent %d times, want once", len(ids))
			}

			// A person looks, takes the second submission back, and lets creates go on.
			w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations/"+second+"/cancel", nil))
			w.want(http.StatusOK, w.call(http.MethodPost, "/v1/upstreams/up/resume", nil))
			w.state(second, "canceled")
			if !c.again {
				w.state(waiting, "unconfirmed")
				if n := len(w.provider.created()); n != creates {
					t.Errorf("%d creates, want %d", n, creates)
				}
				w.resolve(waiting, "created", task)
			}
			if got := w.state(waiting, "running").at("task_id"); got != task {
				t.Errorf("its task is %s, and was %s", got, task)
			}
			if tasks := w.provider.distinct(); tasks != 4 {
				t.Errorf("the provider made %d tasks, want 4", tasks)
			}
		})
	}
}

// distinct counts the tasks that a provider has made.
func (p *provider) distinct() int {
	seen := map[string]bool{}
	for _, c := range p.created() {
		seen[c.task] = true
	}
	return len(seen)
}

package retention

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/audit"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
	"github.com/pawlhq/pawl/internal/store/postgres"
	"github.com/pawlhq/pawl/internal/store/sqlite"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// sealedLedger is one whose audit has two lines every two hours, the first ten
// hours ago.
type sealedLedger struct {
	*testing.T
	driver store.Driver
	key    audit.Key
	now    pawl.Time
}

// eachDriver runs a test on an own ledger in each driver.
func eachDriver(t *testing.T, test func(*sealedLedger)) {
	opens := map[string]func(*testing.T) (store.Driver, error){
		"memory": func(*testing.T) (store.Driver, error) { return memory.New(memory.Options{}), nil },
		"sqlite": func(t *testing.T) (store.Driver, error) {
			return sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
		},
		"postgres": func(t *testing.T) (store.Driver, error) {
			s, err := pgtest.Start(t.Context())
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { _ = s.Stop() })
			return postgres.Open(t.Context(), s.URL(), postgres.Options{})
		},
	}
	for name, open := range opens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			key, err := audit.KeyOf(make([]byte, 32))
			if err != nil {
				t.Fatal(err)
			}
			l := &sealedLedger{T: t, driver: d, key: key, now: pawl.TimeOf(time.Now())}
			defer d.Close()
			c := store.NewCommitter(d, store.Options{})
			for i := range 10 {
				h := store.NewHeader("someone")
				h.Now = l.now.Add(time.Duration(i/2*2-10)*time.Hour + time.Duration(i)*time.Second)
				if _, err := c.Do(t.Context(), ledger.RecordAccess{Header: h, Tenant: "acme", Action: "event.body"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			test(l)
		})
	}
}

// remover is that of one node.
func (l *sealedLedger) remover() *Remover {
	c := store.NewCommitter(l.driver, store.Options{})
	l.Cleanup(func() { _ = c.Close() })
	return New(Options{
		Store: c, Reader: l.driver, AuditKey: l.key, Settings: config.NewLive(Settings{}),
		Metrics: telemetry.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler),
	})
}

func (l *sealedLedger) seal(r *Remover) {
	if err := r.seal(context.Background(), Settings{}, l.now, nil); err != nil {
		l.Error(err)
	}
}

// found is what the check tells.
func (l *sealedLedger) found(key audit.Key) (all []string) {
	_, err := audit.Check(context.Background(), l.driver, key, func(v ledger.Violation) error {
		all = append(all, v.Row+": "+v.Detail)
		return nil
	})
	if err != nil {
		l.Fatal(err)
	}
	return all
}

func (l *sealedLedger) fits(when string) {
	l.Helper()
	for _, key := range []audit.Key{l.key, nil} {
		if found := l.found(key); found != nil {
			l.Errorf("%s, with key %v: %q", when, key != nil, found)
		}
	}
}

// lines are all of the audit, oldest first.
func (l *sealedLedger) lines() []ledger.Audit {
	rows, err := l.driver.Audits(context.Background(), store.AuditFilter{}, store.Page{Limit: 100, Oldest: true})
	if err != nil {
		l.Fatal(err)
	}
	return rows
}

// byHand changes rows past the ledger's rules.
func (l *sealedLedger) byHand(rows *ledger.Rows) {
	l.Helper()
	if err := l.driver.Update(context.Background(), store.NewID(), func(tx store.Tx) error { return tx.Save(rows) }); err != nil {
		l.Fatal(err)
	}
}

func (l *sealedLedger) replace(gone []ledger.Audit, lines ...ledger.Audit) {
	l.Helper()
	rows := &ledger.Rows{Audits: lines}
	for _, a := range gone {
		rows.Removed.Audits = append(rows.Removed.Audits, a.ID)
	}
	l.byHand(rows)
}

// setSeal puts a seal in the place of that with its number, or takes it away.
func (l *sealedLedger) setSeal(s ledger.AuditSeal, there bool) {
	l.Helper()
	err := l.driver.Update(context.Background(), store.NewID(), func(tx store.Tx) error {
		rows := &ledger.Rows{}
		if err := tx.Load(&ledger.Keys{AuditSeals: []int64{s.Number}}, rows); err != nil {
			return err
		}
		ledger.NewDraft(rows).Run(hand(func(d *ledger.Draft) {
			if d.AuditSeals.Put(s.Number, s); !there {
				d.AuditSeals.Remove(s.Number)
			}
		}), 1)
		return tx.Save(rows)
	})
	if err != nil {
		l.Fatal(err)
	}
}

type hand func(*ledger.Draft)

func (hand) Head() ledger.Header { return ledger.Header{} }
func (hand) Keys(*ledger.Keys)   {}
func (h hand) Decide(d *ledger.Draft) ledger.Outcome {
	h(d)
	return ledger.Outcome{}
}

// TestAuditIsTamperEvident: what is done by hand to sealed lines or to seals is
// told with the seal's number; counts tell most of it without the key.
func TestAuditIsTamperEvident(t *testing.T) {
	eachDriver(t, func(l *sealedLedger) {
		l.seal(l.remover())
		lines := l.lines()
		seals, err := l.driver.AuditSeals(l.Context(), 0, 100)
		if err != nil || len(seals) != 5 || len(lines) != 10 || seals[4].Last != lines[9].ID || seals[2].Lines != 2 {
			l.Fatalf("%d seals of %d lines: %+v, %v", len(seals), len(lines), seals, err)
		}
		l.fits("untouched")

		third := lines[4:6]
		changed, added := third[0], third[0]
		changed.Detail = "nothing"
		added.ID[15]++
		resealed, marked := seals[2], seals[2]
		resealed.SealedAt++
		marked.Removal[0] = 1
		for _, c := range []struct {
			what          string
			do, undo      func()
			told, keyless string
		}{
			{"changed", func() { l.replace(third, changed, third[1]) }, func() { l.replace(third, third...) }, "audit seal 3: the lines between ", ""},
			{"removed", func() { l.replace(third[:1]) }, func() { l.replace(nil, third[0]) }, "audit seal 3: 1 of 2 lines between ", "audit seal 3: 1 of 2"},
			{"added", func() { l.replace(nil, added) }, func() { l.replace([]ledger.Audit{added}) }, "audit seal 3: lines between ", "audit seal 3: lines between "},
			{"swapped", func() { l.replace(third, added, third[1]) }, func() { l.replace([]ledger.Audit{added, third[1]}, third...) }, "audit seal 3: the lines between ", ""},
			{"seal removed", func() { l.setSeal(seals[2], false) }, func() { l.setSeal(seals[2], true) }, "audit seal 4: the seals from 3 on", "audit seal 4: the seals from 3 on"},
			{"first seal removed", func() { l.setSeal(seals[0], false) }, func() { l.setSeal(seals[0], true) }, "audit seal 2: the seals from 1 on", "audit seal 2: the seals from 1 on"},
			{"seal changed", func() { l.setSeal(resealed, true) }, func() { l.setSeal(seals[2], true) }, "audit seal 3: the lines between ", ""},
			{"removed, and marked so", func() { l.replace(third); l.setSeal(marked, true) }, func() { l.replace(nil, third...); l.setSeal(seals[2], true) }, "audit seal 3: its lines were removed, and not by their age", ""},
		} {
			c.do()
			if found := l.found(l.key); len(found) == 0 || !strings.HasPrefix(found[0], c.told) || strings.Contains(found[0], "nothing") {
				l.Errorf("%s: %q, want %q", c.what, found, c.told)
			}
			if found := l.found(nil); (c.keyless == "") != (len(found) == 0) || len(found) > 0 && !strings.HasPrefix(found[0], c.keyless) {
				l.Errorf("%s, without the key: %q, want %q", c.what, found, c.keyless)
			}
			c.undo()
			l.fits("after " + c.what)
		}
	})
}

// TestOldAuditLinesAreRemoved: lines go by whole seals once all of them are old
// enough, and nothing is told of that; what was done to them before is.
func TestOldAuditLinesAreRemoved(t *testing.T) {
	eachDriver(t, func(l *sealedLedger) {
		r := l.remover()
		l.seal(r)
		remove := func(age time.Duration) (n counts) {
			l.Helper()
			if err := r.audits(l.Context(), Settings{Audit: age}, l.now, &n); err != nil {
				l.Fatal(err)
			}
			return n
		}
		// Ten, eight and six hours old.
		if n := remove(5 * time.Hour); n.audits != 6 || len(l.lines()) != 4 {
			l.Errorf("removed %d, left %d", n.audits, len(l.lines()))
		}
		seals, err := l.driver.AuditSeals(l.Context(), 0, 100)
		if err != nil || len(seals) != 3 || seals[0].Number != 3 || !seals[0].Removed() {
			l.Fatalf("%+v, %v", seals, err)
		}
		l.fits("removed by age")

		fourth := l.lines()[:2]
		changed := fourth[0]
		changed.Actor = "nobody"
		l.replace(fourth[:1], changed)
		remove(3 * time.Hour)
		lines := l.lines()
		if at := len(lines) - 1; at != 2 || lines[at].Action != "audit.differs" || lines[at].Subject != "seal 4" {
			l.Errorf("%+v", lines)
		}
		l.fits("removed after a change")
	})
}

// TestTwoNodesSeal: nodes that seal at once make one chain.
func TestTwoNodesSeal(t *testing.T) {
	eachDriver(t, func(l *sealedLedger) {
		var group sync.WaitGroup
		for _, r := range []*Remover{l.remover(), l.remover()} {
			group.Go(func() { l.seal(r) })
		}
		group.Wait()
		seals, err := l.driver.AuditSeals(l.Context(), 0, 100)
		if err != nil || len(seals) != 5 {
			l.Errorf("%d seals, %v", len(seals), err)
		}
		l.fits("sealed by two")
	})
}

// TestACutChainIsTold: the check cannot know of the latest seals once they are
// gone; the node that has seen them tells.
func TestACutChainIsTold(t *testing.T) {
	eachDriver(t, func(l *sealedLedger) {
		var log bytes.Buffer
		r := l.remover()
		r.o.Log = slog.New(slog.NewTextHandler(&log, nil))
		l.seal(r)
		l.seal(r)
		if strings.Contains(log.String(), "by hand") || strings.Count(log.String(), "mac=") != 5 {
			l.Errorf("the log says %s", log.String())
		}
		latest, err := l.driver.LatestAuditSeal(l.Context())
		if err != nil {
			l.Fatal(err)
		}
		l.setSeal(latest, false)
		l.seal(r)
		if !strings.Contains(log.String(), `level=ERROR msg="seals of the audit were removed by hand" latest=4 was=5`) {
			l.Errorf("the log says %s", log.String())
		}
	})
}

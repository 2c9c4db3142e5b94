package capture

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// A server that sends a byte now and then does not keep its slot: what came is
// kept, and each further try waits longer.
func TestTrickle(t *testing.T) {
	for name, cut := range map[string]bool{"one answer": false, "cut after each byte": true} {
		t.Run(name, func(t *testing.T) {
			content := text(100_000)
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				var from int
				_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
				w.Header().Set("ETag", `"v"`)
				if from > 0 {
					w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
					w.WriteHeader(http.StatusPartialContent)
				}
				for ; r.Context().Err() == nil; from++ {
					_, _ = w.Write([]byte(content[from : from+1]))
					_ = http.NewResponseController(w).Flush()
					time.Sleep(20 * time.Millisecond)
					if cut {
						panic(http.ErrAbortHandler)
					}
				}
			})
			g := newRig(t, allowed)
			g.c.window = 200 * time.Millisecond
			begun := time.Now()
			a := g.capture(url, 1)
			if took := time.Since(begun); a.State != pawl.ArtifactPending || a.Tries != 1 || !strings.HasPrefix(a.LastError, "slower than 1024 bytes a second: ") || took > 5*time.Second {
				t.Errorf("%s, %d tries after %v: %s", a.State, a.Tries, took, a.LastError)
			}
			f, err := g.c.spool.open(a.ID)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.size == 0 || f.about.Validator == "" {
				t.Error("nothing is kept")
			}
		})
	}
}

// hanging is a server of files that do not end while the test goes on.
func hanging(t *testing.T) string {
	t.Helper()
	end := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v"`)
		_, _ = w.Write([]byte("abc"))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(end) })
	return url
}

// run has the capturer's loop go on until the test ends.
func (g *rig) run() {
	ctx, stop := context.WithCancel(context.Background())
	var loop sync.WaitGroup
	loop.Go(func() { g.c.Run(ctx, ctx) })
	g.Cleanup(func() { stop(); loop.Wait() })
}

// await waits until what is asked holds.
func (g *rig) await(what string, holds func() bool) {
	g.Helper()
	for begun := time.Now(); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			g.Fatalf("not within ten seconds: %s", what)
		}
	}
}

func (g *rig) holds(tenant, host string) int {
	g.c.slots.mu.Lock()
	defer g.c.slots.mu.Unlock()
	return g.c.slots.held(tenant, host)
}

// A tenant whose servers never come to an end stops nobody else's captures: it
// may have all slots while nobody waits, and half of them otherwise, of all and
// of each host.
func TestOneTenantHoldsNobodyUp(t *testing.T) {
	for name, perHost := range map[string]int{"all slots": 8, "a host's": 4} {
		t.Run(name, func(t *testing.T) {
			slow := hanging(t)
			host := strings.TrimPrefix(slow, "http://")
			g := newRig(t, allowed)
			g.options.Concurrency, g.options.PerHost = 8, perHost
			g.restart()
			g.tenant = "greedy"
			var links []string
			for n := range 20 {
				links = append(links, fmt.Sprintf("%s/%d?Expires=%d", slow, n, time.Now().Add(time.Hour).Unix()))
			}
			g.succeed(links...)
			g.run()
			g.await("the greedy one has all", func() bool { return g.holds("greedy", "") == perHost })
			g.tenant = "modest"
			// Its links are on the same host where that is what is short.
			at := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
			if perHost < 8 {
				g.succeed(slow+"/a", slow+"/b", slow+"/c")
				g.await("half of the host", func() bool { return g.holds("modest", host) == 2 && g.holds("greedy", host) == 2 })
				return
			}
			op := g.succeed(at+"/a", at+"/b")
			g.await("the other's files", func() bool {
				all := g.artifacts(op.ID)
				return all[0].State == pawl.ArtifactCaptured && all[1].State == pawl.ArtifactCaptured
			})
			g.await("the greedy one has all again", func() bool { return g.holds("greedy", "") == 8 })
		})
	}
}

// Tenants take turns, however early the links of one of them end and however
// many it has.
func TestTenantsTakeTurns(t *testing.T) {
	g := newRig(t, allowed)
	g.options.Concurrency = 1
	g.restart()
	for n, tenant := range []string{"a", "b", "c"} {
		g.tenant = tenant
		var links []string
		for i := range 3 {
			links = append(links, fmt.Sprintf("http://127.0.0.1:1/%d%d?Expires=%d", n, i, time.Now().Add(time.Hour*time.Duration(n+1)).Unix()))
		}
		g.succeed(links...)
	}
	var order string
	for range 9 {
		jobs, err := g.c.Claim(t.Context(), time.Now())
		if err != nil || len(jobs) != 1 {
			t.Fatal(len(jobs), err)
		}
		order += jobs[0].artifact.Tenant
		g.c.give(jobs[0].slot)
	}
	if order != "abcabcabc" {
		t.Errorf("turns %s", order)
	}
}

// A link that ends while no slot is left, or no disk, comes to its end all the
// same: a fresh one is asked for.
func TestLinkEndsWithoutASlot(t *testing.T) {
	g := newRig(t, allowed)
	g.options.Concurrency = 1
	full := false
	g.options.Full = func() bool { return full }
	g.restart()
	g.succeed(hanging(t) + "/x")
	jobs, err := g.c.Claim(t.Context(), time.Now())
	if err != nil || len(jobs) != 1 {
		t.Fatal(len(jobs), err)
	}
	for _, full = range []bool{false, true} {
		g.tenant = fmt.Sprint("full-", full)
		op := g.succeed(fmt.Sprintf("http://127.0.0.1:1/x?Expires=%d", time.Now().Unix()))
		if n := g.turn(); n != 0 {
			t.Fatalf("%d claims", n)
		}
		a := g.artifacts(op.ID)[0]
		if a.Attempts != 0 || !a.Waiting || a.Fresh != 1 || !g.operation(op.ID).WantsLinks {
			t.Errorf("%s after %d tries: %s", a.State, a.Attempts, a.LastError)
		}
	}
}

package scale_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/scale"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

const adminKey = "pawl_sk_scale0123456789abcdef0123456789abcdef"

// TestEveryPageIsKnown holds that every list and every page that the API describes
// is one that the measurement asks for, with all of its filters, and that each is
// answered over a ledger that was filled.
func TestEveryPageIsKnown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	text := "listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\ndata: " + dir + "\negress: {allow: [127.0.0.0/8]}\nupstreams:\n" + scale.Settings()
	cfg, err := config.Parse("pawl.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	serve := func() (*server.Node, func()) {
		n, err := server.Start(t.Context(), cfg, server.Options{AdminKey: adminKey})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		return n, func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	_, stop := serve()
	stop()
	d, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := scale.Fill(t.Context(), d, t.TempDir(), 5*scale.Lives, nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	n, stop := serve()
	defer stop()
	site := scale.Site{API: n.APIURL(), Admin: n.AdminURL(), Key: adminKey, Filled: time.Now()}
	if err := site.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	paths, err := site.Paths(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		a, err := site.Load(t.Context(), path)
		if err != nil {
			t.Fatal(path, err)
		}
		want := http.StatusOK
		if strings.Contains(path, "/search?q=nosuch") {
			want = http.StatusNotFound
		}
		if a.Status != want && a.Status != http.StatusSeeOther {
			t.Errorf("%s answers %d: %.200s", path, a.Status, a.Body)
		}
	}
}

package client_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/pawltest"
)

// film is a provider's file, and where it is.
func film(t *testing.T) (content []byte, link string) {
	t.Helper()
	content = bytes.Repeat([]byte("frame "), 100_000)
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "video/mp4")
		http.ServeContent(w, r, "film.mp4", time.Unix(1790000000, 0), bytes.NewReader(content))
	}))
	t.Cleanup(files.Close)
	return content, files.URL + "/film.mp4"
}

// The file of a result is captured, and comes whole and checked from the node.
func TestDownloadFromANode(t *testing.T) {
	t.Parallel()
	p, ctx := pawltest.New(t, pawltest.Options{}), t.Context()
	content, link := film(t)
	p.Upstream.Script(pawltest.Script{Result: map[string]string{"url": link}, Cost: "0.1"})
	op, err := p.Client.Run(ctx, job("a film"))
	if err != nil || op.State != pawl.Succeeded {
		t.Fatal(op.State, err)
	}
	p.Wait(pawl.TypeArtifacts, op.ID)
	files, err := p.Client.Artifacts(ctx, op.ID)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	sum := sha256.Sum256(content)
	a := files[0]
	if a.State != "captured" || a.Size != int64(len(content)) || a.SHA256 != hex.EncodeToString(sum[:]) || a.ContentType != "video/mp4" || !a.CapturedAt.IsSet() {
		t.Errorf("%+v", a)
	}
	var got bytes.Buffer
	if err := p.Client.Download(ctx, a, &got); err != nil || !bytes.Equal(got.Bytes(), content) {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
	a.SHA256 = strings.Repeat("0", 64)
	if err := p.Client.Download(ctx, a, io.Discard); !errors.Is(err, client.ErrDamaged) {
		t.Error(err)
	}
	if op, err = p.Client.Operation(ctx, op.ID); err != nil || len(op.Artifacts) != 1 || strings.Contains(string(op.Result), link) {
		t.Errorf("the result shows the provider's link: %s %v", op.Result, err)
	}
}

// A result that is held is there for nobody until it is released.
func TestHoldAndRelease(t *testing.T) {
	t.Parallel()
	p, ctx := pawltest.New(t, pawltest.Options{}), t.Context()
	_, link := film(t)
	p.Upstream.Script(pawltest.Script{Result: map[string]string{"url": link}, Cost: "0.1"})
	s := job("a film")
	s.Hold = true
	op, err := p.Client.Run(ctx, s)
	if err != nil || op.State != pawl.Succeeded || op.Release != "hold" || op.Result != nil || !op.Cost.Settled {
		t.Fatalf("%+v %v", op, err)
	}
	if files, err := p.Client.Artifacts(ctx, op.ID); err != nil || len(files) != 0 {
		t.Error(files, err)
	}
	for range 2 {
		released, err := p.Client.Release(ctx, op.ID, "the rights are checked")
		if err != nil || released.Release != "released" || released.Result == nil {
			t.Fatalf("%+v %v", released, err)
		}
	}
	p.Wait(pawl.TypeReleased, op.ID)
	p.Wait(pawl.TypeArtifacts, op.ID)
	if files, err := p.Client.Artifacts(ctx, op.ID); err != nil || len(files) != 1 || p.Client.Download(ctx, files[0], io.Discard) != nil {
		t.Error(files, err)
	}
	open, err := p.Client.Run(ctx, job("another"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Client.Release(ctx, open.ID, ""); !errors.Is(err, &client.Problem{Reason: "not_held"}) {
		t.Error(err)
	}
}

// An event of a generic source is done once its receiver reports it, and not when
// it was delivered.
func TestCompleteDelivery(t *testing.T) {
	t.Parallel()
	p, ctx := pawltest.New(t, pawltest.Options{Types: []string{"none.of.these"}}), t.Context()
	took := make(chan string, 10)
	const body = `{"type":"course.completed","learner":"L-1"}`
	door := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if text, _ := io.ReadAll(r.Body); string(text) != body {
			t.Errorf("got %s", text)
		}
		took <- r.Header.Get("pawl-delivery")
	}))
	t.Cleanup(door.Close)
	ep, err := p.Client.CreateEndpoint(ctx, client.NewEndpoint{URL: door.URL, Content: "original", CompleteWithin: time.Hour})
	if err != nil || ep.Content != "original" || ep.CompleteWithin == "" {
		t.Fatalf("%+v %v", ep, err)
	}
	if status := p.Send("c-1", []byte(body)); status != http.StatusAccepted {
		t.Fatal(status)
	}
	id := <-took
	if status := p.Send("c-1", []byte(body)); status != http.StatusOK {
		t.Error("a repeat:", status)
	}
	var d client.Delivery
	for d.State != "delivered" {
		if d, err = p.Client.Delivery(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	waiting, err := client.Collect(p.Client.Events(ctx, client.EventFilter{Source: pawltest.Source, State: "waiting"}), 0)
	if err != nil || len(waiting) != 1 || waiting[0].ID != d.EventID || waiting[0].State != "waiting" || !d.CompleteBy.IsSet() {
		t.Fatalf("%+v %+v %v", waiting, d, err)
	}
	for range 2 {
		if d, err = p.Client.CompleteDelivery(ctx, id); err != nil || !d.CompletedAt.IsSet() {
			t.Errorf("%+v %v", d, err)
		}
	}
	if e, err := p.Client.Event(ctx, d.EventID); err != nil || e.State != "done" || string(e.Body) != body || e.ExternalID != "c-1" {
		t.Errorf("%+v %v", e, err)
	}
}

package server

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/capture"
	"github.com/pawlhq/pawl/internal/ledger"
)

// capture opens the blob store and makes what fetches into it, and gives the
// links by which files are given out.
func (n *Node) capture(ctx context.Context, key []byte) (links capture.Links, err error) {
	a := n.cfg.Artifacts
	dir, bucket, _ := a.Place(n.cfg.Data)
	if bucket == "" {
		n.files, err = capture.OpenFolder(dir)
	} else {
		n.files, err = capture.OpenBucket(ctx, bucket)
	}
	if err != nil {
		return links, fmt.Errorf("artifacts.store: %w", err)
	}
	n.capturer, err = capture.New(capture.Options{
		Store: n.store, Reader: n.driver, Client: n.client, Upstreams: n.upstreams, Files: n.files, Spool: filepath.Join(n.cfg.Data, "spool"),
		MaxSize: int64(a.MaxSize), Concurrency: a.Concurrency, PerHost: a.PerHost, Full: n.disk.full, Metrics: n.metrics, Traces: n.traces, Log: n.log,
		Agent: "Pawl/" + n.version,
	})
	return capture.NewLinks(n.PublicURL(), a.LinkTTL, key), err
}

// captures wakes the capture where a commit has left something to fetch.
func (n *Node) captures(rows *ledger.Rows) {
	if n.capturer == nil {
		return
	}
	for _, change := range rows.Artifacts.Changes() {
		if change.Now.State == pawl.ArtifactPending && !change.Now.Leased {
			n.capturer.Wake()
			return
		}
	}
}

package server

import (
	"path/filepath"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/capture"
	"github.com/pawlhq/pawl/internal/ledger"
)

// capture opens the blob store and makes what fetches into it, and gives the
// links by which files are given out.
func (n *Node) capture(key []byte) (links capture.Links, err error) {
	a := n.cfg.Artifacts
	dir, memory, _ := a.Place(n.cfg.Data)
	if n.files, err = capture.OpenFiles(dir, memory); err != nil {
		return links, err
	}
	n.capturer, err = capture.New(capture.Options{
		Store: n.store, Reader: n.driver, Client: n.client, Upstreams: n.upstreams, Files: n.files, Spool: filepath.Join(n.cfg.Data, "spool"),
		MaxSize: int64(a.MaxSize), Concurrency: a.Concurrency, PerHost: a.PerHost, Full: n.disk.full, Metrics: n.metrics, Log: n.log,
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

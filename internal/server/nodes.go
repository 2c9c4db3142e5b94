package server

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

// alone is the roster of a ledger that one node serves: the file lock lets no
// other in. The ledger's clock is that of the machine.
type alone struct {
	mu   sync.Mutex
	node store.Node
}

// Beat notes the node's sign of life.
func (a *alone) Beat(_ context.Context, n store.Node) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	n.SeenAt = pawl.TimeOf(time.Now())
	if n.StartedAt = a.node.StartedAt; n.StartedAt == 0 {
		n.StartedAt = n.SeenAt
	}
	a.node = n
	return nil
}

// Leave does nothing: nobody is left to ask.
func (a *alone) Leave(context.Context, pawl.ID) error { return nil }

// Nodes is the one node.
func (a *alone) Nodes(context.Context) ([]store.Node, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return []store.Node{a.node}, nil
}

// present is this node as it is now.
func (n *Node) present() store.Node {
	host, _ := os.Hostname()
	creates, reads := n.worker.UnderWay()
	return store.Node{
		ID: n.id, Host: host, Address: n.APIURL(), Version: n.version, Draining: n.ready.drains.Load(), Lanes: int64(n.store.Count()),
		Waiting: int64(n.store.Waiting()), Creates: int64(creates), Reads: int64(reads),
		Deliveries: int64(n.outbox.UnderWay()), Captures: int64(n.capturer.UnderWay()),
	}
}

// beat tells that this node lives. A ledger that does not take it is told of by
// whoever needs the ledger.
func (n *Node) beat(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, store.NodeBeat/2)
	defer cancel()
	_ = n.roster.Beat(limited, n.present())
}

// beats tells so every while until the context ends.
func (n *Node) beats(ctx context.Context) {
	ticker := time.NewTicker(store.NodeBeat)
	defer ticker.Stop()
	for {
		n.beat(ctx)
		n.countNodes(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// countNodes shows how many serve the ledger, and in which state.
func (n *Node) countNodes(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, store.NodeBeat/2)
	defer cancel()
	nodes, err := n.roster.Nodes(limited)
	if err != nil {
		return
	}
	by := map[string]float64{"alive": 0, "draining": 0, "silent": 0}
	for _, one := range nodes {
		by[one.State()]++
	}
	for state, count := range by {
		n.metrics.Nodes.WithLabelValues(state).Set(count)
	}
}

// nodes are all that serve the ledger, this one as it is now.
func (n *Node) nodes(ctx context.Context) ([]store.Node, error) {
	n.beat(ctx)
	return n.roster.Nodes(ctx)
}

// leave takes this node off the roster, if it was ever on it.
func (n *Node) leave() {
	if n.worker == nil {
		return
	}
	limited, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = n.roster.Leave(limited, n.id)
}

// Package server builds a running node from a configuration and runs it until
// it is told to stop: open the ledger, listen, work, drain.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/api"
	"github.com/pawlhq/pawl/internal/capture"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/console"
	"github.com/pawlhq/pawl/internal/desk"
	"github.com/pawlhq/pawl/internal/dialect"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/intake"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/outbox"
	"github.com/pawlhq/pawl/internal/replay"
	"github.com/pawlhq/pawl/internal/retention"
	"github.com/pawlhq/pawl/internal/sender"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/internal/systemd"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
	"github.com/pawlhq/pawl/internal/vault"
	"github.com/pawlhq/pawl/internal/watch"
	"github.com/pawlhq/pawl/internal/work"
)

// Options are what a node is given beside its configuration.
type Options struct {
	// Version is the program's, as it tells others.
	Version string
	// Log takes the node's log; nil drops it.
	Log *slog.Logger
	// AdminKey, if set, is the admin key of this start (2-contracts §6).
	AdminKey string
	// Notice is told what a person must know of the start, such as where the
	// admin key was written. Nil drops it.
	Notice func(string)
	// Traces makes the node's spans; nil makes none.
	Traces *telemetry.Traces
	// Systemd is told how the node fares; nil tells nobody.
	Systemd *systemd.Notifier
	// Listen and Dial are the network of a node inside a test; nil is the real one.
	Listen func(network, address string) (net.Listener, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)

	wires wires
}

// wires are the node's ways out of the process; a nil one is the real one.
// Tests put in a network with virtual time and a ledger that fails.
type wires struct {
	listen func(network, address string) (net.Listener, error)
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	// free tells the free bytes of a folder's disk.
	free   func(dir string) (uint64, error)
	ledger func(store.Driver) store.Driver
}

// Node is a running Pawl. Take it from [Start]; [Node.Run] returns when it has
// stopped.
type Node struct {
	cfg      config.Config
	version  string
	log      *slog.Logger
	registry *prometheus.Registry
	metrics  *telemetry.Metrics
	traces   *telemetry.Traces
	systemd  *systemd.Notifier
	driver   store.Driver
	store    *store.Lanes
	vault    *vault.Vault
	watch    *watch.Hub
	desk     *desk.Desk
	rewrap   *vault.Rewrapper
	client   *egress.Client
	worker   *work.Worker
	outbox   *outbox.Outbox
	capturer *capture.Capturer
	replayer *replay.Runner
	files    *capture.Files
	remover  *retention.Remover
	keeping  *config.Live[retention.Settings]
	scrub    func(context.Context) error
	ready    *readiness
	wires    wires

	// loaded is the configuration in force, cfg that of the start.
	loaded    atomic.Pointer[config.Config]
	reloading sync.Mutex
	upstreams *upstream.Live
	senders   *sender.Live
	policy    *egress.Policy
	disk      *diskGuard
	hindrance *hindranceWatch
	roster    store.Roster
	id        pawl.ID
	native    api.Handler
	fronts    *dialect.Fronts
	console   *console.Console

	apiListener, adminListener net.Listener
	apiServer, adminServer     *http.Server
}

// Start opens the ledger and the listeners and makes everything that works on
// them, without serving yet. What it opened is closed again if it fails.
func Start(ctx context.Context, cfg config.Config, o Options) (_ *Node, err error) {
	n := &Node{cfg: cfg, version: o.Version, log: o.Log, traces: o.Traces, systemd: o.Systemd, registry: prometheus.NewRegistry(), ready: newReadiness(), roster: new(alone), id: store.NewID(), wires: o.wires}
	n.loaded.Store(&cfg)
	if o.Listen != nil {
		n.wires.listen, n.wires.dial = o.Listen, o.Dial
	}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if err := checkAdminKey(o.AdminKey); err != nil {
		return nil, err
	}
	upstreams, senders, err := prepared(cfg)
	if err != nil {
		return nil, err
	}
	if err := n.open(ctx, upstreams, senders); err != nil {
		return nil, err
	}
	key, err := n.unlock(ctx)
	if err != nil {
		return nil, err
	}
	if err := n.listen(); err != nil {
		return nil, err
	}
	if err := n.anonymousAllowed(cfg); err != nil {
		return nil, err
	}
	if err := n.firstThings(ctx, o); err != nil {
		return nil, err
	}
	if err := n.build(ctx, upstreams, senders, key); err != nil {
		return nil, err
	}
	if n.cfg.Shared() {
		return n, nil // Other nodes hold leases: those of the dead run out.
	}
	// What the former life of this ledger had leased is free: the file lock
	// proves it dead.
	return n, errors.Join(n.worker.FreeLeases(ctx), n.outbox.FreeLeases(ctx), n.capturer.FreeLeases(ctx), n.replayer.FreeLeases(ctx))
}

func (n *Node) open(ctx context.Context, upstreams upstream.Set, senders sender.Set) error {
	n.metrics = telemetry.NewMetrics(n.registry)
	n.measure(upstreams, senders)
	driver, err := n.openLedger(ctx)
	if err != nil {
		return err
	}
	n.driver = driver
	if err := n.gap(ctx, driver); err != nil {
		return err
	}
	if n.wires.ledger != nil {
		n.driver = n.wires.ledger(driver)
	}
	n.watch = watch.New(watch.Options{
		Versions: driver.Versions, Sequences: n.sequences, Waiting: func(waiters int) { n.metrics.Waiters.Set(float64(waiters)) }, Log: n.log,
	})
	n.store = store.NewLanes(n.driver, n.lanes(), store.Options{Log: n.log, OnCommit: n.committed})
	return nil
}

// gap shows since when nobody has listened: what finished meanwhile may not have
// been told, and is read.
func (n *Node) gap(ctx context.Context, driver Ledger) error {
	last, err := driver.LastCommit(ctx)
	if err != nil || !last.IsSet() {
		return err
	}
	n.metrics.LastCommit.Set(float64(last) / 1e6)
	n.log.Info("the ledger is open again: what became due meanwhile is read first", "last_commit", last.String(), "gap", time.Since(last.Std()).Round(time.Second).String())
	return nil
}

// unsigned tells of upstreams whose callbacks nobody could verify.
func (n *Node) unsigned(upstreams upstream.Set) {
	for _, name := range slices.Sorted(maps.Keys(upstreams)) {
		if !upstreams[name].Worked() && !upstreams[name].Policy().Callbacks {
			n.log.Warn("an upstream has no active webhook_keys: it is asked for no callbacks and is only read", "upstream", name)
		}
	}
}

// committed wakes the loops whose queues a commit has made ready.
func (n *Node) committed(c store.Commit) {
	n.metrics.BatchCommands.Observe(float64(c.Commands))
	n.metrics.CommitSeconds.Observe(c.Took.Seconds())
	n.confirmed(c.Rows)
	n.watch.Committed(c.Rows)
	if n.desk != nil {
		n.desk.Committed(c.Rows)
	}
	for id, change := range c.Rows.Queues.Changes() {
		resumed := change.Now.PausedUntil < change.Was.PausedUntil
		if change.Existed && change.Now.Ready() >= change.Was.Ready() && !resumed {
			continue
		}
		if id.Kind == ledger.DeliveryQueue && n.outbox != nil {
			n.outbox.Wake()
		}
		if id.Kind != ledger.DeliveryQueue && n.worker != nil {
			n.worker.Wake()
		}
	}
	n.captures(c.Rows)
	n.erasing(c.Rows)
	n.replays(c.Rows)
}

func (n *Node) listen() (err error) {
	listen := n.wires.listen
	if listen == nil {
		listen = net.Listen
	}
	if n.apiListener, err = listen("tcp", n.cfg.Listen); err != nil {
		return fmt.Errorf("listen: %w; choose another address with --listen", err)
	}
	if n.adminListener, err = listen("tcp", n.cfg.AdminListen); err != nil {
		return fmt.Errorf("admin listen: %w; choose another address with --admin-listen", err)
	}
	return nil
}

// APIURL is where the API and the hooks are served.
func (n *Node) APIURL() string { return "http://" + n.apiListener.Addr().String() }

// AdminURL is where the console, metrics and health are served.
func (n *Node) AdminURL() string { return "http://" + n.adminListener.Addr().String() }

// PublicURL is what callback addresses are made from (7-rules R47).
func (n *Node) PublicURL() string {
	if n.cfg.PublicURL != "" {
		return n.cfg.PublicURL
	}
	return n.APIURL()
}

func (n *Node) build(ctx context.Context, upstreams upstream.Set, senders sender.Set, key []byte) error {
	policy, err := egress.NewPolicy(n.cfg.Egress.Allow...)
	if err != nil {
		return fmt.Errorf("egress.allow: %w", err)
	}
	policy.Forbid(addrPort(n.apiListener), addrPort(n.adminListener))
	n.policy, n.upstreams, n.senders = policy, upstream.NewLive(upstreams), sender.NewLive(senders)
	n.client = egress.NewClient(policy, egress.Options{Dial: n.wires.dial, Traces: n.traces})
	n.unsigned(upstreams)
	n.disk = n.guard()
	callbacks := upstream.NewCallbacks(n.PublicURL(), key)
	n.worker = work.New(work.Options{
		Store: n.store, Reader: n.driver, Client: n.client, Upstreams: n.upstreams, Callbacks: callbacks, Metrics: n.metrics, Traces: n.traces, Log: n.log,
		Waiting: n.store.Waiting, ReviewDue: func(r pawl.Reason) time.Duration { return n.loaded.Load().Reviews.Within(r) },
	})
	n.outbox = outbox.New(outbox.Options{Store: n.store, Reader: n.driver, Client: n.client, Senders: n.senders, Vault: n.vault, Metrics: n.metrics, Traces: n.traces, Log: n.log, Version: n.version})
	n.replayer = replay.New(replay.Options{Store: n.store, Reader: n.driver, Upstreams: n.upstreams, Senders: n.senders, Metrics: n.metrics, Log: n.log})
	n.desk = desk.New(desk.Options{Store: n.store, Reader: n.driver, Upstreams: n.upstreams, Metrics: n.metrics, Log: n.log})
	links, err := n.capture(ctx, key)
	if err != nil {
		return err
	}
	if err := n.retain(key); err != nil {
		return err
	}
	arrivals := telemetry.NewArrivals(n.metrics, time.Now())
	n.native = api.New(api.Options{
		Store: n.store, Reader: n.driver, Upstreams: n.upstreams, Egress: policy, Vault: n.vault, Rewrap: n.rewrap, Watch: n.watch, Desk: n.desk, Window: n.cfg.Idempotency.Window,
		ReviewDue: func(r pawl.Reason) time.Duration { return n.loaded.Load().Reviews.Within(r) },
		Sources:   senders, Arrivals: arrivals, PageKey: key, Version: n.version, Log: n.log, Full: n.disk.full,
		ArtifactURL: links.URL, Lists: &api.Lists{Client: n.client, Turn: n.worker.Turn}, Nodes: n.nodes,
		Health: func(upstreams []string) api.Health { return n.console.Health(upstreams) },
	})
	n.fronts = dialect.New(n.native.Fronts(), frontSettings(n.cfg.Fronts))
	hooks := intake.New(intake.Options{
		Store: n.store, Upstreams: n.upstreams, Senders: n.senders, Callbacks: callbacks, Metrics: n.metrics, Arrivals: arrivals, Log: n.log, Full: n.disk.full,
	})
	n.apiServer = n.httpServer(n.public(n.native, hooks, capture.Server{Links: links, Files: n.files, Reader: n.driver, Log: n.log}))
	n.console = console.New(console.Options{API: n.native, Watch: n.watch, Metrics: n.registry, Version: n.version, Log: n.log})
	n.adminServer = n.httpServer(n.admin())
	return nil
}

func addrPort(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }

// maxHead is where net/http stops reading a request line with its headers, in
// bytes, give or take 4 KiB. It is above strict.MaxHead, so that what is a little
// too large is refused by the handlers, in their own form.
const maxHead = 2 * strict.MaxHead

// httpServer has limits everywhere: Go's zero values mean none (OP-08).
func (n *Node) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 60 * time.Second, WriteTimeout: 90 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHead,
		ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelWarn),
	}
}

// Package pawltest runs a Pawl inside a test: a real node on a ledger in a
// temporary folder, a virtual upstream that does what the test says, and a
// receiver of verified events. [New] starts all of it and the test's end stops
// it:
//
//	p := pawltest.New(t, pawltest.Options{})
//	p.Upstream.Script(pawltest.Script{Result: map[string]any{"url": "https://cdn.example/1.mp4"}, Cost: "0.12"})
//	op, err := p.Client.Submit(ctx, client.Submission{Upstream: pawltest.Name, Model: "m", Input: map[string]any{"prompt": "a red kite"}})
//	event := p.Wait(pawl.TypeSucceeded, op.ID)
//
// The program under test gets [Pawl.URL] and [Pawl.Key]. With [Options.Virtual]
// everything runs on connections in memory, for tests inside a bubble of package
// testing/synctest, where hours pass at once.
package pawltest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/webhook"
)

// What every Pawl of this package has.
const (
	// Name is the upstream's.
	Name = "test"
	// Workers is the upstream whose operations own workers do, see [client.Worker].
	Workers = "workers"
	// Source is a generic source of the tenant's, see [Pawl.Send].
	Source = "source"
	// Tenant is the tenant's; it has 100 USD.
	Tenant = "default"
)

// adminKey is valid in one test only.
const adminKey = "pawl_sk_pawltest0123456789abcdef0123456789"

// Options change what [New] starts; the zero value is the usual.
type Options struct {
	// Virtual puts everything on connections in memory. New must then be called
	// inside a bubble of testing/synctest, and only what dials with
	// [Pawl.DialContext] reaches the node.
	Virtual bool
	// Types are those of the events that the receiver gets; all but
	// operation.progress if empty.
	Types []string
	// Patience is how long [Pawl.Wait] waits; 30 s if zero.
	Patience time.Duration
	// Lease is how long an own worker may be silent, from 1 s on; 1 min if zero.
	Lease time.Duration
	// Log takes the node's log; nil drops it.
	Log *slog.Logger
}

// Pawl is a running node with what is around it. Its methods are safe for
// concurrent use, but for [Pawl.Restart].
type Pawl struct {
	// URL is the API's address and Key an API key of the tenant with all scopes
	// but admin.
	URL string
	Key client.Secret
	// Client uses them, Admin has the scope admin.
	Client, Admin *client.Client
	// Upstream is the provider behind the node, Receiver the tenant's endpoint.
	Upstream *Upstream
	Receiver *Receiver
	// WebhookSecret signs what is sent to a callback_url of Client's, SourceSecret
	// what the generic source sends.
	WebhookSecret, SourceSecret client.Secret

	t       testing.TB
	o       Options
	network *network
	cfg     config.Config
	stop    context.CancelFunc
	stopped chan error
}

// New starts a Pawl, which ends with the test. It fails the test where that
// cannot be done.
func New(t testing.TB, o Options) *Pawl {
	t.Helper()
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	p := &Pawl{t: t, o: o}
	if o.Lease <= 0 {
		p.o.Lease = time.Minute
	}
	if o.Virtual {
		p.network = newNetwork()
	}
	secret, err := webhook.NewSecret(nil)
	p.must(err)
	callbacks, err := webhook.NewSecret(nil)
	p.must(err)
	source, err := webhook.NewSecret(nil)
	p.must(err)
	p.SourceSecret = client.Secret(source)
	p.Upstream, err = newUpstream(callbacks, p.http())
	p.must(err)
	t.Cleanup(p.Upstream.close)
	p.Receiver, err = newReceiver(secret)
	p.must(err)
	provider, sink := p.serve(p.Upstream), p.serve(p.Receiver)
	p.cfg, err = config.Parse("pawltest.yaml", fmt.Appendf(nil, `
listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
data: %q
drain: 2s
egress: {allow: [127.0.0.0/8]}
tenants: {%s: {account: {currency: USD, credit: "100"}}}
upstreams:
  %s: {preset: sim, base_url: %q, key: %q, webhook_keys: [%q], currency: USD, deadline: 1h, timeout: 5s,
       read: {first: 500ms, factor: 1.5, max: 2s, rate: 1000}}
  %s: {preset: worker, currency: USD, deadline: 1h, lease: %q}
sources:
  %s: {scheme: standard-webhooks, secrets: [%q], tenant: %s}
`, filepath.Join(t.TempDir(), "data"), Tenant, Name, provider, providerKey, callbacks, Workers, p.o.Lease.String(), Source, source, Tenant), func(string) (string, bool) { return "", false })
	p.must(err)
	p.start()
	t.Cleanup(p.end)
	p.people(sink, secret)
	return p
}

// people makes the clients and the endpoint.
func (p *Pawl) people(sink, secret string) {
	p.t.Helper()
	ctx := context.WithoutCancel(p.t.Context())
	var err error
	p.Admin, err = client.New(client.Options{Server: p.URL, Key: adminKey, HTTP: p.http()})
	p.must(err)
	key, err := p.Admin.CreateKey(ctx, client.NewAPIKey{Tenant: Tenant, Name: "pawltest", Scopes: []string{"submit", "read", "operate", "payloads"}})
	p.must(err)
	p.Key, p.WebhookSecret = key.Secret, key.WebhookSecret
	p.Client, err = client.New(client.Options{Server: p.URL, Key: p.Key, HTTP: p.http()})
	p.must(err)
	endpoint, err := p.Client.CreateEndpoint(ctx, client.NewEndpoint{
		URL: sink, Types: p.o.Types, Secret: client.Secret(secret),
		Policy: &client.Policy{Schedule: []string{"0s", "100ms", "200ms", "500ms", "1s", "2s", "5s", "10s"}},
	})
	p.must(err)
	p.Receiver.endpoint = endpoint.ID
}

func (p *Pawl) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal("pawltest: ", err)
	}
}

// Restart stops the node and starts it again on the same ledger and address.
func (p *Pawl) Restart() {
	p.t.Helper()
	p.halt()
	p.start()
}

func (p *Pawl) start() {
	p.t.Helper()
	o := server.Options{Version: "pawltest", Log: p.o.Log, AdminKey: adminKey}
	if p.network != nil {
		o.Listen, o.Dial = p.network.listen, p.network.dial
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(p.t.Context()))
	node, err := server.Start(ctx, p.cfg, o)
	if err != nil {
		stop()
		p.t.Fatal("pawltest: ", err)
	}
	p.stop, p.stopped = stop, make(chan error, 1)
	go func() { p.stopped <- node.Run(ctx) }()
	p.URL = node.APIURL()
	// Callback addresses hold the bound port: a restart keeps it.
	p.cfg.Listen = p.URL[len("http://"):]
}

func (p *Pawl) halt() {
	if p.stop == nil {
		return
	}
	p.stop()
	if err := <-p.stopped; err != nil {
		p.t.Error("pawltest: the node did not stop cleanly: ", err)
	}
	p.stop = nil
}

// end stops the node. A delivery that does not verify is a fault of Pawl's, and
// one of the test's that sent something else there.
func (p *Pawl) end() {
	p.halt()
	for _, refused := range p.Receiver.refusals() {
		p.t.Error("pawltest: the receiver got what does not verify: ", refused)
	}
}

// DialContext connects to the node, and to whatever else this Pawl serves: it is
// for an [http.Transport] of a program under test where Options.Virtual is set,
// and works without it too.
func (p *Pawl) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if p.network != nil {
		return p.network.dial(ctx, network, address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// http is a client of this world. Its idle connections end with the test.
func (p *Pawl) http() *http.Client {
	transport := &http.Transport{DialContext: p.DialContext, MaxIdleConnsPerHost: 32}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// serve serves on an address of its own until the test ends.
func (p *Pawl) serve(h http.Handler) string {
	p.t.Helper()
	listen := net.Listen
	if p.network != nil {
		listen = p.network.listen
	}
	l, err := listen("tcp", "127.0.0.1:0")
	p.must(err)
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }()
	p.t.Cleanup(func() { _ = s.Close() })
	return "http://" + l.Addr().String()
}

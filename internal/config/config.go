// Package config is what an operator may set: one struct, read from one YAML
// file, checked whole before anything starts. Reading is strict: an unknown
// key, a duplicate, an unset variable or a bad value stops the start with the
// file, the line, the key and what to write instead (2-contracts §6). The
// values themselves are never repeated in an error, since any of them may hold
// a secret.
//
// docs/configuration.md lists every key; a test holds it against these types.
package config

import (
	"net/netip"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
)

// Config is the whole configuration of a node. It is plain data: safe to copy
// and to read concurrently, not to be changed once a node uses it.
type Config struct {
	// Listen is the address of the API and the inbound hooks; port 0 is allowed.
	Listen string `yaml:"listen"`
	// AdminListen is the address of metrics and health.
	AdminListen string `yaml:"admin_listen"`
	// PublicURL is what callback URLs are made from; empty means the bound API
	// address (7-rules R47).
	PublicURL string `yaml:"public_url"`
	// Data is the folder of the ledger, the keys and the artifacts, relative to
	// the working directory.
	Data string `yaml:"data"`
	// Database chooses the store: not set and "sqlite" both mean SQLite in Data, a
	// postgres:// URL means PostgreSQL, which several nodes may share. The URL may
	// hold a password.
	Database Secret `yaml:"database"`
	// Secrets is the URL of the key that wraps the secrets in the ledger; not set
	// means the key in the file secret.key of Data.
	Secrets Secret `yaml:"secrets"`
	// FormerSecrets are keys from before that still open what they have wrapped.
	FormerSecrets []Secret `yaml:"former_secrets"`
	// Egress is what outgoing requests may reach beyond public addresses.
	Egress Egress `yaml:"egress"`
	// Reviews is about what people must decide.
	Reviews Reviews `yaml:"reviews"`
	// Idempotency is about the keys of callers.
	Idempotency Idempotency `yaml:"idempotency"`
	// Upstreams are the providers by name; each is also a source of that name.
	Upstreams map[string]Upstream `yaml:"upstreams"`
	// Sources are further senders of inbound events by name.
	Sources map[string]Source `yaml:"sources"`
	// Tenants are made at the start where they do not exist yet (7-rules R51).
	Tenants map[string]Tenant `yaml:"tenants"`
	// Fronts are about the ways in of other dialects.
	Fronts Fronts `yaml:"fronts"`
	// Drain is how long a stopping node may take.
	Drain time.Duration `yaml:"drain"`
	// Artifacts is where and how result files are kept.
	Artifacts Artifacts `yaml:"artifacts"`
	// Disk guards the ledger against a full disk.
	Disk Disk `yaml:"disk"`
	// Retention is how long what is kept.
	Retention Retention `yaml:"retention"`

	origin *origin
}

// Shared reports whether the ledger is in a database that other nodes may have
// open too.
func (c Config) Shared() bool {
	return strings.HasPrefix(c.Database.Reveal(), "postgres://") || strings.HasPrefix(c.Database.Reveal(), "postgresql://")
}

// Egress is the part of the configuration that the dial guard reads.
type Egress struct {
	// Allow names private ranges that may be reached, by plain http too. Pawl's
	// own listeners and metadata addresses stay forbidden.
	Allow []netip.Prefix `yaml:"allow"`
}

// Disk is when nothing new is taken in any more (1-product I7).
type Disk struct {
	// MinFree is how much must be free on the ledger's disk for submits, inbound
	// and published events to be taken; 0 takes them whatever is free.
	MinFree Size `yaml:"min_free"`
}

// Retention is how long content is kept (1-product I8): that of an operation from
// its end or the last change after it, that of an event of no operation from its
// receipt. What tells what happened stays.
type Retention struct {
	// Inputs is what was asked for, Results are results and their files.
	Inputs  time.Duration `yaml:"inputs"`
	Results time.Duration `yaml:"results"`
	// Callbacks are bodies and headers of inbound events.
	Callbacks time.Duration `yaml:"callbacks"`
	// Deliveries is what was sent: bodies, attempts, the data of events and the
	// metadata of operations, which each event carries.
	Deliveries time.Duration `yaml:"deliveries"`
	// Audit is the lines of the audit, Idempotency the keys of callers after they
	// have ended.
	Audit       time.Duration `yaml:"audit"`
	Idempotency time.Duration `yaml:"idempotency"`
}

// Artifacts is where and how the files of results are kept (1-product G).
type Artifacts struct {
	// Store is the URL of the blob store: file:///path, s3://, azblob:// or gs://
	// with a bucket, or mem:// for tests; empty means the folder artifacts in Data.
	Store string `yaml:"store"`
	// MaxSize is the largest file that is captured.
	MaxSize Size `yaml:"max_size"`
	// LinkTTL is how long our own links to captured files work.
	LinkTTL time.Duration `yaml:"link_ttl"`
	// Concurrency is how many files are fetched at once, PerHost how many of them
	// from one host.
	Concurrency int `yaml:"concurrency"`
	PerHost     int `yaml:"per_host"`
}

// Reviews is about what people must decide.
type Reviews struct {
	// Due is how long after its opening a review of a reason is to be decided;
	// reasons that are left out have times of their own.
	Due map[string]time.Duration `yaml:"due"`
}

// Within is how long there is to decide a review of a reason.
func (r Reviews) Within(reason pawl.Reason) time.Duration {
	if d, ok := r.Due[reason.String()]; ok {
		return d
	}
	return reason.Guide().Within
}

// Idempotency is about the Idempotency-Key of callers.
type Idempotency struct {
	// Window is how long a key is remembered from its first acceptance (7-rules R3).
	Window time.Duration `yaml:"window"`
}

// Upstream is one provider.
type Upstream struct {
	// Preset names the description of the provider's API.
	Preset string `yaml:"preset"`
	// Description is the text of a description of one's own, instead of a preset:
	// "${file:studio.yaml}" takes it from a file.
	Description string `yaml:"description"`
	// BaseURL is where the API is; empty means the preset's own.
	BaseURL string `yaml:"base_url"`
	// Key is the credential that requests carry.
	Key Secret `yaml:"key"`
	// WebhookKeys verify callbacks; several while rotating.
	WebhookKeys []DatedSecret `yaml:"webhook_keys"`
	// Deadline is how long an operation may take unless its request says so.
	Deadline time.Duration `yaml:"deadline"`
	// Models are the models that may be used, by the provider's name; empty
	// means any.
	Models map[string]Model `yaml:"models"`
	// Read is the schedule of status reads.
	Read Read `yaml:"read"`
	// Currency is that of the provider's figures; empty means the account's.
	Currency string `yaml:"currency"`
	// Concurrency is how many creates may be on the wire at once.
	Concurrency int `yaml:"concurrency"`
	// Submit spaces creates out.
	Submit Submit `yaml:"submit"`
	// Spending bounds what operations may cost; nil means no bound.
	Spending *Spending `yaml:"spending"`
	// Timeout is how long one call to the provider may take.
	Timeout time.Duration `yaml:"timeout"`
	// SettleWithin is how long a success may wait for its final charge before
	// it becomes a review.
	SettleWithin time.Duration `yaml:"settle_within"`
	// Owner is who answers for it: free text, shown in reviews and alerts.
	Owner string `yaml:"owner"`
	// Tenants are those that may use it; empty means all.
	Tenants []string `yaml:"tenants"`
	// LateSuccess is "review" or "accept": what becomes of a success that is
	// reported after the operation expired (1-product D4).
	LateSuccess string `yaml:"late_success"`
	// Idempotent overrides what the preset says about repeating a create; nil
	// leaves it to the preset.
	Idempotent *Idempotent `yaml:"idempotent"`
	// Orphans is "park" or "reject" (1-product C5).
	Orphans string `yaml:"orphans"`
	// Grace is how long a parked orphan waits before it becomes a review.
	Grace time.Duration `yaml:"grace"`
	// OrphanLimit is how many orphans may be parked (7-rules R18).
	OrphanLimit int `yaml:"orphan_limit"`
	// Trust is "signed" or "hint": whether callbacks are believed or only make us
	// read (1-product C6); empty leaves it to the preset.
	Trust string `yaml:"trust"`
	// Release is "hold" if results are withheld until they are released (1-product
	// G4); empty means that they are not.
	Release string `yaml:"release"`
	// Confirm is "poll" if an end that a callback names must be read before it is
	// applied (1-product C6); empty means that it is applied.
	Confirm string `yaml:"confirm"`
	// CallbackRate is how many callbacks a second are taken; 0 means any number.
	CallbackRate float64 `yaml:"callback_rate"`
	// Attempts is how often an operation of own workers may be leased, and Lease
	// how long a lease lasts without a heartbeat; both with the preset worker only.
	Attempts int           `yaml:"attempts"`
	Lease    time.Duration `yaml:"lease"`
}

// Model is one model of an upstream.
type Model struct {
	// Price is what an operation reserves if its request gives no expected
	// cost; nil means unmetered (1-product A7).
	Price *pawl.Amount `yaml:"price"`
	// Release is "hold" if the model's results are withheld until they are
	// released; empty leaves it to the upstream.
	Release string `yaml:"release"`
}

// Read is when the state of an unfinished task is asked for (1-product E1).
type Read struct {
	// First is the wait from acceptance to the first read.
	First time.Duration `yaml:"first"`
	// Factor is by how much each wait is longer than the one before.
	Factor float64 `yaml:"factor"`
	// Max is the longest wait.
	Max time.Duration `yaml:"max"`
	// Rate is how many reads a second the upstream may get.
	Rate float64 `yaml:"rate"`
}

// Submit is when operations are created upstream (1-product B5).
type Submit struct {
	// Rate is how many creates a second the upstream may get; 0 means any number.
	Rate float64 `yaml:"rate"`
}

// Spending is what the operations of all tenants that are submitted for an
// upstream within a period may hold and cost together (1-product B5).
type Spending struct {
	// Amount is the bound, in Currency; left out, that of the upstream, and
	// without one the bound holds for each currency by itself.
	Amount   pawl.Amount `yaml:"amount"`
	Currency string      `yaml:"currency"`
	// Per is the period: "day", a UTC day, which is meant if it is left out.
	Per string `yaml:"per"`
}

// Idempotent declares whether a create can be repeated under the same key
// (1-product B2). The zero value, written "false", says that it cannot.
type Idempotent struct {
	// Header carries the key.
	Header string `yaml:"header"`
	// Window is how long the provider remembers it.
	Window time.Duration `yaml:"window"`
}

// Tenant is a customer or project.
type Tenant struct {
	// Account is made with the tenant; nil means none.
	Account *Account `yaml:"account"`
}

// Account is the money that a tenant starts with.
type Account struct {
	// Currency is three upper-case letters.
	Currency string `yaml:"currency"`
	// Credit is booked once, when the account is made.
	Credit pawl.Amount `yaml:"credit"`
}

// Words of LateSuccess, Orphans, Trust, Confirm, Release and Per.
const (
	LateReview    = "review"
	LateAccept    = "accept"
	OrphansPark   = "park"
	OrphansReject = "reject"
	PerDay        = "day"
	TrustSigned   = "signed"
	TrustHint     = "hint"
	ConfirmPoll   = "poll"
	ReleaseHold   = "hold"
)

// Default is the configuration of a node without a file.
func Default() Config {
	return Config{
		Listen:      "127.0.0.1:8080",
		AdminListen: "127.0.0.1:8081",
		Data:        "./pawl-data",
		Idempotency: Idempotency{Window: 24 * time.Hour},
		Drain:       10 * time.Second,
		Disk:        Disk{MinFree: 256 * MiB},
		Retention:   Retention{Inputs: 30 * day, Results: 30 * day, Callbacks: 30 * day, Deliveries: 30 * day, Audit: 400 * day, Idempotency: 7 * day},
		Artifacts:   Artifacts{MaxSize: 5 * GiB, LinkTTL: 15 * time.Minute, Concurrency: 8, PerHost: 4},
	}
}

// DefaultUpstream is an upstream with every default set; a preset must be added.
func DefaultUpstream() Upstream {
	return Upstream{
		Deadline:     24 * time.Hour,
		Read:         Read{First: 2 * time.Second, Factor: 1.5, Max: 15 * time.Second, Rate: 10},
		Concurrency:  16,
		Timeout:      30 * time.Second,
		SettleWithin: 24 * time.Hour,
		LateSuccess:  LateReview,
		Orphans:      OrphansPark,
		Grace:        15 * time.Minute,
		OrphanLimit:  10_000,
		Attempts:     5,
		Lease:        time.Minute,
	}
}

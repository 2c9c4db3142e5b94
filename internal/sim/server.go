package sim

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// Config sets up a [Server]. The zero value of every field has a default.
type Config struct {
	// Keys are the API keys that are accepted, all of one customer. Default:
	// one derived from the seed, see [Server.Key].
	Keys []string
	// Secrets sign the callbacks. Default: derived from the seed, see
	// [Server.Secret].
	Secrets map[Dialect]string
	// Unsigned sends the callbacks of the native dialect without any signature.
	Unsigned bool
	// AnyDialect lets an operation be given to another dialect than its script
	// was drawn for; what the plan expects of it no longer holds then.
	AnyDialect bool
	// Speed is how many seconds of script pass in one real second. Default 1.
	Speed float64
	// Hold bounds how long the answer of a slow create is held back if the
	// client does not give up. Real time, default 30 s.
	Hold time.Duration
	// Workers send callbacks in parallel. Default 16.
	Workers int
	// Attempts of a callback, with waits that double from Backoff to
	// MaxBackoff. Real time. Default 8, 100 ms, 2 s.
	Attempts            int
	Backoff, MaxBackoff time.Duration
	// Timeout of one attempt. Real time, default 5 s.
	Timeout time.Duration
	// Dial makes the connections of callbacks; that of package net by default.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (c Config) withDefaults(p Plan) Config {
	if len(c.Keys) == 0 {
		c.Keys = []string{"sim_" + derive(p.seed, "key")[:32]}
	}
	secrets := map[Dialect]string{}
	for _, d := range Dialects() {
		secrets[d] = c.Secrets[d]
		if secrets[d] == "" {
			secrets[d] = "whsec_" + derive(p.seed, string(d))
		}
	}
	c.Secrets = secrets
	if c.Speed <= 0 {
		c.Speed = 1
	}
	setDefault(&c.Hold, 30*time.Second)
	setDefault(&c.Workers, 16)
	setDefault(&c.Attempts, 8)
	setDefault(&c.Backoff, 100*time.Millisecond)
	setDefault(&c.MaxBackoff, 2*time.Second)
	setDefault(&c.Timeout, 5*time.Second)
	return c
}

func setDefault[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// derive makes a text that is the same for the same seed: a simulator's
// secrets guard nothing.
func derive(seed uint64, purpose string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "sim %d %s", seed, purpose))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Server plays a plan as a provider. It is an [http.Handler] for all dialects
// at once, and safe for concurrent use. Close it: it sends callbacks in the
// background.
type Server struct {
	plan    Plan
	config  Config
	hash    string
	mux     *http.ServeMux
	book    *taskBook
	books   *books
	courier *courier
	ctx     context.Context
	cancel  context.CancelFunc
	mu      sync.Mutex
	serial  int
	socket  loopback
	outage  *outage
}

// NewServer starts a server's background work, but no listener. It fails on a
// secret that the dialect's scheme cannot use.
func NewServer(plan Plan, config Config) (*Server, error) {
	config = config.withDefaults(plan)
	signers := map[Dialect]signer{}
	for _, d := range Dialects() {
		g, err := newSigner(d.Scheme(), config.Secrets[d], "whsec_"+derive(plan.seed, "forger"))
		if err != nil {
			return nil, fmt.Errorf("sim server: secret of %s: %w", d, err)
		}
		signers[d] = g
	}
	s := &Server{plan: plan, config: config, hash: plan.Hash(), books: &books{pages: map[int]*page{}}, outage: new(outage)}
	s.book = newTaskBook(s.hash[:8])
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.courier = newCourier(s.ctx, config, signers, s.book, s.books, s.outage)
	s.routes()
	return s, nil
}

func (s *Server) routes() {
	s.mux = http.NewServeMux()
	s.mux.HandleFunc("POST /generate", s.createNative)
	s.mux.HandleFunc("GET /status/{task}", s.reader(Native, pathTask))
	s.mux.HandleFunc("POST /cancel/{task}", s.cancelNative)
	s.mux.HandleFunc("GET /list", s.listNative)
	if !s.plan.options.NoLookup {
		s.mux.HandleFunc("GET /lookup", s.lookupNative)
	}
	s.mux.HandleFunc("POST /api/v1/jobs/createTask", s.createMediaV2)
	s.mux.HandleFunc("GET /api/v1/jobs/recordInfo", s.reader(MediaV2, queryTask))
	s.mux.HandleFunc("POST /tasks", s.createBodyTimestamp)
	s.mux.HandleFunc("GET /tasks/{task}", s.reader(BodyTimestamp, pathTask))
	s.mux.HandleFunc("GET /artifacts/{task}", s.artifact)
	s.mux.HandleFunc("GET /books", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, s.Snapshot())
	})
}

// ServeHTTP answers one call. To lose an answer it panics with
// [http.ErrAbortHandler], which an http.Server turns into a closed connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.fails(w, r) {
		s.mux.ServeHTTP(w, r)
	}
}

// Start listens on a free port of 127.0.0.1 and returns the base URL. It may
// be called once.
func (s *Server) Start() (string, error) { return s.socket.start(s) }

// Close stops everything and waits for it: the listener, running requests and
// the sending of callbacks. What was not sent yet stays unsent.
func (s *Server) Close() error {
	s.cancel()
	err := s.socket.close()
	s.courier.close()
	return err
}

// Wait returns when no callback is left to send, or with the error of ctx, or
// with an error if the server is closed first.
func (s *Server) Wait(ctx context.Context) error { return s.courier.wait(ctx) }

// Key is the first API key that the server accepts.
func (s *Server) Key() string { return s.config.Keys[0] }

// Secret is the secret that signs the callbacks of a dialect.
func (s *Server) Secret(d Dialect) string { return s.config.Secrets[d] }

// Signs reports whether the callbacks of a dialect are signed.
func (s *Server) Signs(d Dialect) bool { return !s.config.Unsigned || d != Native }

// Snapshot is a copy of the books as of now.
func (s *Server) Snapshot() Books {
	b := s.books.snapshot(time.Now())
	b.Hash = s.hash
	return b
}

// requestID is a new id for an answer.
func (s *Server) requestID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	return fmt.Sprintf("req_%s_%d", s.hash[:8], s.serial)
}

// authorized checks the API key and answers 401 where it is wrong.
func (s *Server) authorized(w http.ResponseWriter, r *http.Request, d Dialect) bool {
	key := bearer(r)
	// The clients of body-timestamp send no Authorization at all (7-rules R44).
	if slices.Contains(s.config.Keys, key) || d == BodyTimestamp && r.Header.Get("Authorization") == "" {
		return true
	}
	s.books.refuseKey()
	s.refuse(w, d, http.StatusUnauthorized, "unauthorized", "the API key is missing or wrong")
	return false
}

func (s *Server) refuse(w http.ResponseWriter, d Dialect, status int, code, message string) {
	writeJSON(w, status, d.voice().refused(status, code, message, s.requestID()))
}

// signer signs for one dialect, honestly or with a forger's key.
type signer struct {
	scheme         webhook.Scheme
	honest, forged webhook.Key
}

func newSigner(scheme, secret, forged string) (signer, error) {
	s, ok := webhook.Lookup(scheme)
	if !ok {
		return signer{}, errors.New("the webhook package lacks scheme " + scheme)
	}
	honest, err := s.ParseKey(secret)
	if err != nil {
		return signer{}, err
	}
	other, err := s.ParseKey(forged)
	return signer{s, honest, other}, err
}

// Package doctor looks at what a node stands on and says what is wrong with it,
// and what to do. It changes nothing, no file beside the ledger's either, and works
// beside a running node and without one.
package doctor

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/upstream"
)

// Level is how bad a finding is.
type Level string

// A fault keeps Pawl from doing its work, now or soon; a warning is worth a look.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Fault   Level = "fault"
)

// Finding is what one check saw.
type Finding struct {
	// Check is what was looked at: config, clock, disk, secrets, database, ports,
	// dns, upstreams, callbacks, key.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Seen is what was seen, Do what to do about it; never a secret.
	Seen string `json:"seen"`
	Do   string `json:"do,omitempty"`
}

// Options are what is looked at beside the configuration.
type Options struct {
	// Online lets upstreams be asked for their lists, with their keys.
	Online bool
	// AdminKey is the key that the environment gives; empty for that of the data
	// folder.
	AdminKey string
}

// patience bounds each look at something that may not answer.
const patience = 5 * time.Second

// exam is one run over a configuration.
type exam struct {
	Options
	cfg   config.Config
	ups   upstream.Set
	found []Finding
	// api is where a running node of this configuration answers; empty for none.
	api string
	// old is how old a transaction may be.
	old time.Duration
	// web asks what is outside, by the proxy of the environment if there is one;
	// near asks this machine, past it: no proxy is shown the admin key.
	web, near *http.Client
}

func newExam(cfg config.Config, o Options) *exam {
	return &exam{Options: o, cfg: cfg, old: transactionOld, web: client(http.ProxyFromEnvironment), near: client(nil)}
}

// client asks for single pages, by a proxy or none.
func client(proxy func(*http.Request) (*url.URL, error)) *http.Client {
	return &http.Client{
		Timeout:       patience,
		Transport:     &http.Transport{Proxy: proxy, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Run looks at everything, in the order of a start. A configuration that was not
// readable has problems of its own, which [Problems] tells.
func Run(ctx context.Context, cfg config.Config, o Options) []Finding {
	e := newExam(cfg, o)
	if err := server.Check(cfg); err != nil {
		return Problems(err)
	}
	var err error
	if e.ups, err = upstream.Build(cfg); err != nil {
		return Problems(err)
	}
	e.say("config", OK, "the configuration can be used", "")
	e.disk()
	e.secrets()
	e.database(ctx)
	e.ports(ctx)
	e.names(ctx)
	e.upstreams(ctx)
	e.callbacks(ctx)
	e.key(ctx)
	return e.found
}

// Problems are the findings of a configuration that cannot be used.
func Problems(err error) []Finding {
	e := &exam{}
	var all config.Problems
	if !asProblems(err, &all) {
		e.say("config", Fault, err.Error(), "name the right file with --config")
	}
	for _, p := range all {
		what := p.What
		p.What = "is wrong"
		e.say("config", Fault, p.Error(), what)
	}
	return e.found
}

func (e *exam) say(check string, level Level, seen, do string) {
	e.found = append(e.found, Finding{check, level, seen, do})
}

package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	public "github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/webhook"
)

type listenCmd struct {
	Forward     string   `help:"Post each event to this URL, such as http://localhost:3000/hook." placeholder:"URL"`
	Endpoint    string   `help:"Follow this endpoint's events, in place of a feed made for the purpose." placeholder:"ID"`
	Types       []string `help:"Of the feed that is made: only events of these types; all but progress if not given." placeholder:"TYPE"`
	After       *int64   `help:"Begin after this sequence of the endpoint's stream; 0 is its beginning. If not given: where the last run ended, and at first with what comes." placeholder:"N"`
	SkipFailed  bool     `help:"Go on with the next event where the URL answered other than 2xx."`
	Secret      string   `help:"Sign with this secret; else $$PAWL_LISTEN_SECRET, else one that is kept for the next run." placeholder:"SECRET"`
	PrintSecret bool     `help:"Print the secret that the receiver verifies with, and follow nothing."`
}

// Help teaches by example.
func (listenCmd) Help() string {
	return `No public address is needed: events are fetched from the server, signed, and posted to the URL, one after the other, each until it is answered 2xx. A line tells of each. The next run goes on where this one ended, whichever side was restarted; run one at a time for an endpoint. Ctrl-C ends it.

` + examples(`export WEBHOOK_SECRET=$(pawl listen --print-secret)`, `pawl listen --forward http://localhost:3000/hook`, `pawl trigger operation.succeeded`)
}

// Run follows the endpoint until it is interrupted, which is how it ends and no
// failure.
func (c *listenCmd) Run(s *session) error {
	if (c.Forward == "") != c.PrintSecret {
		return usage("give --forward URL, or --print-secret alone")
	}
	if c.Endpoint != "" && len(c.Types) > 0 {
		return usage("--types is for a feed that is made; an endpoint has its own")
	}
	to, err := url.Parse(c.Forward)
	if !c.PrintSecret && (err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "") {
		return usage("--forward is not an address such as http://localhost:3000/hook")
	}
	client, err := s.connect()
	if err != nil {
		return err
	}
	l := &listener{s: s, c: client, to: c.Forward, skip: c.SkipFailed, http: newHTTPClient(15 * time.Second)}
	if err := l.open(c); err != nil {
		return err
	}
	switch {
	case c.PrintSecret && s.flags.JSON:
		return s.printJSON(append(append([]byte(`{"secret":`), quoted(l.kept.Secret)...), '}'))
	case c.PrintSecret:
		return s.print(l.kept.Secret + "\n")
	}
	s.say("the events of %s after sequence %d go to %s", plain(l.kept.Endpoint), l.last, plain(c.Forward))
	return l.follow()
}

// listener forwards the events of one endpoint.
type listener struct {
	s    *session
	c    *client
	to   string
	skip bool
	http *http.Client
	// scheme and key sign.
	scheme webhook.Scheme
	key    webhook.Key
	kept   listening
	// last is the sequence of the last event that is done with.
	last  int64
	lines *lineTable
}

// open finds the endpoint, the secret and the place to begin at, and keeps them
// for the next run.
func (l *listener) open(c *listenCmd) error {
	var err error
	if l.kept, err = l.s.listening(l.c, c); err != nil {
		return err
	}
	scheme, err := l.endpoint(c)
	if err != nil {
		return err
	}
	var ok bool
	if l.scheme, ok = webhook.Lookup(firstOf(scheme, "standard-webhooks")); !ok {
		return fmt.Errorf("the endpoint's scheme %s is not known to this program; the server may be newer", plain(scheme))
	}
	if given := firstOf(c.Secret, l.s.getenv("PAWL_LISTEN_SECRET")); given != "" {
		l.kept.Secret = given
	}
	if l.kept.Secret == "" {
		if l.kept.Secret, err = l.scheme.NewSecret(nil); err != nil {
			return err
		}
	}
	if l.key, err = l.scheme.ParseKey(l.kept.Secret); err != nil || !l.key.CanSign() {
		return usage("the secret cannot sign as %s", plain(scheme))
	}
	if c.After != nil {
		l.last = *c.After
		l.kept.From = l.last
		l.kept.forget()
	} else {
		l.last = l.kept.place()
	}
	l.lines = &lineTable{columns: []string{"sequence", "id", "type", "status", "ms"}}
	return l.kept.save()
}

// endpoint reads the endpoint, or makes a feed, and gives its scheme.
func (l *listener) endpoint(c *listenCmd) (scheme string, err error) {
	name := firstOf(c.Endpoint, l.kept.Endpoint)
	var ep struct{ ID, Scheme, Secret string }
	if name != "" {
		a, err := l.c.call(l.s.ctx, http.MethodGet, endpoints+"/"+id(name), nil, nil)
		var refused *refusal
		switch {
		case err == nil:
			err = decode(a.body, &ep)
		case c.Endpoint == "" && errors.As(err, &refused) && refused.status == http.StatusNotFound:
			name, err = "", nil // Somebody has deleted it.
		}
		if err != nil {
			return "", err
		}
	}
	if name != "" {
		if l.kept.Endpoint == "" { // The first run: only what comes.
			_, l.kept.From, err = l.fetch(1<<62, 0, ep.ID)
		}
		l.kept.Endpoint = ep.ID
		return ep.Scheme, err
	}
	body, err := encode(struct {
		Kind        string   `json:"kind"`
		Types       []string `json:"types,omitempty"`
		Description string   `json:"description"`
	}{"feed", c.Types, "pawl listen"})
	if err != nil {
		return "", err
	}
	a, err := l.c.call(l.s.ctx, http.MethodPost, endpoints, nil, body)
	if err != nil {
		return "", err
	}
	if err := decode(a.body, &ep); err != nil {
		return "", err
	}
	l.kept.forget()
	l.kept.Endpoint, l.kept.Secret, l.kept.From = ep.ID, ep.Secret, 0
	return ep.Scheme, nil
}

// fetch reads a piece of the endpoint's stream and where that ends now.
func (l *listener) fetch(after int64, wait time.Duration, endpoint string) ([]public.StoredEvent, int64, error) {
	q := url.Values{"endpoint": {endpoint}, "after": {strconv.FormatInt(after, 10)}, "rendered": {"true"}}
	if wait > 0 {
		q.Set("wait", strconv.Itoa(int(wait.Seconds())))
	}
	a, err := l.c.call(l.s.ctx, http.MethodGet, events, q, nil)
	if err != nil {
		return nil, 0, err
	}
	var p struct {
		Items []public.StoredEvent `json:"items"`
	}
	if err := decode(a.body, &p); err != nil {
		return nil, 0, err
	}
	end, err := strconv.ParseInt(a.header.Get("Pawl-Endpoint-Sequence"), 10, 64)
	if err != nil {
		return nil, 0, errors.New("the answer is not a feed; the server may be older than this program")
	}
	return p.Items, end, nil
}

// follow hands on what comes until it is interrupted. A server that goes away is
// asked again.
func (l *listener) follow() error {
	wait, lost := newBackoff(500*time.Millisecond, 5*time.Second), false
	for {
		began := time.Now()
		items, _, err := l.fetch(l.last, min(25*time.Second, max(l.s.flags.Patience/2, time.Second)), l.kept.Endpoint)
		switch {
		case l.s.ctx.Err() != nil:
			return nil
		case err != nil && (final(err) || !isPassing(err)):
			return err
		case err != nil && !lost:
			l.s.say("%s; asking again", plain(err.Error()))
			lost = true
		case err == nil && lost:
			l.s.say("the server answers again")
			lost = false
		}
		for _, event := range items {
			if err := l.hand(event); err != nil || l.s.ctx.Err() != nil {
				return err
			}
		}
		if len(items) > 0 || err == nil && time.Since(began) > time.Second {
			wait = newBackoff(500*time.Millisecond, 5*time.Second)
			continue
		}
		if pause(l.s.ctx, wait.next(retryAfter(err))) != nil {
			return nil
		}
	}
}

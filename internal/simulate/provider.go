package simulate

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/sim"
	"github.com/pawlhq/pawl/internal/upstream"
	"github.com/pawlhq/pawl/webhook"
)

// kind is one kind of provider: what it promises, and how it speaks.
type kind struct {
	name, preset string
	voice        voice
	// window is how long it remembers an idempotency key, 0 for not at all.
	window time.Duration
	// callsBack, lookup and cancel say what it can; numbered says that it
	// numbers the events of each task from 1: the same event id for another task
	// is another event.
	callsBack, lookup, cancel, numbered bool
	// unsigned callbacks prove nothing; confirmed ones are read before they count.
	unsigned, confirmed bool
	settings            func(*config.Upstream)
}

// kinds are the providers of every run.
func kinds() []kind {
	return []kind{
		// Not idempotent, with a lookup; its event ids repeat from task to task.
		{name: "native", preset: "sim", voice: nativeVoice{}, callsBack: true, lookup: true, cancel: true, numbered: true},
		// Idempotent for a while, settles later.
		{name: "keyed", preset: "media-v2", voice: mediaVoice{}, callsBack: true, window: 10 * time.Minute,
			settings: func(u *config.Upstream) {
				u.Idempotent = &config.Idempotent{Header: "Idempotency-Key", Window: 10 * time.Minute}
			}},
		// Versions, no prices, no lookup; a late success is accepted.
		{name: "versioned", preset: "body-timestamp", voice: versionVoice{}, callsBack: true,
			settings: func(u *config.Upstream) { u.LateSuccess = config.LateAccept }},
		// Not idempotent, no lookup, orphans are refused.
		{name: "blind", preset: "media-v2", voice: mediaVoice{}, callsBack: true,
			settings: func(u *config.Upstream) {
				u.Idempotent, u.Orphans = &config.Idempotent{}, config.OrphansReject
			}},
		// Its callbacks are not signed: they only make us read.
		{name: "hinting", preset: "sim", voice: nativeVoice{}, callsBack: true, lookup: true, cancel: true, unsigned: true,
			settings: func(u *config.Upstream) { u.Trust = config.TrustHint }},
		// What its callbacks say of an end is read before it counts.
		{name: "confirmed", preset: "body-timestamp", voice: versionVoice{}, callsBack: true, confirmed: true,
			settings: func(u *config.Upstream) { u.Confirm = config.ConfirmPoll }},
		// Never calls back.
		{name: "silent", preset: "media-v2", voice: mediaVoice{}, window: 24 * time.Hour},
	}
}

// provider plays one upstream and keeps its own books.
type provider struct {
	world *world
	kind
	up upstream.Upstream
	// key is the credential it takes; signing signs its callbacks, forging does
	// not belong to it.
	key              string
	scheme           webhook.Scheme
	signing, forging webhook.Key
	patience         time.Duration
	// limited: it has a spending limit.
	limited bool

	tasks  map[string]*task
	keys   map[string]keyed
	byRef  map[string]*task
	orders map[string]*orderBook
	down   pawl.Time
	locked pawl.Time // it refuses our credential until then
	serial int
}

// keyed is what an idempotency key stands for.
type keyed struct {
	task *task
	at   pawl.Time
	body string
}

// orderBook is what a provider knows of one operation's creates.
type orderBook struct {
	op       string // the suffix of its id
	arrivals []*arrival
	// flying counts creates that were sent and have not arrived.
	flying int
	tasks  []*task
	keys   map[string]bool
	bodies map[string]bool
}

// arrival is one create that reached the provider.
type arrival struct {
	at pawl.Time
	// refused: it leaves no task, and the answer says so; known: that answer has
	// reached the node.
	refused, known bool
	// decided is how many "not created" decisions there were by then.
	decided int
}

// newProvider plays a kind.
func (w *world) newProvider(k kind) *provider {
	p := &provider{
		world: w, kind: k, key: "key-" + k.name, patience: pick(w.dice, 8*time.Second, 30*time.Second),
		tasks: map[string]*task{}, keys: map[string]keyed{}, byRef: map[string]*task{}, orders: map[string]*orderBook{},
	}
	u := config.DefaultUpstream()
	u.Preset, u.BaseURL, u.Owner, u.Timeout = k.preset, "https://"+p.host(), "ops of "+k.name, p.patience
	u.Key = secret(p.key)
	u.Read = config.Read{First: 2 * time.Second, Factor: 1.5, Max: pick(w.dice, 15*time.Second, time.Minute), Rate: 10}
	u.Concurrency = 1 + w.IntN(6)
	u.SettleWithin = w.between(5*time.Minute, 2*time.Hour)
	u.Grace = w.between(time.Minute, 15*time.Minute)
	if k.callsBack && !k.unsigned {
		text := w.newSecret()
		u.WebhookKeys = []config.DatedSecret{{Key: secret(text)}}
		p.scheme, _ = webhook.Lookup(k.voice.scheme())
		p.signing, p.forging = parseKey(p.scheme, text), parseKey(p.scheme, w.newSecret())
	}
	if k.settings != nil {
		k.settings(&u)
	}
	if w.percent(15) {
		u.Spending = &config.Spending{Amount: 5 * pawl.AmountScale, Currency: currency}
		p.limited = true
	}
	if w.percent(30) {
		u.Submit.Rate = 1
	}
	spec, ok := upstream.Preset(k.preset)
	if !ok {
		panic("simulate: no preset " + k.preset)
	}
	up, err := upstream.New(k.name, spec, u)
	if err != nil {
		panic(err)
	}
	p.up = up
	return p
}

func secret(text string) config.Secret {
	s, err := config.NewSecret(text)
	if err != nil {
		panic(err)
	}
	return s
}

func parseKey(s webhook.Scheme, text string) webhook.Key {
	key, err := s.ParseKey(text)
	if err != nil {
		panic(err)
	}
	return key
}

// host is its name in the network.
func (p *provider) host() string { return p.name + ".example" }

func (p *provider) reachable() bool {
	return p.world.now >= p.down && !p.world.hit(CreateUnsent, 15)
}

func (p *provider) timeout() time.Duration { return p.patience }

// sent notes that a request is on its way.
func (p *provider) sent(c *call, flying int) {
	var asked createCall
	if what, _ := p.voice.route(c); what == "create" && json.Unmarshal(c.body, &asked) == nil {
		p.orderOf(asked.suffix(c.header.Get("Idempotency-Key"))).flying += flying
	}
}

func (p *provider) lost() bool { return p.world.hit(CreateGone, 8) }

// answer takes a request that has arrived.
func (p *provider) answer(c *call) reply {
	if p.world.now < p.locked {
		return p.refusal(401, "unauthorized")
	}
	if c.header.Get("Authorization") != "Bearer "+p.key {
		p.world.violate("a request carries its upstream's credential", "%s %s", c.method, p.name)
	}
	what, task := p.voice.route(c)
	switch what {
	case "create":
		return p.create(c)
	case "read":
		return p.read(task)
	case "cancel":
		return p.cancelTask(task)
	case "lookup":
		return p.find(task)
	}
	p.world.violate("a request is one that the provider knows", "%s %s at %s", c.method, c.path, p.name)
	return p.refusal(404, "not_found")
}

func (p *provider) refusal(status int, code string) reply {
	return reply{status: status, body: encode(p.voice.refused(status, code))}
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// createCall is what a create says in any dialect.
type createCall struct {
	Input struct {
		N int `json:"n"`
	} `json:"input"`
	ClientRef    string `json:"client_ref"`
	CallbackURL  string `json:"callback_url"`
	CallbackURL2 string `json:"callBackUrl"`
}

// suffix finds the operation that a create is for: by our reference, by its
// idempotency key, or by the token of its callback address.
func (c createCall) suffix(key string) string {
	if ref, ok := strings.CutPrefix(c.ClientRef, "op_"); ok {
		return ref
	}
	if ref, ok := strings.CutPrefix(key, "pawl-"); ok {
		return ref
	}
	u, err := url.Parse(c.CallbackURL + c.CallbackURL2)
	if err != nil {
		return ""
	}
	parts := strings.Split(u.Path, "/")
	token := parts[len(parts)-1]
	return token[:min(26, len(token))]
}

// orderOf is the book of an operation's creates.
func (p *provider) orderOf(suffix string) *orderBook {
	b := p.orders[suffix]
	if b == nil {
		b = &orderBook{op: suffix, keys: map[string]bool{}, bodies: map[string]bool{}}
		p.orders[suffix] = b
	}
	return b
}

// create takes a create: it makes a task, or refuses.
func (p *provider) create(c *call) reply {
	w := p.world
	var asked createCall
	if err := json.Unmarshal(c.body, &asked); err != nil {
		w.violate("a create's body is the provider's", "%v", err)
	}
	key := c.header.Get("Idempotency-Key")
	suffix := asked.suffix(key)
	book := p.orderOf(suffix)
	book.keys[key], book.bodies[string(c.body)] = true, true
	a := &arrival{at: w.now, decided: w.books.notCreated(suffix)}
	p.checkArrival(book, a, key)
	book.arrivals = append(book.arrivals, a)
	if refusal, refused := p.refuseCreate(suffix); refused {
		w.trace("%s refuses a create of %s: %d", p.name, suffix, refusal.status)
		a.refused = refusal.status != 503
		if a.refused {
			refusal.learned = func() { a.known = true }
		}
		return refusal
	}
	t := p.made(suffix, key, asked, string(c.body))
	w.trace("%s has task %s of %s", p.name, t.id, suffix)
	return p.accepted(t)
}

// refuseCreate draws whether a create is refused, and how.
func (p *provider) refuseCreate(suffix string) (reply, bool) {
	w := p.world
	switch {
	// An input that is refused once is refused each time.
	case w.hitBy(newDice(w.seedNumber, "refuse "+suffix), sim.CreateRefused, 60):
		return p.refusal(400, "invalid_request"), true
	case w.hit(sim.CreateLimited, 60):
		r := p.refusal(429, "rate_limited")
		if w.percent(70) {
			r.header = map[string]string{"Retry-After": fmt.Sprint(1 + w.IntN(90))}
		}
		return r, true
	case w.hit(sim.CreateFailedBefore, 40):
		return p.refusal(503, "upstream_unavailable"), true
	}
	return reply{}, false
}

// made is the task of a create: a new one, or the one that its key stands for.
func (p *provider) made(suffix, key string, asked createCall, body string) *task {
	w := p.world
	if p.window > 0 {
		if k, ok := p.keys[key]; ok && w.now.Sub(k.at) < p.window {
			if k.body != body {
				w.violate("a repeated create says the same", "%s of %s", key, p.name)
			}
			return k.task
		}
	}
	p.serial++
	t := p.newTask(taskName(p, p.serial), suffix, asked)
	book := p.orderOf(suffix)
	book.tasks = append(book.tasks, t)
	if len(book.tasks) > 1 {
		w.violate("at most one create of an operation makes a task", "operation %s has %d tasks at %s", suffix, len(book.tasks), p.name)
	}
	p.tasks[t.id] = t
	if p.window > 0 {
		p.keys[key] = keyed{t, w.now, body}
	}
	if asked.ClientRef != "" && p.byRef[asked.ClientRef] == nil {
		p.byRef[asked.ClientRef] = t
	}
	return t
}

func taskName(p *provider, serial int) string { return fmt.Sprintf("%s-t%d", p.name, serial) }

// accepted answers a create that has made a task.
func (p *provider) accepted(t *task) reply {
	w := p.world
	r := reply{status: p.voice.created(), body: encode(p.voice.accepted(t.report()))}
	switch {
	case w.hit(sim.CreateFailedAfter, 40):
		r = p.refusal(503, "upstream_unavailable")
	case w.hit(sim.CreateLost, 50):
		r.lost = true
	case w.hit(sim.CreateSlow, 40):
		r.delay = w.between(time.Second, 3*p.patience)
	case w.hit(CreateCut, 15):
		r.cut = true
	case w.hit(CreateNoTask, 15):
		r.body = []byte(`{"ok":true}`)
	}
	return r
}

// checkArrival holds a create that has just arrived against what was known.
func (p *provider) checkArrival(b *orderBook, now *arrival, key string) {
	w := p.world
	id, err := pawl.ParseSuffix(b.op)
	op, ok := w.operation(id)
	switch {
	case err != nil || !ok:
		w.violate("a create is of an operation that the ledger holds", "%q at %s", b.op, p.name)
		return
	case op.Creates == 0 && op.Task == "":
		w.violate("a create is claimed before it is sent", "operation %s is %s without a claim", b.op, op.State)
	}
	if p.window > 0 {
		if key == "" || len(b.keys) > 1 {
			w.violate("an operation has one idempotency key", "operation %s has sent %d", b.op, len(b.keys))
		}
		return
	}
	for _, before := range b.arrivals {
		if !before.known && before.decided == now.decided {
			w.violate("a create that may exist is not sent again", "operation %s at %s", b.op, p.name)
		}
	}
}

package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pawlhq/pawl"
)

var (
	// entryName is what upstreams, sources and tenants may be called: it goes
	// into paths, metrics and screens as it is.
	entryName  = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	presetName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	schemeName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	// headerName leaves out the underscore, which proxies drop (O-038).
	headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
)

const badName = "the name may have 1 to 63 of a-z, 0-9, _ and -, and must not start with _ or -; rename it"

// maxSecrets is how many secrets a list may hold, active or not.
const maxSecrets = 16

// Validate checks a configuration that was changed after Load or made in code,
// such as by flags. The error, if any, is a Problems with everything found.
func (c Config) Validate() error {
	if found := c.check(); len(found) > 0 {
		return found
	}
	return nil
}

func (c Config) check() Problems {
	k := checker{config: c}
	k.listeners()
	k.address("public_url", c.PublicURL)
	if c.Data == "" {
		k.say("data", "is empty; name the folder of the ledger, such as ./pawl-data")
	}
	k.database()
	k.secrets("former_secrets", c.FormerSecrets)
	for i, p := range c.Egress.Allow {
		k.prefix(fmt.Sprintf("egress.allow[%d]", i), p)
	}
	k.duration("idempotency.window", c.Idempotency.Window)
	for word, d := range c.Reviews.Due {
		if _, ok := pawl.ParseReason(word); !ok {
			k.say("reviews.due."+word, "is no reason of a review; docs/reviews.md lists them")
		}
		k.duration("reviews.due."+word, d)
	}
	k.duration("drain", c.Drain)
	k.artifacts(c.Artifacts)
	k.retention(c.Retention)
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		k.upstream(name, c.Upstreams[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		k.source(name, c.Sources[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tenants)) {
		k.tenant(name, c.Tenants[name])
	}
	k.fronts(c.Fronts)
	return k.found
}

// checker collects what is wrong with a configuration.
type checker struct {
	config Config
	found  Problems
}

func (k *checker) say(key, what string) {
	k.found = append(k.found, k.config.Problem(key, what))
}

func (k *checker) listeners() {
	k.listener("listen", k.config.Listen)
	k.listener("admin_listen", k.config.AdminListen)
	if k.config.Listen == k.config.AdminListen && !strings.HasSuffix(k.config.Listen, ":0") {
		k.say("admin_listen", "is the same address as listen; give it another port")
	}
}

func (k *checker) listener(key, address string) {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		k.say(key, "not an address to listen on; write host:port, such as 127.0.0.1:8080")
	}
}

// address checks a URL that paths are appended to; empty means not set.
func (k *checker) address(key, text string) {
	if text == "" {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "":
		k.say(key, "not a web address; write one such as https://pawl.example.com")
	case u.User != nil:
		k.say(key, "holds a user name or password; remove it and use the key for credentials")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(text, "#"):
		k.say(key, "has a query or fragment; remove everything from ? or # on")
	}
}

func (k *checker) database() {
	switch text := k.config.Database.Reveal(); {
	case text == "" || text == "sqlite":
	case !k.config.Shared():
		k.say("database", "not a known database; write postgres://USER:PASSWORD@HOST:PORT/DATABASE, or remove the key to use SQLite in the data folder")
	case k.config.Secrets.IsZero():
		k.say("secrets", "is required with PostgreSQL, so that all nodes seal with the same key; \"pawl key wrapping\" draws one, write it as base64key://${PAWL_SECRETS_KEY}")
	}
}

func (k *checker) prefix(key string, p netip.Prefix) {
	switch {
	case !p.IsValid():
		k.say(key, "not an address range; write one such as 10.0.0.0/8")
	case p.Addr().Is4In6():
		// A mapped range never matches: the guard unmaps first (SF-03).
		k.say(key, "an IPv4 range in IPv6 form; write it as IPv4, such as 10.0.0.0/8")
	case p != p.Masked():
		k.say(key, fmt.Sprintf("the address has bits beyond the prefix length; write %s", p.Masked()))
	}
}

func (k *checker) duration(key string, v time.Duration) {
	if v <= 0 || v > maxDuration {
		k.say(key, "must be longer than 0 and at most 366 days (8784h); write a duration such as 300ms, 1.5s or 2h")
	}
}

func (k *checker) within(key string, v, low, high float64) {
	// Written so that NaN is outside.
	if !(v >= low && v <= high) {
		k.say(key, fmt.Sprintf("must be from %g to %g; write a number in that range", low, high))
	}
}

func (k *checker) oneOf(key, v string, words ...string) {
	if !slices.Contains(words, v) {
		k.say(key, "must be "+strings.Join(words, " or "))
	}
}

// printable checks free text and provider names that are shown as they are.
func (k *checker) printable(key, text string, most int) {
	notShown := func(r rune) bool { return !unicode.IsPrint(r) }
	if len(text) > most || strings.ContainsFunc(text, notShown) {
		k.say(key, fmt.Sprintf("must be at most %d bytes of printable text; shorten it and remove control characters", most))
	}
}

func (k *checker) currency(key, code string) {
	if !pawl.ValidCurrency(code) {
		k.say(key, "not a currency; write three upper-case letters, such as USD")
	}
}

func (k *checker) secrets(key string, secrets []Secret) {
	if len(secrets) > maxSecrets {
		k.say(key, fmt.Sprintf("holds more than %d secrets; remove those no longer in use", maxSecrets))
	}
	for i, s := range secrets {
		if s.IsZero() {
			k.say(fmt.Sprintf("%s[%d]", key, i), errSecretEmpty.Error())
		}
	}
}

func (k *checker) orphans(key, policy string, grace time.Duration) {
	k.oneOf(key+".orphans", policy, OrphansPark, OrphansReject)
	k.duration(key+".grace", grace)
}

func (k *checker) upstream(name string, u Upstream) {
	key := join("upstreams", name)
	if !entryName.MatchString(name) {
		k.say(key, badName)
	}
	switch {
	case u.Description != "" && u.Preset != "":
		k.say(key+".description", "is there beside preset; keep one of the two")
	case u.Description == "" && u.Preset == "" && k.config.origin.has(key+".description"):
		k.say(key+".description", "is empty; write ${file:studio.yaml} with the file that describes the provider's API")
	case u.Description == "" && !presetName.MatchString(u.Preset):
		k.say(key+".preset", "must name the description of the provider's API, such as media-v2; or write one as description: ${file:studio.yaml}")
	}
	k.worker(key, u)
	k.address(key+".base_url", u.BaseURL)
	if strings.ContainsAny(u.Key.Reveal(), "\r\n") {
		k.say(key+".key", "has a line break, which no header can carry; write it on one line")
	}
	k.rotation(key+".webhook_keys", u.WebhookKeys)
	k.duration(key+".deadline", u.Deadline)
	for _, model := range slices.Sorted(maps.Keys(u.Models)) {
		k.model(join(key+".models", model), model, u.Models[model])
	}
	k.read(key+".read", u.Read)
	if u.Currency != "" {
		k.currency(key+".currency", u.Currency)
	}
	k.within(key+".concurrency", float64(u.Concurrency), 1, 10000)
	if u.Submit.Rate != 0 {
		k.within(key+".submit.rate", u.Submit.Rate, 0.001, 10000)
	}
	k.spending(key+".spending", u.Spending)
	k.duration(key+".settle_within", u.SettleWithin)
	k.duration(key+".timeout", u.Timeout)
	k.printable(key+".owner", u.Owner, 200)
	for i, tenant := range u.Tenants {
		if !entryName.MatchString(tenant) {
			k.say(fmt.Sprintf("%s.tenants[%d]", key, i), badName)
		}
	}
	k.oneOf(key+".late_success", u.LateSuccess, LateReview, LateAccept)
	k.idempotent(key+".idempotent", u.Idempotent)
	k.orphans(key, u.Orphans, u.Grace)
	k.within(key+".orphan_limit", float64(u.OrphanLimit), 1, 100_000)
	if u.Trust != "" {
		k.oneOf(key+".trust", u.Trust, TrustSigned, TrustHint)
	}
	if u.Confirm != "" {
		k.oneOf(key+".confirm", u.Confirm, ConfirmPoll)
	}
	k.release(key, u.Release)
	if u.CallbackRate != 0 {
		k.within(key+".callback_rate", u.CallbackRate, 0.001, 10_000)
	}
}

func (k *checker) model(key, name string, m Model) {
	if name == "" {
		k.say(key, "the model's name is empty; write the provider's name for it")
	}
	k.printable(key, name, 255)
	if m.Price != nil && *m.Price < 0 {
		k.say(key+".price", "must not be negative; write 0 or more")
	}
	k.release(key, m.Release)
}

func (k *checker) read(key string, r Read) {
	k.duration(key+".first", r.First)
	k.duration(key+".max", r.Max)
	if r.Max < r.First {
		k.say(key+".max", "is shorter than first; make it at least as long")
	}
	k.within(key+".factor", r.Factor, 1, 10)
	k.within(key+".rate", r.Rate, 0.001, 10000)
}

func (k *checker) spending(key string, v *Spending) {
	if v == nil {
		return
	}
	if v.Amount <= 0 {
		k.say(key+".amount", "must be more than 0; remove spending for no limit, or pause the upstream to stop its creates")
	}
	if v.Currency != "" {
		k.currency(key+".currency", v.Currency)
	}
	if v.Per != "" {
		k.oneOf(key+".per", v.Per, PerDay)
	}
}

func (k *checker) idempotent(key string, v *Idempotent) {
	if v == nil || *v == (Idempotent{}) {
		return
	}
	if !headerName.MatchString(v.Header) {
		k.say(key+".header", "must name the header that carries the key in letters, digits and hyphens, such as Idempotency-Key")
	}
	k.duration(key+".window", v.Window)
}

func (k *checker) tenant(name string, t Tenant) {
	key := join("tenants", name)
	if !entryName.MatchString(name) {
		k.say(key, badName)
	}
	if t.Account == nil {
		return
	}
	k.currency(key+".account.currency", t.Account.Currency)
	if t.Account.Credit < 0 {
		k.say(key+".account.credit", "must not be negative; write 0 or more")
	}
}

package upstream

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/redact"
	"github.com/pawlhq/pawl/webhook"
)

// What the configuration has no key for.
const (
	// submitAttempts bounds creates of one operation (1-product B4).
	submitAttempts = 10
)

// Upstream is a provider as it is configured: a [Spec] with an address and
// credentials. Take it from [Build]. It prints as its name and adapter only.
type Upstream struct {
	name     string
	spec     Spec
	settings config.Upstream
	base     string
	key      config.Secret
	scheme   webhook.Scheme
	keys     []webhook.Key // those of settings.WebhookKeys, in their order
	secrets  *redact.Finder
	// hidden is what [Upstream.Hiding] was told.
	hidden string
}

// Set holds the upstreams of a configuration by name. It is read only.
type Set map[string]Upstream

// Build makes the upstreams of a checked configuration. The error is a
// config.Problems that places each problem in the file.
func Build(c config.Config) (Set, error) {
	set := make(Set, len(c.Upstreams))
	var problems config.Problems
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		settings := c.Upstreams[name]
		key := "upstreams." + name
		spec, err := described(settings)
		var u Upstream
		if err == nil {
			u, err = New(name, spec, settings)
		}
		var wrong *settingError
		if errors.As(err, &wrong) {
			problems = append(problems, c.Problem(key+"."+wrong.key, wrong.what))
			continue
		}
		set[name] = u
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return set, nil
}

// described gives the description that the settings name or hold.
func described(settings config.Upstream) (Spec, error) {
	if settings.Description != "" {
		spec, err := Parse([]byte(settings.Description))
		if err != nil {
			return Spec{}, &settingError{"description", "cannot be used; pawl upstream check FILE says where: " + err.Error()}
		}
		return spec, nil
	}
	spec, ok := Preset(settings.Preset)
	if !ok {
		return Spec{}, &settingError{"preset", "must be one of " + strings.Join(known(), ", ") + "; or write a description of your own (docs/upstreams.md)"}
	}
	return spec, nil
}

// settingError is a setting that does not fit the description.
type settingError struct{ key, what string }

// Error is "KEY: WHAT".
func (e *settingError) Error() string { return e.key + ": " + e.what }

// New joins a description, which must come from [Parse] or [Preset], with the
// settings of one upstream. The error names the setting that does not fit.
func New(name string, spec Spec, settings config.Upstream) (Upstream, error) {
	if spec.Name == config.PresetWorker {
		return newWorked(name, settings), nil
	}
	u := Upstream{name: name, spec: spec, settings: settings, key: settings.Key}
	address := settings.BaseURL
	if address == "" {
		address = spec.BaseURL
	}
	base, err := parseBase(address)
	if err != nil {
		return Upstream{}, &settingError{"base_url", err.Error()}
	}
	u.base = base
	u.secrets = redact.Values(credentials(settings)...)
	if hasControl(settings.Key.Reveal()) {
		return Upstream{}, &settingError{"key", "must be one line"}
	}
	if i := settings.Idempotent; i != nil {
		u.spec.Create.Idempotency = nil
		if i.Header != "" {
			if !headerShape.MatchString(i.Header) || i.Window <= 0 {
				return Upstream{}, &settingError{"idempotent", "needs the name of a header and a window such as 24h"}
			}
			u.spec.Create.Idempotency = &Idempotency{Header: i.Header, Window: i.Window}
		}
	}
	if err := u.addKeys(); err != nil {
		return Upstream{}, err
	}
	return u, u.checkTrust()
}

func (u *Upstream) addKeys() error {
	if u.spec.Callback == nil {
		if len(u.settings.WebhookKeys) > 0 {
			return &settingError{"webhook_keys", "must go: this provider does not call back"}
		}
		return nil
	}
	u.scheme, _ = webhook.Lookup(u.spec.Callback.Scheme)
	for i, secret := range u.settings.WebhookKeys {
		key, err := u.scheme.ParseKey(secret.Key.Reveal())
		if err != nil {
			return &settingError{fmt.Sprintf("webhook_keys[%d]", i), err.Error()}
		}
		u.keys = append(u.keys, key)
	}
	return nil
}

// credentials are the texts that no text of the provider may show.
func credentials(settings config.Upstream) []string {
	all := []string{settings.Key.Reveal()}
	for _, secret := range settings.WebhookKeys {
		all = append(all, secret.Key.Reveal())
	}
	return all
}

// Hiding is the upstream as it is asked about one operation, whose callback token
// is taken out of what the provider says, as the configured credentials are.
func (u Upstream) Hiding(token string) Upstream {
	u.hidden = token
	return u
}

// activeKeys are those that verify callbacks at a moment (1-product C1).
func (u Upstream) activeKeys(now time.Time) []webhook.Key {
	var active []webhook.Key
	for i, key := range u.keys {
		if u.settings.WebhookKeys[i].ActiveAt(now) {
			active = append(active, key)
		}
	}
	return active
}

// parseBase gives an address without its final slash; the path of a call is
// appended to it.
func parseBase(address string) (string, error) {
	if address == "" {
		return "", errors.New("is missing; write the provider's address, such as https://api.example.com")
	}
	at, err := url.Parse(address)
	plain := err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Host != "" &&
		at.User == nil && !strings.ContainsAny(address, "?#") && !dotted(at.Path)
	if !plain {
		return "", errors.New("must be an absolute http or https URL without user, query or fragment")
	}
	return strings.TrimRight(at.String(), "/"), nil
}

// Name is the upstream's name in the configuration.
func (u Upstream) Name() string { return u.name }

// Base is the address that calls go to.
func (u Upstream) Base() string { return u.base }

// Settings are what the configuration says of the upstream.
func (u Upstream) Settings() config.Upstream { return u.settings }

// Format writes name and adapter for every verb, never a credential.
func (u Upstream) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "upstream "+u.name+" ("+u.spec.Adapter()+")")
}

// Policy is what decisions need to know of the upstream at present; its Callbacks
// are [Upstream.CallsBack].
func (u Upstream) Policy() ledger.Upstream {
	s := u.settings
	p := ledger.Upstream{
		Name:              u.name,
		Adapter:           u.spec.Adapter(),
		Credential:        u.credential(),
		Callbacks:         u.CallsBack(),
		Reads:             u.spec.Read != nil,
		Lookups:           u.spec.Lookup != nil,
		Cancels:           u.spec.Cancel != nil,
		ReadFirst:         s.Read.First,
		ReadMax:           s.Read.Max,
		ReadFactor:        int64(math.Round(s.Read.Factor * 1000)),
		ReadSpacing:       spacing(s.Read.Rate),
		CreateSpacing:     spacing(s.Submit.Rate),
		Concurrency:       s.Concurrency,
		Timeout:           s.Timeout,
		SubmitAttempts:    submitAttempts,
		SettleWithin:      s.SettleWithin,
		ParkOrphans:       s.Orphans != config.OrphansReject,
		OrphanGrace:       s.Grace,
		OrphanLimit:       int64(s.OrphanLimit),
		Confirm:           s.Confirm == config.ConfirmPoll,
		LinkLifetime:      u.spec.Links.Lifetime,
		Owner:             s.Owner,
		AcceptLateSuccess: s.LateSuccess == config.LateAccept,
	}
	if spend := s.Spending; spend != nil {
		p.SpendPerDay, p.SpendCurrency = spend.Amount, cmp.Or(spend.Currency, s.Currency)
	}
	if i := u.spec.Create.Idempotency; i != nil {
		p.Idempotent, p.IdempotencyWindow = true, i.Window
	}
	if len(s.Tenants) == 1 {
		p.Tenant = s.Tenants[0]
	}
	if u.Worked() {
		p = workPolicy(p, s)
	}
	return p
}

// spacing is the time between two calls at a rate a second, rounded up so that
// no second ever holds more; none without a rate.
func spacing(rate float64) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(float64(time.Second) / rate))
}

// credential digests address and key: the provider remembers idempotency keys
// per credential, and another address is another provider.
func (u Upstream) credential() (digest [8]byte) {
	sum := sha256.Sum256([]byte("pawl upstream credential\x00" + u.base + "\x00" + u.key.Reveal()))
	copy(digest[:], sum[:])
	return digest
}

package upstream

import (
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// Trust says how far a provider's callbacks are believed (1-product C6).
type Trust string

// The kinds of trust.
const (
	// TrustSigned: what a callback says is applied, since its signature covers it.
	TrustSigned Trust = "signed"
	// TrustHint: a callback proves nothing and only makes us read. So it is for
	// providers that do not sign, or whose signature leaves out the body.
	TrustHint Trust = "hint"
)

// Trust is that of the settings, else of the description.
func (u Upstream) Trust() Trust {
	switch {
	case u.settings.Trust != "":
		return Trust(u.settings.Trust)
	case u.spec.Callback != nil && u.spec.Callback.Trust != "":
		return u.spec.Callback.Trust
	}
	return TrustSigned
}

// hints reports whether callbacks are hints.
func (u Upstream) hints() bool { return u.spec.Callback != nil && u.Trust() == TrustHint }

// CallsBack reports whether the provider is asked for callbacks at present: they
// are only counted on where there is an active key to verify them, or nothing to
// verify.
func (u Upstream) CallsBack() bool {
	return u.spec.Callback != nil && (len(u.activeKeys(time.Now())) > 0 || u.hints() && len(u.keys) == 0)
}

// Scheme is the name of the scheme that callbacks are signed with, "" for none.
func (u Upstream) Scheme() string { return u.scheme.Name() }

// SchemeHeaders are the names of the headers that the scheme reads.
func (u Upstream) SchemeHeaders() []string { return u.scheme.Headers() }

// checkTrust holds the settings about callbacks against the description.
func (u Upstream) checkTrust() error {
	cb, s := u.spec.Callback, u.settings
	if cb == nil {
		for key, set := range map[string]bool{"trust": s.Trust != "", "confirm": s.Confirm != "", "callback_rate": s.CallbackRate != 0} {
			if set {
				return &settingError{key, "must go: this provider does not call back"}
			}
		}
		return nil
	}
	switch {
	case u.Trust() == TrustSigned && cb.Scheme == "":
		return &settingError{"trust", "must be hint: this provider's callbacks are not signed"}
	case u.Trust() == TrustHint && u.spec.Read == nil:
		return &settingError{"trust", "must be signed: this provider's tasks cannot be read"}
	case s.Confirm == config.ConfirmPoll && u.spec.Read == nil:
		return &settingError{"confirm", "must go: this provider's tasks cannot be read"}
	case cb.Scheme == "" && len(s.WebhookKeys) > 0:
		return &settingError{"webhook_keys", "must go: this provider's callbacks are not signed"}
	}
	return nil
}

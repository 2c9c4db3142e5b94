package config

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// DatedSecret is a secret of several, with the time in which it is active:
// from From on and before Until, where a zero time leaves its side open. In the
// file it is a text, which is active always, or {key, from, until}.
type DatedSecret struct {
	// Key is the secret itself.
	Key Secret `yaml:"key"`
	// From is the first moment at which it is active.
	From time.Time `yaml:"from"`
	// Until is the first moment at which it no longer is.
	Until time.Time `yaml:"until"`
}

// ActiveAt reports whether the secret is active at a moment.
func (s DatedSecret) ActiveAt(now time.Time) bool {
	return !now.Before(s.From) && (s.Until.IsZero() || now.Before(s.Until))
}

// maxActive is how many secrets may be active at one moment (7-rules R39).
const maxActive = 2

// crowded gives the index of a secret that is active at one moment with
// maxActive others before it in the list. It asks about every moment there is, not about
// now: whether a configuration is good must not depend on when it is read. The
// number of active ones only grows where one begins.
func crowded(secrets []DatedSecret) (index int, found bool) {
	for _, begins := range secrets {
		active := 0
		for i, s := range secrets {
			if s.ActiveAt(begins.From) {
				active++
			}
			if active > maxActive {
				return i, true
			}
		}
	}
	return 0, false
}

// rotation checks secrets of which one may be replacing another.
func (k *checker) rotation(key string, secrets []DatedSecret) {
	if len(secrets) > maxSecrets {
		k.say(key, fmt.Sprintf("holds more than %d secrets; remove those no longer in use", maxSecrets))
		return
	}
	for i, s := range secrets {
		at := fmt.Sprintf("%s[%d]", key, i)
		switch {
		case s.Key.IsZero() && k.config.origin.has(at+".key"):
			k.say(at+".key", errSecretEmpty.Error())
		case s.Key.IsZero():
			k.say(at, "has no key; write the secret, or {key: SECRET, until: MOMENT}")
		case !s.Until.IsZero() && !s.From.Before(s.Until):
			k.say(at+".until", "is not after from, so the secret is never active; correct one of the two or remove the secret")
		}
	}
	if i, found := crowded(secrets); found {
		k.say(fmt.Sprintf("%s[%d]", key, i), fmt.Sprintf(
			"is a third secret that is active at one moment, and at most %d may be; remove the oldest one or give it an until", maxActive))
	}
}

// moment is the form of RFC 3339 §5.6; package time reads others too, such as a
// comma before the fraction.
var moment = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func readMoment(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || !moment.MatchString(text) || t.IsZero() {
		return time.Time{}, errors.New("not a moment; write it in RFC 3339, such as 2026-01-31T12:00:00Z")
	}
	return t.UTC(), nil
}

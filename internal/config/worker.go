package config

import "time"

// PresetWorker is the preset of upstreams whose operations the platform team's
// own workers do: they lease them over the API, and nothing is sent anywhere.
const PresetWorker = "worker"

// MaxAttempts is how often an operation of own workers may be leased at most.
const MaxAttempts = 50

// The bounds of a worker's lease: a heartbeat must have time to arrive, and a
// worker that died must be found out.
const (
	minLease = time.Second
	maxLease = 24 * time.Hour
)

// notForWorkers are the keys of an upstream that is called over HTTP, in the
// order of their appearance in docs/configuration.md.
var notForWorkers = []string{
	"base_url", "key", "webhook_keys", "read", "concurrency", "submit", "timeout", "late_success", "idempotent", "orphans", "grace", "orphan_limit",
	"trust", "confirm", "callback_rate",
}

// worker checks what an upstream of own workers may have, and that no other has
// what is theirs.
func (k *checker) worker(key string, u Upstream) {
	if u.Preset != PresetWorker {
		for _, name := range []string{"attempts", "lease"} {
			if k.config.origin.has(key + "." + name) {
				k.say(key+"."+name, "goes with preset: worker only; remove it")
			}
		}
		return
	}
	made := map[string]bool{"base_url": u.BaseURL != "", "key": !u.Key.IsZero(), "webhook_keys": len(u.WebhookKeys) > 0}
	for _, name := range notForWorkers {
		if made[name] || k.config.origin.has(key+"."+name) {
			k.say(key+"."+name, "must go: with preset: worker nothing is sent anywhere; own workers lease the operations from the API, with API keys")
		}
	}
	k.within(key+".attempts", float64(u.Attempts), 1, MaxAttempts)
	if u.Lease < minLease || u.Lease > maxLease {
		k.say(key+".lease", "must be from 1s to 24h; write how long a worker may be silent, such as 60s")
	}
}

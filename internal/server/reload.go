package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/sender"
	"github.com/pawlhq/pawl/internal/upstream"
)

// prepared is what a configuration is made into before anything of it counts,
// at the start and at each reload: whatever is wrong is found here.
func prepared(cfg config.Config) (upstream.Set, sender.Set, error) {
	set, err := upstream.Build(cfg)
	senders, wrong := sender.Build(cfg)
	var all config.Problems
	for _, e := range []error{err, wrong} {
		var some config.Problems
		if errors.As(e, &some) {
			all = append(all, some...)
		} else if e != nil {
			return nil, nil, e
		}
	}
	if len(all) > 0 {
		return nil, nil, all
	}
	return set, senders, nil
}

// measure makes the metrics of what is configured.
func (n *Node) measure(upstreams upstream.Set, senders sender.Set) {
	for name, up := range upstreams {
		if up.Worked() {
			n.metrics.AddWorkers(name)
		} else {
			n.metrics.AddUpstream(name)
		}
	}
	for name := range senders {
		n.metrics.AddSource(name)
	}
}

// needsRestart are the keys that a running node cannot take anew.
var needsRestart = []struct {
	key string
	of  func(config.Config) string
}{
	{"listen", func(c config.Config) string { return c.Listen }},
	{"admin_listen", func(c config.Config) string { return c.AdminListen }},
	{"public_url", func(c config.Config) string { return c.PublicURL }},
	{"data", func(c config.Config) string { return c.Data }},
	{"database", func(c config.Config) string { return c.Database.Reveal() }},
	{"artifacts", func(c config.Config) string { return fmt.Sprint(c.Artifacts) }},
	{"secrets", func(c config.Config) string { return c.Secrets.Reveal() }},
	{"former_secrets", func(c config.Config) string { return revealed(c.FormerSecrets) }},
}

// Reload reads the configuration anew and puts it in force at once for
// everything that begins from then on; what is under way keeps what it has
// (1-product I7). A configuration that is wrong changes nothing: the former one
// stays, and what is wrong is logged, one line for each fault. Keys that need a
// restart are named in a warning. It is safe for concurrent use.
func (n *Node) Reload(ctx context.Context, read func() (config.Config, error)) error {
	n.reloading.Lock()
	defer n.reloading.Unlock()
	n.systemd.Reloading()
	cfg, err := read()
	if err == nil {
		err = n.reload(ctx, cfg)
	}
	if err != nil {
		n.metrics.Reloads.WithLabelValues("refused").Inc()
		for _, fault := range faults(err) {
			n.log.Error("the configuration was not reloaded, the former one stays in force; mend it and send SIGHUP again", "fault", fault)
		}
		n.systemd.Ready(n.serving() + "; the new configuration has faults and is not in force, see the log")
		return err
	}
	n.metrics.Reloads.WithLabelValues("ok").Inc()
	n.systemd.Ready(n.serving())
	return nil
}

// faults are the single findings of an error.
func faults(err error) []string {
	var all config.Problems
	if !errors.As(err, &all) {
		return []string{err.Error()}
	}
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = p.Error()
	}
	return texts
}

// reload swaps everything once nothing can fail any more.
func (n *Node) reload(ctx context.Context, cfg config.Config) error {
	set, senders, err := prepared(cfg)
	if err != nil {
		return err
	}
	if err := n.anonymousAllowed(cfg); err != nil {
		return err
	}
	if err := n.tenants(ctx, cfg); err != nil {
		return fmt.Errorf("the tenants could not be made: %w", err)
	}
	if err := n.anonymousKey(ctx, cfg.Fronts); err != nil {
		return fmt.Errorf("the API key of anonymous calls could not be made: %w", err)
	}
	if err := n.policy.Allow(cfg.Egress.Allow...); err != nil {
		return fmt.Errorf("egress.allow: %w", err)
	}
	// Idle connections may lead to where nothing may go any more.
	n.client.Close()
	n.measure(set, senders)
	// Workers first: what the API accepts from here on can be worked on.
	former := n.loaded.Swap(&cfg)
	n.upstreams.Swap(set)
	n.senders.Swap(senders)
	n.keeping.Swap(keeping(cfg.Retention))
	n.worker.Reload()
	n.native.Reload(senders, cfg.Idempotency.Window)
	n.fronts.Reload(frontSettings(cfg.Fronts))
	n.unsigned(set)
	n.tell(*former, cfg)
	return nil
}

// tell says what a reload has changed, by name, and what it could not change.
func (n *Node) tell(former, now config.Config) {
	added, changed, removed := compared(former.Upstreams, now.Upstreams)
	names := func(of []string) string { return strings.Join(of, ", ") }
	n.log.Info("the configuration was reloaded", "upstreams_added", names(added), "upstreams_changed", names(changed), "upstreams_removed", names(removed))
	if added, changed, removed = compared(former.Sources, now.Sources); len(added)+len(changed)+len(removed) > 0 {
		n.log.Info("sources were reloaded", "sources_added", names(added), "sources_changed", names(changed), "sources_removed", names(removed))
	}
	for _, k := range needsRestart {
		if k.of(n.cfg) != k.of(now) {
			n.log.Warn("a setting was changed and needs a restart; until then its former value holds", "setting", k.key)
		}
	}
}

// compared names what is only in the one map, differs, or is only in the other.
func compared[V any](former, now map[string]V) (added, changed, removed []string) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if was, ok := former[name]; !ok {
			added = append(added, name)
		} else if !reflect.DeepEqual(was, now[name]) {
			changed = append(changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(former)) {
		if _, ok := now[name]; !ok {
			removed = append(removed, name)
		}
	}
	return added, changed, removed
}

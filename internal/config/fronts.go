package config

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/internal/strict"
)

// Fronts are the ways in that speak another dialect than /v1; both are served
// whatever is set here.
type Fronts struct {
	// MediaV2 is about the calls under /api/v1.
	MediaV2 MediaFront `yaml:"media-v2"`
	// BodyTimestamp is about the calls under /tasks.
	BodyTimestamp TaskFront `yaml:"body-timestamp"`
}

// MediaFront is what the front of media-v2 adds to its callers' words.
type MediaFront struct {
	// Models are "upstream/model" by the names that callers use.
	Models map[string]string `yaml:"models"`
}

// TaskFront is what the front of body-timestamp fills in for bare clients
// (7-rules R44).
type TaskFront struct {
	// Tenant is whose calls the anonymous ones are; empty means the tenant
	// "default".
	Tenant string `yaml:"tenant"`
	// Upstream and Model are what a call that names no upstream means.
	Upstream string `yaml:"upstream"`
	Model    string `yaml:"model"`
	// Anonymous takes calls without an API key, on loopback listeners only.
	Anonymous bool `yaml:"anonymous"`
}

// AnonymousExposed says why a configuration with an anonymous front cannot
// listen beyond this machine.
const AnonymousExposed = "takes calls without an API key, which only a loopback listener may; set listen to 127.0.0.1:PORT, or remove anonymous"

func (k *checker) fronts(f Fronts) {
	const models = "fronts.media-v2.models"
	for _, name := range slices.Sorted(maps.Keys(f.MediaV2.Models)) {
		key := join(models, name)
		k.model(key, name, Model{})
		upstream, model, ok := strings.Cut(f.MediaV2.Models[name], "/")
		if !ok || model == "" {
			k.say(key, "must be UPSTREAM/MODEL, such as studio/kling-2")
			continue
		}
		k.target(key, upstream, model)
	}
	const tasks = "fronts.body-timestamp"
	t := f.BodyTimestamp
	if t.Tenant != "" && !entryName.MatchString(t.Tenant) {
		k.say(tasks+".tenant", badName)
	}
	switch {
	case t.Upstream != "":
		k.target(tasks+".upstream", t.Upstream, "")
		if _, ok := k.config.Upstreams[t.Upstream]; ok && t.Model != "" {
			k.target(tasks+".model", t.Upstream, t.Model)
		}
	case t.Model != "":
		k.say(tasks+".model", "stands alone; name its upstream too")
	}
	if t.Anonymous && !loopback(k.config.Listen) {
		k.say(tasks+".anonymous", AnonymousExposed)
	}
}

// target checks that there is an upstream, and a model where one is given.
func (k *checker) target(key, upstream, model string) {
	up, ok := k.config.Upstreams[upstream]
	if !ok {
		k.say(key, "names an upstream that is not configured; add it to upstreams or name another")
		return
	}
	if model == "" || len(up.Models) == 0 {
		return
	}
	if _, ok := up.Models[model]; !ok {
		k.say(key, fmt.Sprintf("names a model that upstreams.%s.models does not have; add it there or name another", upstream))
	}
}

// loopback reports whether an address to listen on is one of this machine only.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	// Another check tells of the error; the bound address is checked as well.
	return err != nil || strict.Loopback(host)
}

package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/listing"
)

// hosts are those that the configuration sends requests to, with what names them.
func (e *exam) hosts() map[string]string {
	out := make(map[string]string)
	add := func(what, address string) {
		if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
			out[u.Hostname()] = what
		}
	}
	for name, s := range e.cfg.Sources {
		if s.List != nil {
			add("source "+name, s.List.URL)
		}
		if s.Read != nil {
			add("source "+name, s.Read.URL)
		}
	}
	for name, u := range e.ups {
		if !u.Worked() {
			add("upstream "+name, u.Base())
		}
	}
	return out
}

// names asks DNS for each of them.
func (e *exam) names(ctx context.Context) {
	hosts := e.hosts()
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		if net.ParseIP(host) != nil {
			e.say("dns", OK, hosts[host]+" is at the address "+host, "")
			continue
		}
		limited, cancel := context.WithTimeout(ctx, patience)
		addresses, err := net.DefaultResolver.LookupHost(limited, host)
		cancel()
		if err != nil {
			e.say("dns", Fault, hosts[host]+": the name "+host+" leads nowhere: "+last(err), "mend the name in the configuration, or the machine's DNS (/etc/resolv.conf)")
			continue
		}
		e.say("dns", OK, fmt.Sprintf("%s: %s is %s", hosts[host], host, strings.Join(addresses, ", ")), "")
	}
}

// upstreams looks at the keys of upstreams.
func (e *exam) upstreams(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(e.ups)) {
		u := e.ups[name]
		if u.Worked() {
			e.say("upstreams", OK, name+" is worked by own workers", "")
			continue
		}
		if u.Settings().Key.Reveal() == "" {
			e.say("upstreams", Warning, name+" has no key", "set upstreams."+name+".key, unless it wants none")
		} else {
			e.say("upstreams", OK, name+" has a key", "")
		}
		if !u.CallsBack() {
			e.say("upstreams", Warning, "no callback of "+name+" can be verified, so it is only read", "set upstreams."+name+".webhook_keys, if it signs its callbacks")
		}
		if e.Online {
			e.ask(ctx, name)
		}
	}
}

// ask has an upstream show its list, which changes nothing there.
func (e *exam) ask(ctx context.Context, name string) {
	list, ok := e.ups[name].List()
	if !ok {
		e.say("upstreams", OK, name+" was not asked: its description knows no harmless read", "")
		return
	}
	policy, err := egress.NewPolicy(e.cfg.Egress.Allow...)
	if err != nil {
		e.say("upstreams", Fault, err.Error(), "mend egress.allow")
		return
	}
	client := egress.NewClient(policy, egress.Options{})
	defer client.Close()
	_, err = list.Read(ctx, client, listing.Cursor{}, 0)
	var failed *listing.Failure
	switch {
	case err == nil:
		e.say("upstreams", OK, name+" takes the key: it showed its list", "")
	case errors.As(err, &failed) && failed.Reason == listing.ReasonUnauthorized:
		e.say("upstreams", Fault, name+" refuses the key", "put one in place that it takes, reload, and run pawl upstream resume "+name)
	default:
		e.say("upstreams", Fault, name+" did not show its list: "+err.Error(), "unreachable: its address, our way out; egress: egress.allow; else ask the provider")
	}
}

// callbacks looks whether the address that callbacks are sent to leads to a node.
func (e *exam) callbacks(ctx context.Context) {
	if e.cfg.PublicURL == "" {
		if len(e.ups)+len(e.cfg.Sources) > 0 {
			e.say("callbacks", Warning, "public_url is not set: callbacks are asked for at "+e.cfg.Listen+", which only this machine reaches", "set public_url to the address that providers reach")
		}
		return
	}
	// A proxy may pass on the hooks alone; then one of them is asked. That is no
	// callback, and the node counts nothing.
	base := strings.TrimRight(e.cfg.PublicURL, "/")
	if status, body, err := get(ctx, e.web, base+"/livez", ""); err == nil && status == http.StatusOK && body == "alive\n" {
		e.say("callbacks", OK, "GET "+base+"/livez was answered by a Pawl", "")
		return
	}
	hook := "doctor"
	for _, name := range slices.Sorted(maps.Keys(e.ups)) {
		hook = name
	}
	address := base + "/hooks/" + hook
	status, body, err := get(ctx, e.web, address, "")
	switch {
	case err != nil && e.api == "":
		e.say("callbacks", Warning, "GET "+address+": "+last(err)+"; no node of this configuration runs here either", "start the node, then look again")
	case err != nil:
		e.say("callbacks", Fault, "GET "+address+": "+last(err), "mend public_url, its name, or the proxy before the node: callbacks do not arrive")
	case strings.Contains(body, `"reason":"method`) && status == http.StatusMethodNotAllowed, strings.Contains(body, `"reason":"unknown_source"`) && status == http.StatusNotFound:
		e.say("callbacks", OK, fmt.Sprintf("GET %s was answered %d by a Pawl, as a hook does that wants POST", address, status), "")
	default:
		e.say("callbacks", Fault, fmt.Sprintf("GET %s was answered %d, and not by a Pawl", address, status), "let the proxy pass /hooks/ on to "+e.cfg.Listen+", path unchanged")
	}
}

package api

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// sourceJSON is a place that inbound events come from. What it has received is
// shown to those alone who may see all of it.
type sourceJSON struct {
	Name        string        `json:"name"`
	Kind        string        `json:"kind" enum:"upstream,source,unknown" doc:"unknown: what was sent to sources that are not configured."`
	Scheme      string        `json:"scheme,omitempty" doc:"How its events are signed; left out where they are not."`
	Trust       string        `json:"trust,omitempty" enum:"signed,hint" doc:"hint: its events prove nothing and only make us read."`
	Confirm     string        `json:"confirm,omitempty" enum:"poll" doc:"An end that its events name is read before it is applied."`
	Orphans     string        `json:"orphans,omitempty" enum:"park,reject" doc:"What becomes of an event whose task nobody knows."`
	Rate        float64       `json:"rate,omitempty" doc:"Events a second that are taken; left out where there is no limit."`
	Types       []string      `json:"types,omitempty" doc:"The event types that a generic source knows; left out where it knows all."`
	Handshake   string        `json:"handshake,omitempty" enum:"slack,zoom,hub,cloudevents" doc:"How it may ask whether the address is meant for it."`
	Reads       bool          `json:"reads,omitempty" doc:"The current record is read before an event is handed over."`
	Lists       bool          `json:"lists,omitempty" doc:"It lists its tasks, or what it sent, so that both sides can be compared."`
	Owner       string        `json:"owner,omitempty"`
	Tenant      string        `json:"tenant,omitempty"`
	LastEventAt *pawl.Time    `json:"last_event_at,omitempty" format:"date-time" doc:"Of those that are stored."`
	Parked      *int64        `json:"parked,omitempty" doc:"Events that wait for their task to be known."`
	Unknown     *int64        `json:"unknown_types,omitempty" doc:"Stored events of types that its description lacks still."`
	Counts      *sourceCounts `json:"counts,omitempty"`
	Samples     []sourceMiss  `json:"samples,omitempty" doc:"Requests of which nothing is stored, the latest first: a few for each reason."`
}

// sourceCounts are those of one node.
type sourceCounts struct {
	Since    pawl.Time        `json:"since" format:"date-time" doc:"The counts are this node's, since its start."`
	Verdicts map[string]int64 `json:"verdicts" doc:"Events by verdict, and refused requests."`
	Unstored map[string]int64 `json:"unstored" doc:"Requests of which nothing is stored, by reason."`
}

// sourceMiss is one of them, without anything that its sender chose.
type sourceMiss struct {
	At      pawl.Time `json:"at" format:"date-time"`
	Reason  string    `json:"reason"`
	Status  int       `json:"status" doc:"What it was answered."`
	Size    *int64    `json:"size,omitempty" doc:"Of the body, in bytes."`
	Digest  string    `json:"digest,omitempty" doc:"SHA-256 of the body, where it was read."`
	Headers []string  `json:"headers" doc:"Which of the headers that its scheme reads were there."`
	Absent  []string  `json:"absent" doc:"Which of them were not: a proxy may have dropped them."`
}

func (a *api) sourceRoutes() {
	one := route{method: http.MethodGet, tag: "sources", scope: ledger.ScopeRead, status: http.StatusOK}
	list := one
	list.path, list.name, list.paged = "/v1/sources", "listSources", true
	list.summary = "Configured sources of inbound events, with what came from them; every upstream is one"
	handle(a, list, listSources)
	get := one
	get.path, get.name, get.summary = "/v1/sources/{id}", "getSource", "One source"
	handle(a, get, getSource)
}

func listSources(c *call, _ none) (page[sourceJSON], error) {
	out, err := paged(c, c.sources(), func(s sourceJSON) string { return s.Name })
	for i := range out.Items {
		if err == nil {
			err = c.received(&out.Items[i])
		}
	}
	return out, err
}

func getSource(c *call, _ none) (sourceJSON, error) {
	all := c.sources()
	i := slices.IndexFunc(all, func(s sourceJSON) bool { return s.Name == c.r.PathValue("id") })
	if i < 0 {
		return sourceJSON{}, errNotFound
	}
	return all[i], c.received(&all[i])
}

// sources are those that the call may see, as they are configured.
func (c *call) sources() []sourceJSON {
	var items []sourceJSON
	for name, u := range c.opts.Upstreams.Now() {
		p, s := u.Policy(), u.Settings()
		if u.Worked() {
			continue // Own workers speak to the API.
		}
		if len(s.Tenants) > 0 && c.tenant != "" && !slices.Contains(s.Tenants, c.tenant) {
			continue
		}
		item := sourceJSON{
			Name: name, Kind: "upstream", Scheme: u.Scheme(), Trust: string(u.Trust()), Confirm: s.Confirm, Orphans: s.Orphans,
			Rate: s.CallbackRate, Owner: s.Owner, Tenant: p.Tenant,
		}
		_, item.Lists = u.List()
		items = append(items, item)
	}
	for name, s := range c.live.sources {
		if s := s.Settings(); c.sees(s.Tenant) {
			items = append(items, genericShape(name, s))
		}
	}
	known := func(s sourceJSON) bool { return s.Name == telemetry.UnknownName }
	if c.tenant == "" && !slices.ContainsFunc(items, known) && c.opts.Arrivals != nil && len(c.opts.Arrivals.Tally(telemetry.UnknownName).Verdicts) > 0 {
		items = append(items, sourceJSON{Name: telemetry.UnknownName, Kind: "unknown"})
	}
	slices.SortFunc(items, func(a, b sourceJSON) int { return cmp.Compare(a.Name, b.Name) })
	return items
}

// genericShape is a generic source as it is configured.
func genericShape(name string, s config.Source) sourceJSON {
	out := sourceJSON{
		Name: name, Kind: "source", Scheme: s.Scheme, Trust: config.TrustSigned, Types: s.Types, Rate: s.CallbackRate, Reads: s.Read != nil, Lists: s.List != nil,
		Owner: s.Owner, Tenant: s.Tenant,
	}
	if s.Handshake != nil {
		out.Handshake = s.Handshake.Kind
	}
	return out
}

// received adds what came from a source. It is told to who sees all tenants, and
// to the one tenant that has the source to itself.
func (c *call) received(s *sourceJSON) error {
	if c.tenant != "" && s.Tenant != c.tenant {
		return nil
	}
	if s.Kind != "unknown" {
		rows, err := c.load(c.ctx, ledger.Keys{Sources: []string{s.Name}})
		if err != nil {
			return err
		}
		row, _ := rows.Sources.Get(s.Name)
		s.Parked, s.Unknown = &row.Parked, &row.UnknownTypes
		last, err := c.opts.Reader.Events(c.ctx, store.EventFilter{Source: s.Name}, store.Page{Limit: 1})
		if err != nil {
			return err
		}
		if len(last) > 0 {
			s.LastEventAt = &last[0].At
		}
	}
	if c.opts.Arrivals == nil {
		return nil
	}
	tally := c.opts.Arrivals.Tally(s.Name)
	s.Counts = &sourceCounts{Since: pawl.TimeOf(c.opts.Arrivals.Since()), Verdicts: counted(tally.Verdicts), Unstored: counted(tally.Unstored)}
	for _, m := range tally.Samples {
		item := sourceMiss{At: pawl.TimeOf(m.At), Reason: m.Reason, Status: m.Status, Digest: m.Digest, Headers: m.Headers, Absent: m.Absent}
		if m.Size >= 0 {
			item.Size = &m.Size
		}
		if item.Headers == nil {
			item.Headers = []string{}
		}
		if item.Absent == nil {
			item.Absent = []string{}
		}
		s.Samples = append(s.Samples, item)
	}
	return nil
}

func counted(by map[string]int64) map[string]int64 {
	if by == nil {
		return map[string]int64{}
	}
	return by
}

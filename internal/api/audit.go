package api

import (
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// auditJSON is one act of a person or key.
type auditJSON struct {
	Tenant  string    `json:"tenant,omitempty"`
	At      pawl.Time `json:"at" format:"date-time"`
	Actor   string    `json:"actor,omitempty" doc:"An API key; left out for the system."`
	Action  string    `json:"action" example:"endpoint.create"`
	Subject string    `json:"subject,omitempty"`
	Detail  string    `json:"detail,omitempty"`
}

func auditShape(a ledger.Audit) auditJSON {
	return auditJSON{a.Tenant, a.At, a.Actor, a.Action, a.Subject, a.Detail}
}

func (a *api) auditRoutes() {
	handle(a, route{
		method: http.MethodGet, path: "/v1/audit", name: "listAudit", tag: "audit", scope: ledger.ScopeRead, status: http.StatusOK, paged: true,
		summary: "What was done by whom, newest first",
		query: []param{
			{"actor", "An API key's id"}, {"action", "Such as endpoint.create"}, {"subject", "The id of what it was done to"},
			{"from", "Done at that time or later"}, {"until", "Done before that time"},
		},
	}, func(c *call, _ none) (page[auditJSON], error) {
		f := store.AuditFilter{Tenant: c.tenant, Actor: c.query.Get("actor"), Action: c.query.Get("action"), Subject: c.query.Get("subject")}
		var err error
		if f.From, f.Until, err = c.between(); err != nil {
			return page[auditJSON]{}, err
		}
		read := func(p store.Page) ([]ledger.Audit, error) { return c.opts.Reader.Audits(c.ctx, f, p) }
		return listed(c, read, func(a ledger.Audit) pawl.ID { return a.ID }, each(auditShape))
	})
}

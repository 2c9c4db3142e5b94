package ledger

import "github.com/pawlhq/pawl"

// UnknownTypesID names a source's events of unknown types of one tenant; those
// of none, which only an admin key sees, have an empty one (7-rules R51).
type UnknownTypesID struct{ Source, Tenant string }

// UnknownTypes is what is known of a source's stored events of unknown types, a
// tenant: nothing of one tenant's events is shown to another.
type UnknownTypes struct {
	ID UnknownTypesID
	// Review is the open review of them, zero for none.
	Review pawl.ID
	// Events counts those that are of none but unknown types still.
	Events int64
}

// unknownTypes is the row of a source and tenant.
func (d *Draft) unknownTypes(source, tenant string) UnknownTypes {
	id := UnknownTypesID{source, tenant}
	row, _ := d.UnknownTypes.Get(id)
	row.ID = id
	return row
}

// countUnknown counts events of unknown types that come or go, for their tenant
// and for all.
func (d *Draft) countUnknown(row UnknownTypes, by int64) UnknownTypes {
	row.Events += by
	d.UnknownTypes.Put(row.ID, row)
	src, _ := d.Sources.Get(row.ID.Source)
	src.Name = row.ID.Source
	src.UnknownTypes += by
	d.Sources.Put(src.Name, src)
	return row
}

// reviewType counts an event of an unknown type and opens one review of them
// per source and tenant at a time.
func (c ReceiveEvent) reviewType(d *Draft, e Event) {
	row := d.unknownTypes(c.Up.Name, e.Tenant)
	if c.again == nil || c.again.Judged() != pawl.UnknownType || c.again.Tenant != e.Tenant {
		row = d.countUnknown(row, 1)
	}
	if row.Review.IsZero() {
		row.Review = d.openLoose(Review{Tenant: e.Tenant, Reason: pawl.ReviewUnknownType, Event: e.ID, Source: c.Up.Name, Owner: c.Up.Owner, Detail: "type " + e.Type})
		d.UnknownTypes.Put(row.ID, row)
	}
}

// typeKnown counts an event whose type is no longer unknown, or that has come to
// another tenant; the last one closes the review of them.
func (d *Draft) typeKnown(source, tenant string) {
	row := d.countUnknown(d.unknownTypes(source, tenant), -1)
	if row.Events > 0 || row.Review.IsZero() {
		return
	}
	if r, ok := d.Reviews.Get(row.Review); ok && r.ClosedAt == 0 {
		// The note of whoever had them judged anew stays.
		d.closeReview(r, nil, pawl.DecideReprocess, r.Note)
	}
	row.Review = pawl.ID{}
	d.UnknownTypes.Put(row.ID, row)
}

// followUnknown adds the rows of those tenants whose operations an event of an
// unknown type may be about, and the reviews that judging anew may close.
func (r *Rows) followUnknown(keys *Keys) {
	for _, k := range keys.UnknownTypes {
		for _, id := range keys.Operations {
			if op, ok := r.Operations.Get(id); ok && op.Upstream == k.Source {
				keys.UnknownTypes = add(keys.UnknownTypes, UnknownTypesID{k.Source, op.Tenant})
			}
		}
		if row, ok := r.UnknownTypes.Get(k); ok && len(keys.Events) > 0 && !row.Review.IsZero() {
			keys.Reviews = add(keys.Reviews, row.Review)
		}
	}
}

package api

import (
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/webhook"
)

// A former secret goes on beside its successor for defaultOverlap, or as long as
// the request says, up to maxOverlap (SW-11).
const (
	defaultOverlap = 24 * time.Hour
	maxOverlap     = 30 * 24 * time.Hour
)

// formerUntil is when a former secret ends that is replaced at now: after an
// overlap such as "24h", at a moment in RFC 3339, or after the usual time if both
// are empty.
func formerUntil(f *faults, now time.Time, overlap, until string) pawl.Time {
	end := now.Add(defaultOverlap)
	switch {
	case overlap != "" && until != "":
		f.add("/until", "goes without overlap; give one of the two")
	case overlap != "":
		d, err := time.ParseDuration(overlap)
		f.check(err == nil && d >= 0 && d <= maxOverlap, "/overlap", "want a duration such as 24h, from 0s to 720h")
		end = now.Add(d)
	case until != "":
		at, err := strict.ParseTime(until)
		f.check(err == nil && at.After(now) && !at.After(now.Add(maxOverlap)), "/until",
			"must be a time to come, such as 2030-01-02T15:04:05Z, within 720h; to end the former secret at once, give an overlap of 0s")
		end = at
	}
	return pawl.TimeOf(end)
}

// rotateRequest gives an endpoint a new secret.
type rotateRequest struct {
	Secret  string `json:"secret,omitempty" doc:"Drawn if it is left out."`
	Scheme  string `json:"scheme,omitempty" doc:"Goes over to the other Standard Webhooks scheme; left out, the scheme stays."`
	Overlap string `json:"overlap,omitempty" example:"24h" doc:"How long the former secret signs too; 24h if it is left out, at most 720h."`
	Until   string `json:"until,omitempty" format:"date-time" doc:"When the former secret ends, in place of overlap; at most 720h from now."`
}

// scheme is that of the endpoint from now on. Only between schemes that share one
// header can both secrets sign (7-rules R39).
func (in rotateRequest) scheme(f *faults, present webhook.Scheme) webhook.Scheme {
	if in.Scheme == "" {
		return present
	}
	next, ok := webhook.Lookup(in.Scheme)
	f.check(ok && next.Beside(present), "/scheme", "must be one whose signatures stand beside those of "+present.Name()+" in one header")
	return next
}

func rotateSecret(c *call, in rotateRequest) (endpointJSON, error) {
	e, err := c.ownEndpoint()
	if err != nil {
		return endpointJSON{}, err
	}
	var f faults
	present, _ := webhook.Lookup(e.Scheme)
	scheme := in.scheme(&f, present)
	until := formerUntil(&f, time.Now(), in.Overlap, in.Until)
	if err := f.err(); err != nil {
		return endpointJSON{}, err
	}
	if !scheme.Beside(scheme) {
		until = 0 // The one signature is the new secret's.
	}
	secret, err := secretFor(scheme.Name(), in.Secret)
	if err != nil {
		return endpointJSON{}, err
	}
	sealed, err := c.sealNew(e.ID, secret.text, e.Secret)
	if err != nil {
		return endpointJSON{}, err
	}
	shown, err := c.change(e, "rotate_secret", ledger.EndpointChange{
		Secret: sealed, PublicKey: secret.public, Scheme: scheme.Name(), FormerUntil: until,
	})
	if err == nil {
		shown.Secret = secret.text
	}
	return shown, err
}

package outbox

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/webhook"
)

// schemeStandard is that of endpoints which name none.
const schemeStandard = "standard-webhooks"

// request makes the POST of one attempt at now and gives its body beside it.
// The error is an unsendable or an *egress.Refused; the body may be there
// nevertheless.
func (o *Outbox) request(j Job, now time.Time) (*http.Request, []byte, error) {
	scheme, ok := webhook.Lookup(cmp.Or(j.endpoint.Scheme, schemeStandard))
	if !ok {
		return nil, nil, unsendable("the endpoint's signature scheme is not known: change it")
	}
	body, err := j.body(scheme.Name())
	if err != nil {
		return nil, nil, err
	}
	content := o.content(j)
	header, err := o.sign(j, scheme, content.Get("Content-Type"), body, now)
	if err != nil {
		return nil, body, err
	}
	u, err := o.o.Client.Policy().ParseURL(j.endpoint.URL)
	if err != nil {
		return nil, body, err
	}
	maps.Copy(header, content)
	header.Set("User-Agent", "pawl/"+o.o.Version)
	header.Set("Pawl-Delivery", j.String())
	header.Set("Pawl-Attempt", strconv.Itoa(int(j.delivery.Attempts)+1))
	header.Set("Traceparent", j.traceparent())
	header.Set("Pawl-Endpoint-Sequence", strconv.FormatInt(j.delivery.Sequence, 10))
	return &http.Request{
		Method: http.MethodPost, URL: u, Header: header, ContentLength: int64(len(body)),
		Body: io.NopCloser(bytes.NewReader(body)),
		// Deliveries may be sent again: the receiver knows them by their id.
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}, body, nil
}

// sign gives the headers of the scheme. The id is the event's, the same on
// every attempt and replay; the timestamp is the attempt's (1-product H2).
func (o *Outbox) sign(j Job, scheme webhook.Scheme, contentType string, body []byte, now time.Time) (http.Header, error) {
	var keys []webhook.Key
	for _, secret := range j.secrets(pawl.TimeOf(now)) {
		key, err := o.keys.key(scheme, secret)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key.key)
	}
	header, err := scheme.Sign(webhook.Message{ID: j.event.PublicID(), Timestamp: now.Unix(), URL: j.endpoint.URL, ContentType: contentType, Body: body}, keys...)
	if err != nil {
		return nil, unsendable("the event could not be signed")
	}
	return header, nil
}

// secrets are those in force, the current one first. Callback endpoints are
// signed with their API key's (7-rules R50), and a revoked key still signs.
func (j Job) secrets(now pawl.Time) []sealedSecret {
	owner, current, former, until := j.endpoint.ID, j.endpoint.Secret, j.endpoint.FormerSecret, j.endpoint.FormerUntil
	if j.endpoint.Kind == ledger.CallbackEndpoint {
		owner, current, former, until = j.key.ID, j.key.WebhookSecret, j.key.FormerSecret, j.key.FormerUntil
	}
	if former == "" || until <= now {
		return []sealedSecret{{owner, current}}
	}
	return []sealedSecret{{owner, current}, {owner, former}}
}

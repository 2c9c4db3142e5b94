package api

import (
	"context"
	"net/http"
	"unicode/utf8"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Visitor is who asks from inside the process, without a credential in each
// request: whoever once showed the secret of an API key. It ends with that
// secret: with its rotation, expiry and revocation.
type Visitor struct{ hash ledger.Digest }

// Person is the API key of a visitor, for a page that shows whose it is.
type Person struct {
	// Key is its id, as texts show it.
	Key, Name, Tenant string
	Scopes            ledger.Scopes
}

// May reports whether the key has a scope; admin stands for all.
func (p Person) May(scope ledger.Scopes) bool { return p.Scopes&(scope|ledger.ScopeAdmin) != 0 }

// Enter judges the secret of an API key as a call does, and writes into the audit
// that its holder did so (an action such as "console.login"). It reports false
// for one that is not valid, whatever is wrong with it.
func (h Handler) Enter(ctx context.Context, secret, action string) (Visitor, bool, error) {
	secret, ok := bearer([]string{"Bearer " + secret})
	if !ok {
		return Visitor{}, false, nil
	}
	v := Visitor{hashKey(secret)}
	ok, err := h.Note(ctx, v, action)
	return v, ok, err
}

// Note writes into the audit that a visitor did something which is no call. It
// reports false for one whose secret is not valid any more.
func (h Handler) Note(ctx context.Context, v Visitor, action string) (bool, error) {
	key, ok, err := h.keyOf(ctx, v.hash)
	if err != nil || !ok {
		return false, err
	}
	id := key.ID.Text(pawl.PrefixKey)
	_, err = h.do(ctx, ledger.RecordAccess{Header: store.NewHeader(id), Tenant: key.Tenant, Action: action, Subject: id})
	return err == nil, err
}

// Person is the API key of a visitor, false for one whose secret is not valid any
// more.
func (h Handler) Person(ctx context.Context, v Visitor) (Person, bool, error) {
	key, ok, err := h.keyOf(ctx, v.hash)
	return Person{key.ID.Text(pawl.PrefixKey), key.Name, key.Tenant, key.Scopes}, ok, err
}

// insider is what the context of a request from inside says of who asks.
type insider struct {
	Visitor
	payloads bool
}

type insiderKey struct{}

// As makes requests with the context those of a visitor, with all that its API
// key may, but for the scope payloads, which is used only where it is asked for:
// reading under audit must be meant.
func As(ctx context.Context, v Visitor, payloads bool) context.Context {
	return context.WithValue(ctx, insiderKey{}, insider{v, payloads})
}

// asks gives the API key that a request is made with.
func (c *call) asks() (ledger.APIKey, error) {
	from, inside := c.r.Context().Value(insiderKey{}).(insider)
	if !inside {
		return c.authenticate(c.ctx, c.r.Header.Values("Authorization"))
	}
	c.blind = !from.payloads
	key, ok, err := c.keyOf(c.ctx, from.hash)
	if err == nil && !ok {
		err = unauthenticated("the API key of this session has ended", `Bearer realm="pawl", error="invalid_token"`)
	}
	return key, err
}

// reasonHeader carries why something is done.
const reasonHeader = "Pawl-Reason"

// explained reports whether calls of the route may say why they are made: those
// that change what is already there.
func (rt route) explained() bool {
	return rt.method != http.MethodGet && (rt.scope == ledger.ScopeOperate || rt.scope == ledger.ScopeAdmin)
}

// reasonGiven reads the header Pawl-Reason.
func (c *call) reasonGiven(rt route) (string, error) {
	lines := c.r.Header.Values(reasonHeader)
	if len(lines) == 0 || !rt.explained() {
		return "", nil
	}
	if len(lines) > 1 || !plainText(lines[0], maxDescription) || !utf8.ValidString(lines[0]) {
		return "", refuse(http.StatusBadRequest, "invalid_request", reasonHeader+" must be one line of at most 1000 bytes of UTF-8, without control characters")
	}
	return lines[0], nil
}

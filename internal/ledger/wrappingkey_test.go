package ledger

import (
	"testing"

	"github.com/pawlhq/pawl"
)

// A wrapping key is added once, retired once and comes back anew; what it
// sealed the root into goes when it is retired.
func TestWrappingKeys(t *testing.T) {
	w := newWorld(t)
	expect(t, "unknown", w.do(RetireWrappingKey{Name: "w1"}).Err.Kind, pawl.NotFound)
	expect(t, "added", w.do(AddWrappingKey{Name: "w1", Root: "r1"}).Reason, "added")
	made := WrappingKey{Name: "w1", Root: "r1", CreatedAt: w.now}
	expect(t, "row", w.wrapping["w1"], made)
	w.now++
	again := w.do(AddWrappingKey{Name: "w1", Root: "another"})
	expect(t, "added twice", again.Value.(WrappingKey), made)
	expect(t, "retired", w.do(RetireWrappingKey{Name: "w1"}).Reason, "retired")
	expect(t, "row", w.wrapping["w1"], WrappingKey{Name: "w1", CreatedAt: made.CreatedAt, RetiredAt: w.now})
	expect(t, "comes back", w.do(AddWrappingKey{Name: "w1", Root: "r2"}).Reason, "added")
	expect(t, "row", w.wrapping["w1"], WrappingKey{Name: "w1", Root: "r2", CreatedAt: w.now})
	var actions []string
	for _, a := range w.audits {
		actions = append(actions, a.Action+" "+a.Subject+a.Detail)
	}
	expect(t, "audits", len(actions), 3)
	expect(t, "audit", actions[1], "wrapping_key.retire w1")
}

// Secrets are sealed anew only if the row still holds what was opened, and
// nothing else of the row changes: nobody can see it.
func TestRewrap(t *testing.T) {
	was, now := SealedPair{"s1", "s0"}, SealedPair{"n1", "n0"}
	id := pawl.NewID(start, 900)
	w := newWorld(t)
	w.do(CreateEndpoint{Endpoint: Endpoint{ID: id, Tenant: "acme", URL: "https://example.com", Secret: was.Current, FormerSecret: was.Former}})
	w.do(CreateKey{Key: APIKey{ID: id, Tenant: "acme", WebhookSecret: was.Current, FormerSecret: was.Former}})
	endpoint, key, audits := w.endpoints[id], w.apiKeys[id], len(w.audits)
	w.now++
	for what, c := range map[string]Rewrap{"endpoint": {Endpoint: id, Was: was, Now: now}, "API key": {APIKey: id, Was: was, Now: now}} {
		stale := c
		stale.Was.Current = "another"
		expect(t, what+" that was changed", w.do(stale).Reason, "version")
		stale = c
		stale.Was.Former = ""
		expect(t, what+" whose former secret was changed", w.do(stale).Reason, "version")
		expect(t, what, w.do(c).Reason, "rewrapped")
		expect(t, what+" once more", w.do(c).Reason, "unchanged")
	}
	endpoint.Secret, endpoint.FormerSecret = now.Current, now.Former
	key.WebhookSecret, key.FormerSecret = now.Current, now.Former
	expect(t, "endpoint", w.endpoints[id], endpoint)
	expect(t, "key", w.apiKeys[id], key)
	expect(t, "audits", len(w.audits), audits)
	nobody := pawl.NewID(start, 901)
	for _, c := range []Rewrap{{Endpoint: nobody}, {APIKey: nobody}} {
		expect(t, "no such row", w.do(c).Reason, "not_found")
	}
	expect(t, "rows", len(w.endpoints)+len(w.apiKeys), 2)
}

// What is deleted signs nothing any more, so its secrets go.
func TestDeletedEndpointHasNoSecret(t *testing.T) {
	w := newWorld(t)
	id := pawl.NewID(start, 900)
	w.do(CreateEndpoint{Endpoint: Endpoint{ID: id, Tenant: "acme", URL: "https://example.com", Secret: "s1", FormerSecret: "s0"}})
	w.do(ChangeEndpoint{ID: id, Action: "delete", Change: EndpointChange{Delete: true}})
	ep := w.endpoints[id]
	expect(t, "deleted", ep.DeletedAt.IsSet(), true)
	expect(t, "secrets", SealedPair{ep.Secret, ep.FormerSecret}, SealedPair{})
}

// Only what NewSealed wrote has parts.
func TestSealedParts(t *testing.T) {
	for text, want := range map[Sealed]struct {
		key, box string
		sealed   bool
	}{
		NewSealed("k", []byte{0xfb, 0xff, 0}): {"k", "\xfb\xff\x00", true},
		"sealed:1:k:-_8A":                     {"k", "\xfb\xff\x00", true},
		"sealed:1:k:-_8B":                     {"k", "\xfb\xff\x01", true},
		"sealed:1:k:-_9":                      {"k", "", true}, // bits left over
		"sealed:1:k:-_8A=":                    {"k", "", true},
		"sealed:1:k:-_8A\n":                   {"k", "", true},
		"sealed:1:k:":                         {"k", "", true},
		"sealed:1:k":                          {"", "", false},
		"sealed:2:k:-_8A":                     {"", "", false},
		"whsec_c2VjcmV0":                      {"", "", false},
		"":                                    {"", "", false},
	} {
		key, box, sealed := text.Parts()
		if key != want.key || string(box) != want.box || sealed != want.sealed {
			t.Errorf("%q: %q %q %v, want %+v", text, key, box, sealed, want)
		}
	}
}

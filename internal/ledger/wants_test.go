package ledger

import (
	"testing"

	"github.com/pawlhq/pawl"
)

// What endpoints are told that name no types. The events of media-v2 have no
// version, so that one of these from before the end, when it comes late, would take
// the job back (7-rules R43); it does not matter how the endpoint was made.
func TestWantsWithoutTypes(t *testing.T) {
	for _, tt := range []struct {
		scheme, types, kind string
		want                bool
	}{
		{"standard-webhooks", "", pawl.TypeRunning, true},
		{"body-timestamp", "", pawl.TypeRunning, true}, // Its events have one.
		{"body-timestamp", "", pawl.TypeUnconfirmed, true},
		{"media-v2", "", pawl.TypeRunning, false},
		{"media-v2", "", pawl.TypeUnconfirmed, false},
		{"media-v2", "", pawl.TypeProgress, false},
		{"media-v2", "", pawl.TypeSucceeded, true},
		{"media-v2", "", pawl.TypeFailed, true},
		{"media-v2", "", pawl.TypeSettled, true},
		{"media-v2", "operation.failed,operation.running", pawl.TypeRunning, true},
	} {
		for _, kind := range []EndpointKind{WebhookEndpoint, CallbackEndpoint} {
			if got := wants(Endpoint{Tenant: "t", Kind: kind, Scheme: tt.scheme, Types: tt.types}, tt.kind); got != tt.want {
				t.Errorf("kind %d, scheme %s, types %q, %s: %v", kind, tt.scheme, tt.types, tt.kind, got)
			}
		}
	}
}

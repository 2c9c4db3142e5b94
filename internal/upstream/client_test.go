package upstream

import (
	"net/netip"
	"testing"

	"github.com/pawlhq/pawl/internal/egress"
)

// newClient may reach loopback, where the tests' servers are.
func newClient(t testing.TB) *egress.Client {
	t.Helper()
	policy, err := egress.NewPolicy(netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
	if err != nil {
		t.Fatal(err)
	}
	client := egress.NewClient(policy, egress.Options{})
	t.Cleanup(client.Close)
	return client
}

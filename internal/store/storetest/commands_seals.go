package storetest

import (
	"context"
	"fmt"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// sealing is what the keys of the secrets go through, and what a restored
// ledger does.
func sealing() []Generator {
	name := func(t *rapid.T) string { return pick(t, "wrapping key", "w1", "w2") }
	return []Generator{
		{Name: "AddWrappingKey", Make: func(t *rapid.T, l Live) ledger.Command {
			return ledger.AddWrappingKey{Header: l.Header, Name: name(t), Root: "root"}
		}},
		{Name: "RetireWrappingKey", Make: func(t *rapid.T, l Live) ledger.Command {
			return ledger.RetireWrappingKey{Header: l.Header, Name: name(t)}
		}},
		{Name: "SealAudits", Make: func(t *rapid.T, l Live) ledger.Command {
			before, err := l.LatestAuditSeal(context.Background())
			if err != nil {
				panic(err)
			}
			all, err := l.Audits(context.Background(), store.AuditFilter{}, wide)
			a, ok := pickRow(t, "audit", all, err)
			if !ok {
				return nil
			}
			seal := ledger.AuditSeal{Number: before.Number + 1, Last: a.ID, Lines: 1, SealedAt: l.Header.Now, MAC: [32]byte{byte(before.Number + 1)}}
			seal.Number -= pick[int64](t, "stale", 0, 0, 0, 1)
			return ledger.SealAudits{Header: l.Header, Seal: seal, Before: before}
		}},
		{Name: "DoubtCreate", Make: func(t *rapid.T, l Live) ledger.Command {
			op, up, ok := l.operation(t)
			if !ok {
				return nil
			}
			return ledger.DoubtCreate{Header: l.Header, Operation: op.ID, Since: op.CreatedAt, Credential: pick(t, "credential", up.Credential, [8]byte{7})}
		}},
		{Name: "Rewrap", Make: func(t *rapid.T, l Live) ledger.Command {
			// Sealed is what it was, or what somebody else has made of it since.
			again := ledger.Sealed(fmt.Sprint("s", rapid.IntRange(2, 4).Draw(t, "again")))
			c := ledger.Rewrap{Header: l.Header}
			if rapid.Bool().Draw(t, "key") {
				all, err := l.APIKeys(context.Background(), store.APIKeyFilter{}, wide)
				row, ok := pickRow(t, "key", all, err)
				if !ok {
					return nil
				}
				c.APIKey, c.Was = row.ID, ledger.SealedPair{Current: row.WebhookSecret, Former: row.FormerSecret}
			} else {
				all, err := l.Endpoints(context.Background(), store.EndpointFilter{Kind: ledger.WebhookEndpoint}, wide)
				row, ok := pickRow(t, "endpoint", all, err)
				if !ok {
					return nil
				}
				c.Endpoint, c.Was = row.ID, ledger.SealedPair{Current: row.Secret, Former: row.FormerSecret}
			}
			c.Was.Current = pick(t, "was", c.Was.Current, c.Was.Current, "stale")
			c.Now = ledger.SealedPair{Current: again, Former: c.Was.Former}
			return c
		}},
	}
}

package postgres

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
)

// TestClaimRemovedMeanwhile: a claim that one node finds and another removes
// before the first has its lock is free: whoever wants it gets it, and no error.
func TestClaimRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b := openTest(t, url), openTest(t, url)
	prepared := store.NewBatcher(a, store.Options{})
	run(t, prepared, ledger.EnsureTenant{Header: store.NewHeader(""), Name: "acme", Currency: "USD", Opening: 1_000_000_000})
	ended := func(s ledger.Submit) pawl.ID {
		id := run(t, prepared, s)[0].Value.(ledger.Submitted).Operation.ID
		run(t, prepared, ledger.Cancel{Header: store.NewHeader(""), Operation: id, Up: upstream})
		return id
	}
	t.Run("idempotency key", func(t *testing.T) {
		s := submission(1)
		s.Window = time.Microsecond
		first := ended(s)
		_, again := meet(t, a, b, ledger.ForgetKey{
			Header: store.NewHeader(""), Key: ledger.IdempotencyKeyID{Tenant: s.Tenant, Value: s.Key}, Before: pawl.TimeOf(time.Now().Add(time.Hour)),
		}, submission(1))
		if got := again.Value.(ledger.Submitted); got.Replayed || got.Operation.ID == first {
			t.Errorf("%+v, want an operation of its own", got)
		}
	})
	t.Run("correlation id", func(t *testing.T) {
		s := submission(2)
		s.CorrelationID = "order 2"
		first := ended(s)
		next := submission(3)
		next.CorrelationID = s.CorrelationID
		_, again := meet(t, a, b, ledger.EraseOperation{
			Header: store.NewHeader(""), Operation: first, Whose: s.Tenant, Correlation: s.CorrelationID,
		}, next)
		if got := again.Value.(ledger.Submitted); got.Replayed || got.Operation.ID == first {
			t.Errorf("%+v, want an operation of its own", got)
		}
	})
	check(t, a)
}

// indexedTexts are the columns of text that indexes hold. PostgreSQL refuses a
// row whose part in an index is longer than 2,704 bytes, each time that it comes
// again. All of these are bounded to 255 bytes where they come from: names of the
// configuration, ids that callers and providers give, and hosts of links.
var indexedTexts = []string{
	"accounts.tenant", "api_keys.tenant", "artifacts.host", "artifacts.tenant", "audits.action", "audits.actor", "audits.subject", "audits.tenant",
	"budgets.currency", "budgets.name", "correlations.tenant", "correlations.value", "deliveries.tenant", "endpoint_sets.tenant", "endpoints.tenant",
	"event_keys.external_id", "event_keys.source", "event_keys.task", "events.external_id", "events.source", "events.task", "events.tenant",
	"idempotency_keys.tenant", "idempotency_keys.value",
	"operations.correlation_id", "operations.currency", "operations.model", "operations.request_id", "operations.tenant", "operations.upstream",
	"operations.upstream_request_id", "queues.tenant", "queues.upstream", "replays.tenant", "reviews.tenant", "sources.name",
	"tasks.task", "tasks.upstream", "tenants.name", "unknown_types.source", "unknown_types.tenant", "wrapping_keys.name",
}

// TestIndexedTextsAreShort: no index holds a text that may be long.
func TestIndexedTextsAreShort(t *testing.T) {
	t.Parallel()
	d := openTest(t, pgtest.Database(t))
	err := d.each(t.Context(), "read the schema", `SELECT DISTINCT r.relname || '.' || a.attname FROM pg_index i JOIN pg_class r ON r.oid = i.indrelid
		JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = ANY(i.indkey) AND a.atttypid = 'text'::regtype WHERE r.relnamespace = 'public'::regnamespace`,
		nil, func(row [][]byte) error {
			if name := string(row[0]); !slices.Contains(indexedTexts, name) {
				t.Errorf("an index holds %s: is it short, whoever names it?", name)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLongAddresses: an address to call back that is as long as one may be, and
// a link whose host is longer than any name, are no different from others.
func TestLongAddresses(t *testing.T) {
	t.Parallel()
	d := openTest(t, pgtest.Database(t))
	b := store.NewBatcher(d, store.Options{})
	run(t, b, ledger.EnsureTenant{Header: store.NewHeader(""), Name: "acme", Currency: "USD", Opening: 1_000_000_000})
	s := submission(0)
	s.CallbackURL, s.CallbackScheme = "https://receiver.example/"+noise(8000), "standard-webhooks"
	op := run(t, b, s)[0].Value.(ledger.Submitted).Operation
	e := callback(0)
	e.Token, e.Obs.Result = op.ID, `{"file":"https://`+noise(4000)+`/file"}`
	if got := run(t, b, e)[0].Value.(ledger.Received).Verdict; got != pawl.Applied {
		t.Errorf("verdict %v, want applied", got)
	}
	check(t, d)
}

// noise is letters that no compression makes shorter than an index takes.
func noise(n int) string {
	dice := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, n)
	for i := range text {
		text[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[dice.IntN(36)]
	}
	return string(text)
}

package exercise

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// bind makes an operation and binds it to its task by the commands of the main
// job: a submit under a key, the durable claim, the provider's acceptance.
// Nothing goes over the wire: the provider's answer is the fixture's.
func (c *core) bind(ctx context.Context, bound FixtureOperation) (pawl.ID, error) {
	policy := c.up().Policy()
	key, err := c.key(ctx)
	if err != nil {
		return pawl.ID{}, err
	}
	made, err := c.do(ctx, ledger.Submit{
		Header: store.NewHeader(""), Tenant: tenant, APIKey: key, Key: "bind-" + bound.Task, Window: deadline,
		Fingerprint: sha256.Sum256([]byte(bound.Task)), Up: policy, Model: "exercise", Input: "{}",
		Deadline: pawl.TimeOf(time.Now().Add(deadline)),
	})
	if err != nil {
		return pawl.ID{}, err
	}
	id := made.(ledger.Submitted).Operation.ID
	leased, err := c.do(ctx, ledger.LeaseWork{
		Header: store.NewHeader(""), Queue: ledger.WorkQueueID(ledger.SubmitQueue, policy.Name, tenant), Limit: 1, Up: policy,
	})
	if err != nil {
		return id, err
	}
	leases := leased.([]ledger.Lease)
	if len(leases) != 1 || leases[0].Operation.ID != id || leases[0].Action != ledger.ActSubmit {
		return id, errors.New("the submitted operation was not leased for its create")
	}
	_, err = c.do(ctx, ledger.RecordCreate{
		Header: store.NewHeader(""), Up: policy, Operation: id, Fence: leases[0].Fence, Outcome: ledger.CreateAccepted, Task: bound.Task, Status: 200,
	})
	if err != nil {
		return id, err
	}
	return id, c.firstWord(ctx, id, bound)
}

// firstWord records the state word that the acceptance named: what was learned
// counts under any lease (7-rules §4), and no read is counted for it.
func (c *core) firstWord(ctx context.Context, id pawl.ID, bound FixtureOperation) error {
	_, err := c.do(ctx, ledger.ObserveStatus{
		Header: store.NewHeader(""), Up: c.up().Policy(), Operation: id, Outcome: ledger.ReadObserved, Message: "as accepted",
		Obs: ledger.Observation{Task: bound.Task, Word: bound.Word, State: c.fix.spec.States[bound.Word], Progress: -1},
	})
	return err
}

// key makes the API key that submits. Its secret is drawn, hashed and
// forgotten: nobody calls with it.
func (c *core) key(ctx context.Context) (pawl.ID, error) {
	if _, err := c.do(ctx, ledger.EnsureTenant{Header: store.NewHeader(""), Name: tenant}); err != nil {
		return pawl.ID{}, err
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:])
	id := store.NewID()
	_, err := c.do(ctx, ledger.CreateKey{Header: store.NewHeader(""), Key: ledger.APIKey{
		ID: id, Tenant: tenant, Name: "exercise", Hash: sha256.Sum256(secret[:]), Scopes: ledger.ScopeSubmit,
	}})
	return id, err
}

// endpoint makes the endpoint that outcomes are delivered to: every end of an
// operation and nothing else.
func (c *core) endpoint(ctx context.Context, url string) error {
	v, err := c.ring.vault(ctx)
	if err != nil {
		return err
	}
	id := store.NewID()
	sealed, err := v.Seal(ctx, id, c.ring.secret(forEndpoint))
	if err != nil {
		return err
	}
	_, err = c.do(ctx, ledger.CreateEndpoint{Header: store.NewHeader(""), Endpoint: ledger.Endpoint{
		ID: id, Tenant: tenant, URL: url, Scheme: "standard-webhooks", Secret: sealed,
		Types: pawl.TypeSucceeded + "," + pawl.TypeFailed + "," + pawl.TypeCanceled + "," + pawl.TypeExpired,
	}})
	return err
}

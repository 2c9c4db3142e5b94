package store

import (
	"context"
	"errors"
	"hash/fnv"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Lanes are committers side by side over one driver, so that a node has several
// transactions under way where the database takes several. All commands of a
// tenant go to one lane: its account, queues and endpoints are loaded and written
// once a batch there, and lanes seldom wait for each other. The driver's locks
// keep lanes apart as they keep nodes apart, so a command in another lane than
// its tenant's costs a wait and nothing else. What is of no tenant goes to the
// first lane. Its methods are safe for concurrent use.
type Lanes struct {
	lanes []*Committer
	homes homes
}

// NewLanes starts n lanes, one at least. The bounds of the options are those of
// each lane, and OnCommit is called by all of them, at the same time too.
// [Lanes.Drain] ends them; the driver is closed by its owner after that.
func NewLanes(d Driver, n int, opts Options) *Lanes {
	l := new(Lanes)
	if told := opts.withDefaults().OnCommit; n > 1 {
		opts.OnCommit = func(c Commit) {
			l.homes.learn(c.Rows)
			told(c)
		}
	}
	for range max(n, 1) {
		l.lanes = append(l.lanes, NewCommitter(d, opts))
	}
	return l
}

// Do is [Committer.Do] in the command's lane.
func (l *Lanes) Do(ctx context.Context, command ledger.Command) (ledger.Outcome, error) {
	return do(ctx, command, l.lane)
}

// DoAll is [Committer.DoAll]: those of one lane share a commit as far as there
// is room.
func (l *Lanes) DoAll(ctx context.Context, commands ...ledger.Command) []Result {
	return doAll(ctx, commands, l.lane)
}

// Count is how many lanes there are.
func (l *Lanes) Count() int { return len(l.lanes) }

// Waiting is how many commands are in the queues now, for metrics.
func (l *Lanes) Waiting() (n int) {
	for _, c := range l.lanes {
		n += c.Waiting()
	}
	return n
}

// Turned is [Committer.Turned] of the lane that is longest at one batch.
func (l *Lanes) Turned() time.Time {
	oldest := time.Now()
	for _, c := range l.lanes {
		if at := c.Turned(); at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// Drain refuses further commands and returns when all that were accepted are
// answered, or with the context's error before that.
func (l *Lanes) Drain(ctx context.Context) error {
	errs := make([]error, len(l.lanes))
	var all sync.WaitGroup
	for i, c := range l.lanes {
		all.Go(func() { errs[i] = c.Drain(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// lane is that of the tenant whose rows a request asks for.
func (l *Lanes) lane(r *request) *Committer {
	if len(l.lanes) == 1 {
		return l.lanes[0]
	}
	tenant := r.keys.Tenant()
	for id := range r.keys.Owned() {
		if tenant != "" {
			break
		}
		tenant = l.homes.tenant(id)
	}
	if tenant == "" {
		return l.lanes[0]
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(tenant))
	return l.lanes[sum.Sum32()%uint32(len(l.lanes))]
}

// maxHomes bounds how many rows' tenants are remembered, twice over.
const maxHomes = 50_000

// homes tells the tenants of rows that commits have shown: most commands name
// an operation or an endpoint and no tenant. The later half of what was learned
// is kept at least.
type homes struct {
	mu          sync.Mutex
	young, aged map[pawl.ID]string
}

func (h *homes) learn(rows *ledger.Rows) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, op := range rows.Operations.All() {
		h.put(id, op.Tenant)
	}
	for id, ep := range rows.Endpoints.All() {
		h.put(id, ep.Tenant)
	}
}

func (h *homes) put(id pawl.ID, tenant string) {
	if len(h.young) >= maxHomes || h.young == nil {
		h.young, h.aged = make(map[pawl.ID]string), h.young
	}
	h.young[id] = tenant
}

func (h *homes) tenant(id pawl.ID) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if tenant, ok := h.young[id]; ok {
		return tenant
	}
	return h.aged[id]
}

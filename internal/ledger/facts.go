package ledger

import "github.com/pawlhq/pawl"

// Facts is everything the ledger holds about one operation.
type Facts struct {
	Operation Operation
	Keys      []IdempotencyKey
	// Correlation is the claim of its own correlation id, by whatever operation.
	Correlation Correlation
	Tasks       []Task
	History     []History
	Inbound     []Event
	EventKeys   []EventKey
	Outbound    []Event
	Deliveries  []Delivery
	Entries     []Entry
	// Budgets are those of its budgets that exist.
	Budgets []Budget
	Reviews []Review
	// Artifacts are all that its results ever had, in the order of ids.
	Artifacts []Artifact
	// Endpoints are those that may want the operation's events: the living
	// webhook endpoints of its tenant and the one that its callback_url became.
	Endpoints []Endpoint
}

// AccountFacts is an account beside the sums of its journal.
type AccountFacts struct {
	Account Account
	// Funded, Spent and Reserved are sums over entries: into minus out of the
	// bucket (Funded: out minus into, since money comes from there).
	Funded, Spent, Reserved pawl.Amount
	// Held is the sum of the reservations of operations whose money is held.
	Held pawl.Amount
}

// BudgetFacts is a budget beside what the operations that it counts hold and
// have cost.
type BudgetFacts struct {
	Budget  Budget
	Counted pawl.Amount
}

// EndpointFacts is an endpoint beside what its deliveries say.
type EndpointFacts struct {
	Endpoint Endpoint
	Queue    Queue
	// Numbered counts deliveries with a sequence, Highest is the largest one,
	// Distinct counts different ones.
	Numbered, Highest, Distinct int64
	// FirstGap is the lowest number from 1 on that no delivery has, 0 for none.
	FirstGap int64
}

// LooseFacts are rows that hang on nothing they should hang on.
type LooseFacts struct {
	// EventsWithoutKey took a key by their verdict, and no key row names them.
	EventsWithoutKey []Event
	// EventsMiscounted are of a generic source, and their counts or their state are
	// not those of their deliveries.
	EventsMiscounted []Event
	// ParkedWithOperation are parked although their task's operation is known.
	ParkedWithOperation []Event
	// TasksWithoutOperation name an operation that does not exist.
	TasksWithoutOperation []Task
	// DeliveriesWithoutEvent name an event that does not exist.
	DeliveriesWithoutEvent []Delivery
	// EntriesWithoutAccount name an account that does not exist.
	EntriesWithoutAccount []Entry
	// KeysWithoutOperation name an operation that does not exist.
	KeysWithoutOperation []IdempotencyKey
}

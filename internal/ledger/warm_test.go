package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// TestHotPathsDoNotMiss: one load by Keys and Follow holds all that a batch of
// the ordinary commands asks for.
func TestHotPathsDoNotMiss(t *testing.T) {
	up := upstream()
	w := stage(t)
	w.repeat = false
	var batch []Command
	for i := range 4 {
		key := fmt.Sprint("created", i)
		op := w.submit(up, key, 2)
		l := w.lease(up, op.ID, ActSubmit)
		if i == 0 { // an orphan waits for its task
			w.event(up, pawl.ID{}, "orphan", obs("task-"+key, pawl.Running))
		}
		batch = append(batch, RecordCreate{Up: up, Operation: op.ID, Fence: l.Fence, Outcome: CreateAccepted, Task: "task-" + key})
	}
	for i := range 4 {
		op := w.running(up, fmt.Sprint("called", i), 2)
		c := ReceiveEvent{Up: up, Token: op.ID, Event: "e", Obs: obs(op.Task, pawl.Succeeded)}
		if i%2 == 0 {
			c.Token = pawl.ID{}
		}
		batch = append(batch, c, c)
	}
	for i := range 4 {
		op := w.running(up, fmt.Sprint("read", i), 2)
		l := w.lease(up, op.ID, ActRead)
		batch = append(batch, ObserveStatus{Up: up, Operation: op.ID, Fence: l.Fence, Outcome: ReadObserved, Obs: obs(op.Task, pawl.Failed)})
	}
	for i := range 4 {
		key := fmt.Sprint("new", i)
		batch = append(batch, Submit{Tenant: tenant, APIKey: apiKey, Key: key, Fingerprint: digest(key), Window: time.Hour, Up: up, Deadline: deadline,
			Metered: true, Price: pawl.Money{Amount: 2, Currency: "USD"}, CallbackURL: "https://c.example/"})
	}
	w.tick(time.Second)
	for i, row := range w.do(LeaseDeliveries{Endpoint: hookID, Limit: 4, Timeout: time.Second}).Value.([]Delivery) {
		batch = append(batch, RecordAttempt{Delivery: row.ID, Endpoint: hookID, Fence: row.Lease, Policy: DefaultPolicy(), Status: []int32{200, 500, 400, 410}[i]})
	}
	batch = append(batch,
		LeaseWork{Queue: WorkQueueID(SubmitQueue, "s", tenant), Limit: 8, Up: up},
		LeaseWork{Queue: WorkQueueID(ReadQueue, "s", tenant), Limit: 8, Up: up},
		ReceiveEvent{Up: up, Event: "e", Obs: obs("nobody's", pawl.Succeeded)},
		ReceiveEvent{Up: up, Event: "odd", Obs: obs("nobody's", pawl.Succeeded), Preset: pawl.UnknownType})

	rows := new(Rows)
	// The installation's endpoints are missed by what tells of something, once a
	// batch (see notify).
	k := Keys{EndpointSets: []string{""}}
	for _, c := range batch {
		c.Keys(&k)
	}
	w.load(&k, rows)
	d := NewDraft(rows)
	for i, c := range batch {
		if out, miss := d.Run(w.with(c), w.now); miss != nil || out.Err != nil {
			t.Errorf("%d %T: %v, misses %+v", i, c, out, miss)
		}
	}
	w.save(rows)
	w.sound()
}

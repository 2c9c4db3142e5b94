package ledger

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// warm loads what a batch of commands needs, so that only deciding is measured.
func warm(b *testing.B, w *world, commands ...Command) *Draft {
	rows := new(Rows)
	var k Keys
	for _, c := range commands {
		c.Keys(&k)
	}
	w.load(&k, rows)
	b.ReportAllocs()
	return NewDraft(rows)
}

// decide runs one command of a batch; its head has its own seed.
func decide(b *testing.B, d *Draft, now pawl.Time, c Command) {
	if out, miss := d.Run(c, now); miss != nil || out.Err != nil {
		b.Fatal(out, miss)
	}
}

func seed(i int) (h Header) {
	binary.BigEndian.PutUint64(h.Seed[:], uint64(i)+1<<40)
	return h
}

const batchSize = 256

func BenchmarkSubmit(b *testing.B) {
	w := stage(b)
	commands := make([]Command, batchSize)
	for i := range commands {
		key := fmt.Sprint("k", i)
		commands[i] = Submit{Header: seed(i), Tenant: tenant, APIKey: apiKey, Key: key, Fingerprint: digest(key), Window: time.Hour, Up: upstream(), Input: "{}", Deadline: deadline}
	}
	var d *Draft
	for i := 0; b.Loop(); i++ {
		if i%batchSize == 0 {
			b.StopTimer()
			d = warm(b, w, commands...)
			b.StartTimer()
		}
		decide(b, d, w.now, commands[i%batchSize])
	}
}

func BenchmarkReceiveEvent(b *testing.B) {
	w := stage(b)
	commands := make([]Command, batchSize)
	for i := range commands {
		op := w.running(upstream(), fmt.Sprint("k", i), 0)
		commands[i] = ReceiveEvent{Header: seed(i), Up: upstream(), Token: op.ID, Event: "e", Obs: obs(op.Task, pawl.Succeeded), Body: "{}"}
	}
	var d *Draft
	for i := 0; b.Loop(); i++ {
		if i%batchSize == 0 {
			b.StopTimer()
			d = warm(b, w, commands...)
			b.StartTimer()
		}
		decide(b, d, w.now, commands[i%batchSize])
	}
}

func BenchmarkRecordAttempt(b *testing.B) {
	w := stage(b)
	w.repeat = false
	for i := range batchSize {
		w.running(upstream(), fmt.Sprint("k", i), 0)
	}
	w.tick(time.Second)
	var commands []Command
	for i, row := range w.do(LeaseDeliveries{Endpoint: hookID, Limit: batchSize, Timeout: time.Second}).Value.([]Delivery) {
		commands = append(commands, RecordAttempt{Header: seed(i), Delivery: row.ID, Endpoint: hookID, Fence: row.Lease, Policy: DefaultPolicy(), Status: 200})
	}
	var d *Draft
	for i := 0; b.Loop(); i++ {
		if i%batchSize == 0 {
			b.StopTimer()
			d = warm(b, w, commands...)
			b.StartTimer()
		}
		decide(b, d, w.now, commands[i%batchSize])
	}
}

package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/pawltest"
)

// stage lets examples have what tests have.
type stage struct {
	testing.TB
	ctx  context.Context
	ends []func()
}

func (*stage) Helper()                    {}
func (s *stage) Context() context.Context { return s.ctx }
func (s *stage) Cleanup(end func())       { s.ends = append(s.ends, end) }
func (*stage) Fatal(args ...any)          { log.Panic(args...) }
func (*stage) Fatalf(f string, a ...any)  { log.Panicf(f, a...) }
func (*stage) Error(args ...any)          { log.Panic(args...) }
func (s *stage) TempDir() string {
	dir, err := os.MkdirTemp("", "pawl")
	if err != nil {
		log.Panic(err)
	}
	s.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// example is a server to talk to; done ends it.
func example() (p *pawltest.Pawl, done func()) {
	s := &stage{ctx: context.Background()}
	p = pawltest.New(s, pawltest.Options{})
	return p, func() {
		for i := len(s.ends) - 1; i >= 0; i-- {
			s.ends[i]()
		}
	}
}

// A job is handed in once, however many answers are lost on the way, and its end
// is waited for.
func ExampleClient_Submit() {
	pawl, done := example()
	defer done()
	pawl.Upstream.Script(pawltest.Script{Result: map[string]string{"text": "a film"}, Cost: "0.12"})

	c, err := client.New(client.Options{Server: pawl.URL, Key: pawl.Key})
	if err != nil {
		log.Panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	op, err := c.Submit(ctx, client.Submission{
		Upstream: "test", Model: "kling-2", Input: map[string]string{"prompt": "a red kite"},
		CorrelationID: "order-7", // Two clicks are still one job.
	})
	if err != nil {
		log.Panic(err)
	}
	op, err = c.Wait(ctx, op.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(op.State, string(op.Result), op.Cost)
	// Output: succeeded {"text":"a film"} 0.120000000 USD
}

// A refusal says why in a word for programs.
func ExampleProblem() {
	p, done := example()
	defer done()
	_, err := p.Client.Submit(context.Background(), client.Submission{
		Upstream: "test", Model: "m", Input: struct{}{}, ExpectedCost: &client.Money{Amount: 1000 * pawl.AmountScale, Currency: "USD"},
	})
	fmt.Println(errors.Is(err, client.ErrPayment), errors.Is(err, &client.Problem{Reason: "insufficient_credit"}))
	// Output: true true
}

// A receiver that was away finds what it missed.
func ExampleClient_Missed() {
	p, done := example()
	defer done()
	ctx := context.Background()
	feed, err := p.Client.CreateEndpoint(ctx, client.NewEndpoint{Types: []string{"order.paid"}})
	if err != nil {
		log.Panic(err)
	}
	for n := 1; n <= 3; n++ {
		if _, err := p.Client.Publish(ctx, fmt.Sprint("order-", n), "order.paid", n); err != nil {
			log.Panic(err)
		}
	}
	seen := client.NewSeen(1) // What it wrote down last time.
	seen.Add(3)               // One came since; it has a gap before it.

	for event, err := range p.Client.Missed(ctx, feed.ID, seen) {
		if err != nil {
			log.Panic(err)
		}
		fmt.Println("missed", event.ID)
		seen.Add(event.Sequence)
	}
	fmt.Println("nothing is missing up to", seen.Until())
	// Output:
	// missed order-2
	// nothing is missing up to 3
}

// A worker does the operations of an upstream with preset: worker.
func ExampleWorker() {
	c, err := client.New(client.Options{Server: "https://pawl.example.com"})
	if err != nil {
		log.Panic(err)
	}
	worker := client.Worker{Client: c, Concurrency: 4, Do: func(ctx context.Context, job *client.Job) (client.Done, error) {
		var input struct{ Prompt string }
		if err := json.Unmarshal(job.Operation.Input, &input); err != nil {
			return client.Done{}, &client.Failure{Code: pawl.FailInvalidRequest, Message: "the input has no prompt"}
		}
		for percent := 0.0; percent < 100; percent += 10 {
			if err := job.Progress(ctx, percent, "rendering"); err != nil || ctx.Err() != nil {
				return client.Done{}, ctx.Err() // Canceled, or another worker has it.
			}
		}
		return client.Done{Result: map[string]string{"file": "film.mp4"}}, nil
	}}
	if err := worker.Run(context.Background()); err != nil {
		log.Panic(err)
	}
}

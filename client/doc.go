// Package client talks to a Pawl over its HTTP API.
//
// Make one [Client] with [New] and share it; it is safe for concurrent use.
// Most programs need four of its methods:
//
//	c, err := client.New(client.Options{Server: "https://pawl.example.com", Key: client.Secret(os.Getenv("PAWL_KEY"))})
//	op, err := c.Submit(ctx, client.Submission{Upstream: "studio", Model: "kling-2", Input: input})
//	op, err = c.Wait(ctx, op.ID)
//	op, err = c.Cancel(ctx, op.ID)
//
// # Repeats
//
// Every call that is safe to repeat is repeated: after an answer that never
// came, and after 429 or 503, as long as the context and [Options.Attempts]
// allow. A call that creates something has one Idempotency-Key over all its
// tries, made once unless it is given, so that a job is never begun twice by a
// lost answer. Calls that no key protects (a new endpoint, a new API key, a new
// secret) are repeated only where the first try cannot have been carried out.
//
// # Errors
//
// What the server refuses is a [*Problem]; it says why in a stable word, and is
// matched by errors.Is with [ErrNotFound] and the others, or with a
// &Problem{Reason: "insufficient_credit"}. What was never answered is a
// [*Unanswered]. Neither holds an API key, a secret or anything of a payload.
//
// # Receiving
//
// A receiver of webhooks verifies with package webhook, reads the body with
// [ParseEvent], and finds what it missed with [Client.Missed]. A program without
// an address of its own follows a feed with [Client.Feed]. Own workers take
// operations with a [Worker].
package client

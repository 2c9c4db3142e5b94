package webhook_test

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// A sender signs each attempt afresh; here with the example secret of the Standard
// Webhooks documentation.
func ExampleScheme_Sign() {
	scheme, _ := webhook.Lookup("standard-webhooks")
	key, err := scheme.ParseKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		fmt.Println(err)
		return
	}
	header, err := scheme.Sign(webhook.Message{
		ID:        "msg_p5jXN8AQM9LWM0D4loKWxJek",
		Timestamp: 1614265330,
		Body:      []byte(`{"test": 2432232314}`),
	}, key)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(header.Get("webhook-id"))
	fmt.Println(header.Get("webhook-timestamp"))
	fmt.Println(header.Get("webhook-signature"))
	// Output:
	// msg_p5jXN8AQM9LWM0D4loKWxJek
	// 1614265330
	// v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
}

// A receiver verifies the raw body with every secret that is in force, and keeps
// the event id to recognise repeats.
func ExampleScheme_Verify() {
	scheme, _ := webhook.Lookup("standard-webhooks")
	key, err := scheme.ParseKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		fmt.Println(err)
		return
	}
	request := webhook.Request{
		Header: http.Header{
			"Webhook-Id":        {"msg_p5jXN8AQM9LWM0D4loKWxJek"},
			"Webhook-Timestamp": {"1614265330"},
			"Webhook-Signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
		},
		Body: []byte(`{"test": 2432232314}`),
	}
	now := time.Unix(1614265331, 0) // time.Now() in a real receiver
	verified, err := scheme.Verify(request, now, key)
	fmt.Println(verified.ID, err)

	request.Body = []byte(`{"test": 2432232315}`)
	_, err = scheme.Verify(request, now, key)
	fmt.Println(errors.Is(err, webhook.ReasonNoMatch))
	// Output:
	// msg_p5jXN8AQM9LWM0D4loKWxJek <nil>
	// true
}

// A sender with Ed25519 gives its receivers a key that only verifies.
func ExampleKey_PublicKey() {
	scheme, _ := webhook.Lookup("standard-webhooks-v1a")
	secret, err := scheme.NewSecret(nil) // keep it as you keep passwords
	if err != nil {
		fmt.Println(err)
		return
	}
	signing, err := scheme.ParseKey(secret)
	if err != nil {
		fmt.Println(err)
		return
	}
	header, err := scheme.Sign(webhook.Message{ID: "evt_1", Timestamp: 1790000000, Body: []byte("{}")}, signing)
	if err != nil {
		fmt.Println(err)
		return
	}

	// A receiver needs no secret: this text may be published.
	public, err := scheme.ParseKey(signing.PublicKey())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = scheme.Verify(webhook.Request{Header: header, Body: []byte("{}")}, time.Unix(1790000000, 0), public)
	fmt.Println(err)
	// Output: <nil>
}

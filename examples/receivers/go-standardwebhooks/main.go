// Command go-standardwebhooks receives webhooks with the official library for Go.
// WEBHOOK_SECRET is the endpoint's.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	webhook, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
	if err != nil || os.Getenv("WEBHOOK_SECRET") == "" {
		log.Fatal("WEBHOOK_SECRET is not a secret that begins with whsec_")
	}
	var seen sync.Map // Keep the ids where the work is: see package inbox.
	listener, err := net.Listen("tcp", "127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "3000"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || webhook.Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		id := r.Header.Get("webhook-id")
		if _, duplicate := seen.LoadOrStore(id, true); duplicate {
			fmt.Fprint(w, "duplicate")
			return
		}
		var event struct{ Test bool }
		switch err := json.Unmarshal(body, &event); {
		case err != nil:
			log.Print("this is no JSON: ", id)
		case event.Test:
			fmt.Println("a test event; nothing has happened", id)
		default:
			fmt.Println(r.Header.Get("pawl-endpoint-sequence"), id) // The work goes here.
		}
		w.WriteHeader(http.StatusNoContent)
	})))
}

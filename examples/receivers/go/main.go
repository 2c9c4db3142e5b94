// Command go receives webhooks with nothing but Go's standard library; see
// package webhook for a verifier of all schemes. WEBHOOK_SECRET is the endpoint's.
package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// verified holds one of the signatures against the bytes as they came.
func verified(key, body []byte, h http.Header) bool {
	id, at := h.Get("webhook-id"), h.Get("webhook-timestamp")
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	mine, good := []byte("v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))), false
	for _, theirs := range strings.Fields(h.Get("webhook-signature")) {
		good = good || hmac.Equal([]byte(theirs), mine)
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	return good && err == nil && time.Since(time.Unix(seconds, 0)).Abs() <= 5*time.Minute
}

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("WEBHOOK_SECRET"), "whsec_"))
	if err != nil || len(key) == 0 {
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
		if err != nil || !verified(key, body, r.Header) {
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

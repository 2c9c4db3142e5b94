package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// The secrets of the bench. They protect nothing.
const (
	providerSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	sinkSecret     = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
)

// child is one of the processes around the node: it listens, prints its
// address and serves until its standard input ends.
func child(role string) {
	handlers := map[string]http.Handler{"bare": http.HandlerFunc(bareHandler), "provider": newProvider(), "sink": &sink{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(l.Addr().String())
	go func() { _ = http.Serve(l, handlers[role]) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func scheme(secret string) (webhook.Scheme, webhook.Key) {
	s, _ := webhook.Lookup("standard-webhooks")
	k, err := s.ParseKey(secret)
	if err != nil {
		panic(err)
	}
	return s, k
}

var bareScheme, bareKey = scheme(providerSecret)

func bareHandler(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	if err == nil {
		_, err = bareScheme.Verify(webhook.Request{Header: r.Header, Body: body}, time.Now(), bareKey)
	}
	if err != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// provider accepts every create. An input with "hold" stays running; any other
// is called back as succeeded, settled, at once.
type provider struct {
	tasks  atomic.Int64
	calls  chan call
	client *http.Client
}

type call struct{ url, task string }

func newProvider() *provider {
	p := &provider{calls: make(chan call, 1<<16), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}}
	for range 64 {
		go p.callBack()
	}
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var create struct {
		Input struct {
			Hold bool `json:"hold"`
		} `json:"input"`
		CallbackURL string `json:"callback_url"`
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&create) != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	task := "sim-" + strconv.FormatInt(p.tasks.Add(1), 10)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, `{"task":%q,"state":"queued","request_id":"r-%s"}`, task, task)
	if !create.Input.Hold {
		p.calls <- call{create.CallbackURL, task}
	}
}

func (p *provider) callBack() {
	s, k := scheme(providerSecret)
	for c := range p.calls {
		id := "evt_" + c.task
		body := fmt.Appendf(nil, `{"id":%q,"type":"task.updated","task":%q,"state":"succeeded","cost":"0.1","currency":"USD","settled":true,"result":{"text":"%s"}}`, id, c.task, padding[:600])
		for post(p.client, c.url, body, s, k, id) != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func post(client *http.Client, url string, body []byte, s webhook.Scheme, k webhook.Key, id string) error {
	header, err := s.Sign(webhook.Message{ID: id, Timestamp: time.Now().Unix(), Body: body}, k)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	if res.StatusCode >= 300 {
		return fmt.Errorf("answered %d", res.StatusCode)
	}
	return nil
}

// sink verifies deliveries and counts the successes; GET answers the count.
type sink struct{ done atomic.Int64 }

var sinkScheme, sinkKey = scheme(sinkSecret)

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		fmt.Fprint(w, s.done.Load())
		return
	}
	body, _ := io.ReadAll(r.Body)
	if _, err := sinkScheme.Verify(webhook.Request{Header: r.Header, Body: body}, time.Now(), sinkKey); err != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if bytes.Contains(body[:min(len(body), 120)], []byte(`"type":"operation.succeeded"`)) {
		s.done.Add(1)
	}
	w.WriteHeader(http.StatusNoContent)
}

var padding = string(bytes.Repeat([]byte("lorem ipsum dolor sit amet "), 64))

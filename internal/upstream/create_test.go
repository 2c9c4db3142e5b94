package upstream

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
)

var someCreate = CreateRequest{Model: "m", Input: []byte(`{"n":1}`), IdempotencyKey: "op_1"}

// The classes of 1-product B4, word for word. 204 and 206 are a "2xx without a
// readable task id" here; 406, 410, 418 and 600 are in no list.
func TestCreateClassesEveryStatus(t *testing.T) {
	want := map[ledger.CreateOutcome][]int{
		ledger.CreateRefused:      {300, 301, 302, 303, 304, 307, 308, 400, 404, 405, 413, 415, 422, 451},
		ledger.CreateUnauthorized: {401, 403},
		ledger.CreateWait:         {402, 429},
		ledger.CreateUnknown:      {200, 201, 202, 204, 206, 406, 408, 409, 410, 418, 425, 500, 501, 502, 503, 504, 529, 599},
	}
	var status atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(int(status.Load()))
	}))
	defer server.Close()
	client := newClient(t)
	for _, preset := range Presets() {
		u := testUpstream(t, preset, server.URL)
		for outcome, codes := range want {
			for _, code := range codes {
				status.Store(int64(code))
				got := u.Create(t.Context(), client, someCreate)
				if got.Outcome != outcome || got.Task != "" || got.Status != code {
					t.Errorf("%s: HTTP %d: %v, task %q, status %d; want %v", preset, code, got.Outcome, got.Task, got.Status, outcome)
				}
				if (got.Failure != "") != (outcome == ledger.CreateRefused || outcome == ledger.CreateWait) {
					t.Errorf("%s: HTTP %d: failure %q of a %v", preset, code, got.Failure, outcome)
				}
			}
		}
	}
}

func TestCreateAnswers(t *testing.T) {
	cases := []struct {
		name, preset string
		status       int
		header, body string
		want         ledger.CreateOutcome
		failure      pawl.FailureCode
		reason       string
		retryAfter   time.Duration
	}{
		{name: "task id", preset: "sim", status: 200, body: `{"task":"a"}`, want: ledger.CreateAccepted},
		{name: "integer task id", preset: "sim", status: 200, body: `{"task":12}`, want: ledger.CreateAccepted},
		{name: "unknown word beside the id", preset: "sim", status: 202, body: `{"task":"a","state":"dreaming"}`, want: ledger.CreateAccepted},
		{name: "no task id", preset: "sim", status: 200, body: `{"state":"queued"}`, want: ledger.CreateUnknown, reason: ReasonMissingTask},
		{name: "null task id", preset: "sim", status: 200, body: `{"task":null}`, want: ledger.CreateUnknown, reason: ReasonMissingTask},
		{name: "boolean task id", preset: "sim", status: 200, body: `{"task":true}`, want: ledger.CreateUnknown, reason: ReasonMissingTask},
		{name: "empty task id", preset: "sim", status: 200, body: `{"task":""}`, want: ledger.CreateUnknown, reason: ReasonMissingTask},
		{name: "task id that leads elsewhere", preset: "sim", status: 200, body: `{"task":".."}`, want: ledger.CreateUnknown, reason: ReasonMissingTask},
		{name: "task id with a line break", preset: "sim", status: 200, body: `{"task":"a\nb"}`, want: ledger.CreateUnknown, reason: ReasonMissingTask},
		{name: "task id twice", preset: "sim", status: 200, body: `{"task":"a","task":"b"}`, want: ledger.CreateUnknown, reason: ReasonMalformedJSON},
		{name: "half an object", preset: "sim", status: 200, body: `{"task":"a"`, want: ledger.CreateUnknown, reason: ReasonMalformedJSON},
		{name: "a page instead of JSON", preset: "sim", status: 200, body: `<html>`, want: ledger.CreateUnknown, reason: ReasonMalformedJSON},
		{name: "envelope 200", preset: "media-v2", status: 200, body: `{"code":200,"data":{"taskId":"a"}}`, want: ledger.CreateAccepted},
		{name: "envelope 0", preset: "media-v2", status: 200, body: `{"code":0,"msg":"SUCCEED","data":{"taskId":"a"}}`, want: ledger.CreateAccepted},
		{name: "error status, envelope 0", preset: "media-v2", status: 400, body: `{"code":0,"data":{"taskId":"a"}}`, want: ledger.CreateUnknown, reason: ReasonContradiction},
		{name: "envelope code as a string", preset: "media-v2", status: 200, body: `{"code":"429","data":null}`, want: ledger.CreateWait, failure: pawl.FailRateLimited},
		{name: "no funds", preset: "sim", status: 402, want: ledger.CreateWait, failure: pawl.FailUnavailable},
		{name: "no funds, in one of the nine words", preset: "sim", status: 402, body: `{"error":{"code":"rate_limited"}}`, want: ledger.CreateWait, failure: pawl.FailRateLimited},
		{name: "envelope 401", preset: "media-v2", status: 200, body: `{"code":401}`, want: ledger.CreateUnauthorized},
		{name: "envelope 500", preset: "media-v2", status: 200, body: `{"code":500,"data":{"taskId":"a"}}`, want: ledger.CreateUnknown},
		{name: "envelope 422", preset: "media-v2", status: 200, body: `{"code":422}`, want: ledger.CreateRefused, failure: pawl.FailInvalidRequest},
		{name: "envelope that is no status", preset: "media-v2", status: 200, body: `{"code":1008}`, want: ledger.CreateUnknown, reason: ReasonContradiction},
		{name: "error status, success envelope", preset: "media-v2", status: 400, body: `{"code":200,"data":{"taskId":"a"}}`, want: ledger.CreateUnknown, reason: ReasonContradiction},
		{name: "refused status, other envelope", preset: "media-v2", status: 400, body: `{"code":500}`, want: ledger.CreateUnknown, reason: ReasonContradiction},
		{name: "gateway's page", preset: "media-v2", status: 404, body: `<html>`, want: ledger.CreateRefused, failure: pawl.FailInvalidRequest},
		{name: "one of the nine", preset: "sim", status: 400, body: `{"error":{"code":"invalid_asset"}}`, want: ledger.CreateRefused, failure: pawl.FailInvalidAsset},
		{name: "legal reasons", preset: "sim", status: 451, want: ledger.CreateRefused, failure: pawl.FailContentRejected},
		{name: "redirect", preset: "sim", status: 307, header: "Location: /x", want: ledger.CreateRefused, failure: pawl.FailUpstream},
		{name: "wait 7 s", preset: "sim", status: 429, header: "Retry-After: 7", want: ledger.CreateWait, failure: pawl.FailRateLimited, retryAfter: 7 * time.Second},
		{name: "wait nonsense", preset: "sim", status: 429, header: "Retry-After: -7", want: ledger.CreateWait, failure: pawl.FailRateLimited},
		{name: "busy, wait", preset: "sim", status: 503, header: "Retry-After: 9", want: ledger.CreateUnknown, retryAfter: 9 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var sent atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				sent.Add(1)
				if name, value, ok := strings.Cut(c.header, ": "); ok {
					w.Header().Set(name, value)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			got := testUpstream(t, c.preset, server.URL).Create(t.Context(), newClient(t), someCreate)
			if got.Outcome != c.want || got.Failure != c.failure || got.Reason != c.reason || got.RetryAfter != c.retryAfter {
				t.Errorf("got %v %q %q %v, want %v %q %q %v",
					got.Outcome, got.Failure, got.Reason, got.RetryAfter, c.want, c.failure, c.reason, c.retryAfter)
			}
			if (got.Task != "") != (c.want == ledger.CreateAccepted) {
				t.Errorf("task %q with %v", got.Task, got.Outcome)
			}
			if sent.Load() != 1 {
				t.Errorf("%d requests were sent", sent.Load())
			}
		})
	}
}

// rawServer answers each connection with act after it has read one request.
func rawServer(t *testing.T, act func(net.Conn)) (address string, seen *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	seen = &atomic.Int64{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for r := bufio.NewReader(conn); ; {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					seen.Add(1)
					act(conn)
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String(), seen
}

func TestCreateOnABadWire(t *testing.T) {
	t.Run("answer cut in the middle", func(t *testing.T) {
		for _, head := range []string{
			"HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n{\"task\":\"a\"",
			"HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\n{",
		} {
			address, _ := rawServer(t, func(c net.Conn) { _, _ = io.WriteString(c, head); _ = c.Close() })
			got := testUpstream(t, "sim", address).Create(t.Context(), newClient(t), someCreate)
			if got.Outcome != ledger.CreateUnknown || got.Reason != ReasonCut || got.Task != "" {
				t.Errorf("%.12s: %+v, want unknown", head, got)
			}
		}
	})
	t.Run("no answer", func(t *testing.T) {
		address, seen := rawServer(t, func(c net.Conn) { _ = c.Close() })
		got := testUpstream(t, "sim", address).Create(t.Context(), newClient(t), someCreate)
		if got.Outcome != ledger.CreateUnknown || seen.Load() != 1 {
			t.Errorf("%+v after %d requests, want unknown after one", got, seen.Load())
		}
	})
	t.Run("no answer in time", func(t *testing.T) {
		hold := make(chan struct{})
		address, _ := rawServer(t, func(net.Conn) { <-hold })
		defer close(hold)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		got := testUpstream(t, "sim", address).Create(ctx, newClient(t), someCreate)
		if got.Outcome != ledger.CreateUnknown || got.Reason != "timeout" {
			t.Errorf("%+v, want unknown by timeout", got)
		}
	})
	t.Run("connection refused", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := "http://" + listener.Addr().String()
		_ = listener.Close()
		got := testUpstream(t, "sim", address).Create(t.Context(), newClient(t), someCreate)
		if got.Outcome != ledger.CreateNotWritten || got.Reason != "connect" {
			t.Errorf("%+v, want not written", got)
		}
	})
	t.Run("address forbidden", func(t *testing.T) {
		got := testUpstream(t, "sim", "https://10.1.2.3").Create(t.Context(), newClient(t), someCreate)
		if got.Outcome != ledger.CreateUnauthorized || got.Reason != ReasonEgress {
			t.Errorf("%+v, want configuration", got)
		}
	})
}

// O-008: on a kept connection that dies under the request, Go would send a POST
// with an Idempotency-Key again.
func TestCreateIsSentOnceOnADyingConnection(t *testing.T) {
	const accepted = `{"code":200,"data":{"taskId":"a"}}`
	var answers atomic.Int64
	address, seen := rawServer(t, func(c net.Conn) {
		if answers.Add(1) == 1 {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(accepted), accepted)
			return
		}
		_ = c.Close()
	})
	u, client := testUpstream(t, "media-v2", address), newClient(t)
	if got := u.Create(t.Context(), client, someCreate); got.Outcome != ledger.CreateAccepted {
		t.Fatalf("warming up: %+v", got)
	}
	got := u.Create(t.Context(), client, someCreate)
	if got.Outcome != ledger.CreateUnknown || seen.Load() != 2 {
		t.Errorf("%v after %d requests, want unknown after two", got.Outcome, seen.Load())
	}
}

func TestCreateForwardsInputAsReceived(t *testing.T) {
	inputs := []string{
		`{"big":9007199254740993,"one":1.0,"exp":1E+2,"neg":-0.0}`,
		"{ \"b\":1.0, \"a\":\"x\\/y\",\"a2\":\"\\u00e9\" ,\n\t\"html\":\"<&>\" }",
		`[1,2.50]`, `null`, `"text"`, `12345678901234567890123456789.10`,
	}
	for i, input := range inputs {
		var body []byte
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { body, _ = io.ReadAll(r.Body) }))
		testUpstream(t, "sim", server.URL).Create(t.Context(), newClient(t), CreateRequest{Model: `a"b`, Input: []byte(input)})
		server.Close()
		if want := `{"model":"a\"b","input":` + input + `}`; string(body) != want {
			t.Errorf("input %d: sent %s, want %s", i, body, want)
		}
	}
}

func TestCreateRefusesInputThatCannotBeSent(t *testing.T) {
	u := testUpstream(t, "sim", "https://up.example.com")
	for _, input := range []string{``, `{`, `{"a":1,"a":2}`, `{} {}`, "\"\xff\""} {
		got := u.Create(t.Context(), newClient(t), CreateRequest{Model: "m", Input: []byte(input)})
		if got.Outcome != ledger.CreateRefused || got.Failure != pawl.FailInvalidRequest || got.Reason != ReasonInput {
			t.Errorf("input %q: %+v, want refused", input, got)
		}
	}
}

func TestCreateBodyFromTemplate(t *testing.T) {
	u := testUpstream(t, "sim", "https://up.example.com")
	u.spec.Create.Body = []Member{
		{From: FromInput, Pointer: "/args"},
		{Name: "seed", From: FromInput, Pointer: "/seed"},
		{Name: "stream", From: FromValue, Value: "false"},
		{Name: "hook", From: FromCallbackURL},
		{Name: "ref", From: FromClientRef},
	}
	cases := []struct{ name, input, hook, want string }{
		{"all", `{"args":{ "x":1.0 },"seed":18446744073709551617}`, "https://h", `{"x":1.0,"seed":18446744073709551617,"stream":false,"hook":"https://h","ref":"op"}`},
		{"nothing to spread", `{"args":{}}`, "", `{"stream":false,"ref":"op"}`},
		{"absent part", `{}`, "", `{"stream":false,"ref":"op"}`},
		{"spread of no object", `{"args":[1]}`, "", ""},
		{"input that sets our own member", `{"args":{"hook":"https://evil"}}`, "https://h", ""},
	}
	for _, c := range cases {
		body, err := u.createBody(values{input: []byte(c.input), callbackURL: c.hook, clientRef: "op"})
		if string(body) != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %s, %v; want %s", c.name, body, err, c.want)
		}
	}
}

func TestIdempotencyHeader(t *testing.T) {
	spec, _ := Preset("sim")
	settings := config.DefaultUpstream()
	settings.Key, settings.Idempotent = secret(t, "sk"), &config.Idempotent{Header: "X-Once", Window: time.Hour}
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { header = r.Header }))
	defer server.Close()
	settings.BaseURL = server.URL
	u, err := New("up", spec, settings)
	if err != nil {
		t.Fatal(err)
	}
	u.Create(t.Context(), newClient(t), someCreate)
	if got := header.Get("X-Once"); got != "op_1" {
		t.Errorf("X-Once: %q, want op_1", got)
	}
	if p := u.Policy(); !p.Idempotent || p.IdempotencyWindow != time.Hour {
		t.Errorf("policy %v %v, want idempotent for 1h", p.Idempotent, p.IdempotencyWindow)
	}
	settings.Idempotent = &config.Idempotent{}
	media, _ := Preset("media-v2")
	if u, err = New("up", media, settings); err != nil || u.Policy().Idempotent {
		t.Errorf("idempotent: false was ignored (%v)", err)
	}
}

func TestMessagesAreSafe(t *testing.T) {
	u := testUpstream(t, "sim", "https://up.example.com")
	cases := map[string]string{
		"see https://files.example.com/a?sig=1 now":     "see [link] now",
		"HTTPS:\\/\\/x/?k=1 or s3://b/k www.x.com/?t=1": "[link] or [link] [link]",
		"next=https%3A%2F%2Fx%3Ft":                      "next=[link]",
		"bad key sk-test!":                              "bad key [key]!",
		"a\x00b\u202ec\r\n\td\xff":                      "a␀b c d",
		strings.Repeat("é", 400):                        strings.Repeat("é", 256),
	}
	for in, want := range cases {
		if got := u.message(in); got != want {
			t.Errorf("message(%s) = %q, want %q", strconv.QuoteToASCII(in), got, want)
		}
	}
}

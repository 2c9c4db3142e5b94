package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	official "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// dated sends an event of the source "dated", whose scheme is body-timestamp,
// with a timestamp as it is written, signed by the formula of 2-contracts §3.
func (w *world) dated(event, timestamp string) reply {
	w.Helper()
	body := paidBody(event)
	mac := hmac.New(sha256.New, []byte(sourceSecret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return w.send(http.MethodPost, w.node.APIURL()+"/hooks/dated", body, http.Header{
		"Content-Type": {"application/json"}, "X-Webhook-Timestamp": {timestamp}, "X-Webhook-Signature": {"sha256=" + hex.EncodeToString(mac.Sum(nil))},
	})
}

func datedSource(t *testing.T) settings {
	t.Helper()
	return sources(t, map[string]string{"dated": "scheme: body-timestamp"})
}

// The unit is the scheme's: seconds. Another one is malformed, however fresh.
func TestO031TimestampInMilliseconds(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		fresh, old := time.Now(), time.Now().Add(-10*time.Minute)
		for i, tt := range []struct {
			timestamp int64
			status    int
			reason    string
		}{
			{fresh.Unix(), http.StatusAccepted, ""},
			{fresh.UnixMilli(), http.StatusUnauthorized, "malformed_timestamp"},
			{fresh.UnixMicro(), http.StatusUnauthorized, "malformed_timestamp"},
			{old.Unix(), http.StatusUnauthorized, "stale_timestamp"},
			{old.UnixMilli(), http.StatusUnauthorized, "malformed_timestamp"},
			{old.UnixMicro(), http.StatusUnauthorized, "malformed_timestamp"},
		} {
			r := w.dated(fmt.Sprint("evt_", i), fmt.Sprint(tt.timestamp))
			if r.status != tt.status || r.at("reason") != tt.reason {
				w.Errorf("%d: %d %s, want %d %s", tt.timestamp, r.status, r.body, tt.status, tt.reason)
			}
		}
	}, datedSource(t))
}

// A timestamp is judged both ways: of a source, and of a provider.
func TestO032FreshnessLooksForwardsToo(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		op, c := w.running("k")
		for i, tt := range []struct {
			ahead  time.Duration
			taken  bool
			reason string
		}{
			{24 * time.Hour, false, "future_timestamp"},
			{301 * time.Second, false, "future_timestamp"},
			{299 * time.Second, true, ""},
			{-299 * time.Second, true, ""},
			{-301 * time.Second, false, "stale_timestamp"},
		} {
			at := time.Now().Truncate(time.Second).Add(tt.ahead)
			status := http.StatusUnauthorized
			if tt.taken {
				status = http.StatusAccepted
			}
			if r := w.dated(fmt.Sprint("evt_", i), fmt.Sprint(at.Unix())); r.status != status || r.at("reason") != tt.reason {
				w.Errorf("source, %s: %d %s", tt.ahead, r.status, r.body)
			}
			progress := said{task: c.task, state: "processing", progress: fmt.Sprintf("0.%d", i+1)}
			e := event{id: fmt.Sprint("p-", i), said: progress}
			body := w.provider.render(e)
			if r := w.hook(c.callback, body, w.provider.sign(e.id, body, at)); r.status != status || r.at("reason") != tt.reason {
				w.Errorf("provider, %s: %d %s", tt.ahead, r.status, r.body)
			}
		}
		w.now(op, "running")
	}, datedSource(t))
}

// A retry of two hours later is signed when it is sent: the official library
// takes it with its window of 300 s. The event and its body are those of the
// first attempt.
func TestO034RetryIsSignedAnew(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		verifier, err := official.NewWebhook(sinkSecret)
		if err != nil {
			w.Fatal(err)
		}
		taken := new(tape)
		created, refused := time.Now(), 0
		up := created.Add(2 * time.Hour)
		taken.answer = func(int) int {
			d := taken.all()[len(taken.all())-1]
			if err := verifier.Verify(d.body, d.header); err != nil {
				w.Errorf("attempt %s: %v", d.header.Get("Pawl-Attempt"), err)
			}
			if time.Now().Before(up) {
				refused++
				return http.StatusServiceUnavailable
			}
			return http.StatusNoContent
		}
		w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/endpoints", map[string]any{"url": w.serve(taken), "secret": sinkSecret}))
		id := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/events", map[string]any{"type": "t", "data": 1})).at("id")
		w.pass(6 * time.Hour)
		all := taken.all()
		last := all[len(all)-1]
		if refused < 3 || len(all) != refused+1 || last.at.Before(up) {
			w.Fatalf("%d attempts, %d of them refused, the last at %s", len(all), refused, last.at.Sub(created))
		}
		if got := last.header.Get("Webhook-Timestamp"); got != fmt.Sprint(last.at.Unix()) {
			w.Errorf("signed at %s, sent at %d", got, last.at.Unix())
		}
		for _, d := range all {
			same(w.T, "body", d.body, all[0].body)
			if d.header.Get("Webhook-Id") != id {
				w.Errorf("attempt of %s, want %s", d.header.Get("Webhook-Id"), id)
			}
		}
		var told struct{ Timestamp time.Time }
		if err := json.Unmarshal(last.body, &told); err != nil || told.Timestamp.Sub(created).Abs() > time.Minute {
			w.Errorf("the event is of %s, %v, want %s", told.Timestamp, err, created)
		}
	})
}

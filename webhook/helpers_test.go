package webhook_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

const signedAt = 1790000000

var now = time.Unix(signedAt, 0)

func lookup(t testing.TB, name string) webhook.Scheme {
	t.Helper()
	s, ok := webhook.Lookup(name)
	if !ok {
		t.Fatalf("scheme %q is unknown", name)
	}
	return s
}

func parse(t testing.TB, s webhook.Scheme, secret string) webhook.Key {
	t.Helper()
	k, err := s.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// dialect is a second, plain implementation of each scheme: one formula each,
// written from 2-contracts §2 and §3, the Standard Webhooks specification and the
// table of 5-providers §2.
type dialect struct {
	name, secret, body string
	list               bool // may hold several signatures, with spaces between
	joined             bool // one header lists timestamp and signatures
	timeless, ageless  bool // no time is signed; none is judged
	signatureHeader    string
	sign               func(id, timestamp, body string) http.Header
}

const rawSecret = "0123456789abcdef0123456789abcdef"

// The key pair that the Standard Webhooks specification prints (4-standards §20).
const (
	publishedSigningKey = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	publishedPublicKey  = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
)

func mac(key, text string) []byte {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(text))
	return m.Sum(nil)
}

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

var dialects = []dialect{
	{
		name: "standard-webhooks", secret: "whsec_" + base64.StdEncoding.EncodeToString([]byte(rawSecret)), list: true,
		body: `{"type":"job.completed"}`, signatureHeader: "Webhook-Signature",
		sign: func(id, timestamp, body string) http.Header {
			sum := mac(rawSecret, id+"."+timestamp+"."+body)
			return headers("webhook-id", id, "webhook-timestamp", timestamp,
				"webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(sum))
		},
	},
	{
		name: "standard-webhooks-v1a", secret: publishedSigningKey, list: true,
		body: `{"type":"job.completed"}`, signatureHeader: "Webhook-Signature",
		sign: func(id, timestamp, body string) http.Header {
			key, _ := base64.StdEncoding.DecodeString(publishedSigningKey[len("whsk_"):])
			signature := ed25519.Sign(key, []byte(id+"."+timestamp+"."+body))
			return headers("webhook-id", id, "webhook-timestamp", timestamp,
				"webhook-signature", "v1a,"+base64.StdEncoding.EncodeToString(signature))
		},
	},
	{
		name: "media-v2", secret: rawSecret,
		body: `{"code":200,"data":{"taskId":"job_9"}}`, signatureHeader: "X-Webhook-Signature",
		sign: func(_, timestamp, body string) http.Header {
			digest := sha256.Sum256([]byte(body))
			sum := mac(rawSecret, "job_9."+timestamp+"."+hex.EncodeToString(digest[:]))
			return headers("x-webhook-timestamp", timestamp, "x-webhook-payload-version", "2",
				"x-webhook-signature", base64.StdEncoding.EncodeToString(sum))
		},
	},
	{
		name: "body-timestamp", secret: rawSecret,
		body: `{"id":"evt_1","data":{"version":2}}`, signatureHeader: "X-Webhook-Signature",
		sign: func(id, timestamp, body string) http.Header {
			return headers("x-webhook-id", id, "x-webhook-timestamp", timestamp,
				"x-webhook-signature", "sha256="+hex.EncodeToString(mac(rawSecret, timestamp+"."+body)))
		},
	},
	{
		name: "stripe", secret: "whsec_" + rawSecret, joined: true,
		body: `{"id":"evt_1","type":"invoice.paid"}`, signatureHeader: "Stripe-Signature",
		sign: func(_, timestamp, body string) http.Header {
			return headers("stripe-signature", "t="+timestamp+",v1="+hex.EncodeToString(mac("whsec_"+rawSecret, timestamp+"."+body)))
		},
	},
	{
		name: "github", secret: rawSecret, timeless: true, ageless: true,
		body: `{"zen":"Keep it logically awesome."}`, signatureHeader: "X-Hub-Signature-256",
		sign: func(id, _, body string) http.Header {
			return headers("x-github-delivery", id, "x-hub-signature-256", "sha256="+hex.EncodeToString(mac(rawSecret, body)))
		},
	},
	{
		name: "slack", secret: rawSecret,
		body: `{"type":"event_callback","event_id":"Ev1"}`, signatureHeader: "X-Slack-Signature",
		sign: func(_, timestamp, body string) http.Header {
			return headers("x-slack-request-timestamp", timestamp,
				"x-slack-signature", "v0="+hex.EncodeToString(mac(rawSecret, "v0:"+timestamp+":"+body)))
		},
	},
	{
		name: "zoom", secret: rawSecret, ageless: true,
		body: `{"event":"meeting.started"}`, signatureHeader: "X-Zm-Signature",
		sign: func(_, timestamp, body string) http.Header {
			return headers("x-zm-request-timestamp", timestamp,
				"x-zm-signature", "v0="+hex.EncodeToString(mac(rawSecret, "v0:"+timestamp+":"+body)))
		},
	},
	{
		name: "websub", secret: rawSecret, timeless: true, ageless: true,
		body: `{"version":"https://jsonfeed.org/version/1"}`, signatureHeader: "X-Hub-Signature",
		sign: func(_, _, body string) http.Header {
			return headers("x-hub-signature", "sha256="+hex.EncodeToString(mac(rawSecret, body)))
		},
	},
}

func dialectOf(name string) dialect {
	return dialects[slices.IndexFunc(dialects, func(d dialect) bool { return d.name == name })]
}

func (d dialect) signed(timestamp string) webhook.Request {
	return webhook.Request{Header: d.sign("evt_1", timestamp, d.body), Body: []byte(d.body)}
}

func (d dialect) fresh() webhook.Request { return d.signed(strconv.Itoa(signedAt)) }

// eachDialect runs f as a subtest for every scheme there is but rfc9421, whose
// signatures name what they cover; message_test.go is about it.
func eachDialect(t *testing.T, f func(t *testing.T, d dialect, s webhook.Scheme, k webhook.Key)) {
	t.Helper()
	if got, want := len(webhook.Names())-1, len(dialects); got != want {
		t.Fatalf("%d schemes, %d of them tested", got, want)
	}
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			s := lookup(t, d.name)
			f(t, d, s, parse(t, s, d.secret))
		})
	}
}

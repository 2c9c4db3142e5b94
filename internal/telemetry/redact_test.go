package telemetry_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/internal/telemetry"
)

// leaks are texts in which each S3KRIT… must not survive.
var leaks = []string{
	"pawl_sk_S3KRIT", "whsec_S3KRIT", "whsk_S3KRIT", "whpk_S3KRIT", "key pawl_sk_S3KRIT, and more",
	"Bearer S3KRITaa", "bearer S3KRIT.a-b", "Basic S3KRIT==", "Authorization: Bearer S3KRIT", "authorization: Key S3KRIT two", "Cookie: a=S3KRIT; b=S3KRIT",
	"Set-Cookie: S3KRIT", `{"Authorization":["Token S3KRIT"]}`, "map[Authorization:[Bearer S3KRIT]]", "map[X-Api-Key:[a S3KRIT]]",
	"https://S3KRIT@h.example/x", "https://u:S3KRIT@h.example", "https://u:pa/S3KRIT@h.example/x", "https://u:a?S3KRIT@h.example/", "postgres://u:S3KRIT@h/d?x=S3KRIT",
	"https://cdn.example/S3KRIT.mp4", "https://cdn.example/x.mp4?X-Amz-Signature=S3KRIT1&token=S3KRIT2#frag=S3KRIT3", "https://cdn.example?S3KRIT", "https://cdn.example#S3KRIT",
	"https://cdn.example/a'S3KRIT", "HTTPS://cdn.example/S3KRIT", "s3://bucket/S3KRIT", `https:\/\/cdn.example\/S3KRIT`, "https%3A%2F%2Fcdn.example%2FS3KRIT", "https%253A%252F%252Fcdn.example%252FS3KRIT",
	"http\u200bs\u200b://cdn.example/S3KRIT", "h\x00://cdn.example/S3KRIT", "//cdn.example/S3KRIT", "(//cdn.example/S3KRIT)", "https://[::1]:80/S3KRIT", `Get "https://h.example/S3KRIT": EOF`, "https://h.example,https://i.example/S3KRIT",
	"data:video/mp4;base64,S3KRIT", "data:,S3KRIT", "/v1/x?token=S3KRIT", "/x?a[b]=S3KRIT&c=S3KRIT",
	"/hooks/studio/S3KRIT", "POST /hooks/studio/S3KRIT/S3KRIT HTTP/1.1", "h.example/hooks/s/S3KRIT",
	"v1,S3KRIT+/=", "v1,aaaa v1,S3KRIT", "v1a,S3KRIT", "t=1,v1=S3KRIT", "sha256=S3KRIT", "SHA256=S3KRIT", "sha1=S3KRIT",
	"sk-S3KRIT", "sk_live_S3KRIT", "r8_S3KRIT", "AKIAS3KRIT", "eyJhbGciOi.S3KRIT.x",
	"secret=S3KRIT", "a=b&client_secret=S3KRIT&c=d", "password:S3KRIT", "api_key=S3KRIT", "apikey='S3KRIT x'", `token="S3KRIT x"`, "X-Webhook-Signature:S3KRIT", "user=u password=S3KRIT dbname=d",
	`{"token":"S3KRIT"}`, `{"token" : "a\"S3KRIT"}`, `{"webhook_secret":"S3KRIT`, `{\"token\":\"S3KRIT\"}`, `{"prompt":"a S3KRIT"}`, `{"input":{"a":["S3KRIT"]}}`, `{"result": [1,{"x":"S3KRIT"}]}`, `{"metadata":{"a":"S3KRIT"}}`, "{\"body\":\n\"S3KRIT\"}", `{"key":12S3KRIT}`,
	"{Token:S3KRIT Next:1}", "{Prompt:a long S3KRIT Next:1}", "&{Input:map[a:S3KRIT]}", "prompt=a\nS3KRIT",
	"invalid api key: S3KRIT-0123456789", "bad token: S3KRITabcdef",
}

func TestRedactRemoves(t *testing.T) {
	for _, text := range leaks {
		for _, around := range []string{"", "x: ", "before "} {
			if got := telemetry.Redact(around + text); strings.Contains(got, "S3KRIT") {
				t.Errorf("%q gives %q", around+text, got)
			}
		}
	}
}

func TestRedactKeeps(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", ""},
		{"submit: studio: connection refused", "submit: studio: connection refused"},
		{"read body: unexpected EOF", "read body: unexpected EOF"},
		{"invalid token: expired", "invalid token: expired"},
		{"op_01h455vb4pex5vsknk084sn02q", "op_01h455vb4pex5vsknk084sn02q"},
		{"task 550e8400-e29b-41d4-a716-446655440000", "task 550e8400-e29b-41d4-a716-446655440000"},
		{"video_68d7512d07848190b3e45da0ecbebcde004da08e1e0678d5", "video_68d7512d07848190b3e45da0ecbebcde004da08e1e0678d5"},
		{"POST /hooks/{source}/{token}", "POST /hooks/{source}/{token}"},
		{"GET /v1/operations/{id}", "GET /v1/operations/{id}"},
		{"POST /hooks/stripe", "POST /hooks/stripe"},
		{"dial tcp 10.0.0.1:443: i/o timeout", "dial tcp 10.0.0.1:443: i/o timeout"},
		{"https://h.example", "https://h.example"},
		{"https://h.example/", "https://h.example"},
		{"https://h.example:8443/a?b=c", "https://h.example:8443/…"},
		{"see https://h.example, or ask", "see https://h.example, or ask"},
		{`Post "https://u:p@h.example/a?b": EOF`, `Post "https://h.example/…": EOF`},
		{"http://[::1]:80/x", "http://[::1]:80/…"},
		{"Bearer abcdef", "Bearer [redacted]"},
		{"/hooks/studio/abc", "/hooks/studio/[redacted]"},
		{`{"token":"abc","state":"ok"}`, `{"token":[redacted],"state":"ok"}`},
		{"a\r\nlevel=ERROR\x1b[31m\u2028\u202e\x00", `a\r\nlevel=ERROR\u001b[31m\u2028\u202e\u0000`},
		{"tab\there", `tab\there`},
		{"café 東京", "café 東京"},
		{"a\xffb", `a\ufffdb`},
	}
	for _, tt := range tests {
		if got := telemetry.Redact(tt.text); got != tt.want {
			t.Errorf("%q gives %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	tests := []struct{ name, body, kind, want string }{
		{"empty", "", "text/plain", ""},
		{"text", "try later", "text/plain; charset=utf-8", "try later"},
		{"no type", "try later", "", "try later"},
		{"no type and no text", "\xff\xfe", "", "[2 bytes, not text]"},
		{"binary type", "\x89PNG", "image/png", "[4 bytes, not text]"},
		{"NUL in text", "a\x00b", "text/plain", "[3 bytes, not text]"},
		{"JSON", `{"error": "no credit", "code": 9007199254740993}`, "application/json", `{"code":9007199254740993,"error":"no credit"}`},
		{"JSON by structure", `{"a":{"result":{"x":"y"},"url":"https://h.example/x"},"api_key":["k"]}`, "application/problem+json", `{"a":{"result":"[redacted]","url":"https://h.example/…"},"api_key":"[redacted]"}`},
		{"lines", "a\nb", "text/plain", `a\nb`},
		{"form", "error=x&token=abc", "application/x-www-form-urlencoded", "error=x&token=[redacted]"},
		{"cut", strings.Repeat("é", 100), "text/plain", strings.Repeat("é", 30) + "…"},
	}
	for _, tt := range tests {
		most := 100
		if tt.name == "cut" {
			most = 64
		}
		if got := telemetry.Excerpt([]byte(tt.body), tt.kind, most); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Whatever stands around a leak, and wherever an excerpt is cut, nothing of it
// survives and the excerpt is one bounded printable line.
func TestExcerptHoldsNothing(t *testing.T) {
	kinds := []string{"", "text/plain", "application/json", "text/html", "application/xml"}
	rapid.Check(t, func(t *rapid.T) {
		leak := rapid.SampledFrom(leaks).Draw(t, "leak")
		pad := rapid.StringMatching(`([a-z]{1,9} ){0,12}`).Draw(t, "pad")
		if rapid.Bool().Draw(t, "long") {
			pad = strings.Repeat("word ", 3270) + pad
		}
		most := rapid.IntRange(0, 20000).Draw(t, "max")
		got := telemetry.Excerpt([]byte(pad+leak), rapid.SampledFrom(kinds).Draw(t, "kind"), most)
		if strings.Contains(got, "S3KRIT") {
			t.Fatalf("%q", got)
		}
		checkPrintable(t, got, most)
	})
}

func checkPrintable(t interface{ Fatalf(string, ...any) }, got string, most int) {
	if len(got) > most || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Fatalf("%d bytes of at most %d: %q", len(got), most, got)
	}
}

func FuzzExcerpt(f *testing.F) {
	for _, text := range leaks {
		f.Add([]byte(text), "application/json", 100)
	}
	f.Fuzz(func(t *testing.T, body []byte, kind string, most int) {
		most = max(0, most%70000)
		checkPrintable(t, telemetry.Excerpt(body, kind, most), most)
	})
}

package webhook_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/webhook"
)

// kilobyte returns a body of d that is 1024 bytes long.
func kilobyte(d dialect) string {
	open := d.body[:len(d.body)-1] + `,"text":"`
	return open + strings.Repeat("x", 1024-len(open)-2) + `"}`
}

func BenchmarkSign(b *testing.B) {
	for _, d := range dialects {
		b.Run(d.name, func(b *testing.B) {
			s := lookup(b, d.name)
			k := parse(b, s, d.secret)
			m := webhook.Message{ID: "evt_1", Timestamp: signedAt, Body: []byte(kilobyte(d))}
			b.SetBytes(int64(len(m.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Sign(m, k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	for _, d := range dialects {
		b.Run(d.name, func(b *testing.B) {
			s := lookup(b, d.name)
			k := parse(b, s, d.secret)
			body := kilobyte(d)
			r := webhook.Request{Header: d.sign("evt_1", strconv.Itoa(signedAt), body), Body: []byte(body)}
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Verify(r, now, k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

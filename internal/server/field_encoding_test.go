package server

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"testing"
	"time"
)

// zipped is what gzip makes of bytes.
func zipped(t *testing.T, plain io.Reader) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.Copy(w, plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// zeros is an endless body.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// A body in a content encoding is refused with a reason and with the encoding
// that is taken, whichever of the two the signature is over; nothing of it is
// unpacked. At an operation's own address it makes the task be read.
func TestO027CompressedCallbackBody(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		plain := paidBody("evt_1")
		packed := zipped(w.T, bytes.NewReader(plain))
		bomb := zipped(w.T, io.LimitReader(zeros{}, 200<<20))
		if len(bomb) > 256<<10 {
			w.Fatalf("the bomb has %d bytes", len(bomb))
		}
		send := func(encoding string, signed, sent []byte) reply {
			w.Helper()
			h := signedAs(w.T, signed)
			h.Set("Content-Type", "application/json")
			h.Set("Content-Encoding", encoding)
			return w.send(http.MethodPost, w.node.APIURL()+"/hooks/payments", sent, h)
		}
		for _, tt := range []struct {
			name, encoding string
			signed, sent   []byte
		}{
			{"signed before", "gzip", plain, packed},
			{"signed after", "gzip", packed, packed},
			{"a bomb", "gzip", bomb, bomb},
			{"brotli", "br", packed, packed},
			{"one of two", "identity, gzip", packed, packed},
			{"a mere claim", "GZIP", plain, plain},
		} {
			r := send(tt.encoding, tt.signed, tt.sent)
			if r.status != http.StatusUnsupportedMediaType || r.at("reason") != "content_encoding" || r.header.Get("Accept-Encoding") != "identity" {
				w.Errorf("%s: %d %s, accepted %q", tt.name, r.status, r.body, r.header.Get("Accept-Encoding"))
			}
		}
		w.stored("")
		if got := w.get("/v1/sources/payments").at("counts.unstored.content_encoding"); got != "6" {
			w.Errorf("%s are shown, want 6", got)
		}
		e := w.want(http.StatusAccepted, send("Identity", plain, plain)).at("event_id")
		same(w.T, "stored", w.storedBody(e), plain)

		op, call := w.running("k")
		end := done(call.task)
		w.provider.say(end)
		body := zipped(w.T, bytes.NewReader(w.provider.render(event{id: "e", said: end})))
		h := w.provider.sign("e", body, time.Now())
		h.Set("Content-Encoding", "gzip")
		w.want(http.StatusUnsupportedMediaType, w.hook(call.callback, body, h))
		w.pass(time.Second)
		w.now(op, "succeeded")
	}, payments(t, ""))
}

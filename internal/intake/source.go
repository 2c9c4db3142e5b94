package intake

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// source is what may be told of a request without believing its sender.
type source struct {
	name    string
	headers []string // those that its scheme reads and the request has
	absent  []string // and those that it has not
	accept  string   // the content types that it may send
	size    int64
	digest  ledger.Digest
}

// nobody is the source of a request to no configured one.
func nobody(r *http.Request) *source {
	return &source{name: telemetry.UnknownName, size: r.ContentLength}
}

// claimed is the source that a request says it is from, whose scheme reads these
// headers.
func claimed(name string, headers []string, r *http.Request) *source {
	s := &source{name: name, accept: "application/json", size: r.ContentLength}
	for _, name := range headers {
		if len(r.Header.Values(name)) > 0 {
			s.headers = append(s.headers, name)
		} else {
			s.absent = append(s.absent, name)
		}
	}
	return s
}

// read notes the body, which has been read whole.
func (s *source) read(body []byte) { s.size, s.digest = int64(len(body)), sha256.Sum256(body) }

func (s *source) sample(now time.Time, status int, reason string) telemetry.Sample {
	out := telemetry.Sample{At: now, Reason: reason, Status: status, Size: s.size, Headers: s.headers, Absent: s.absent}
	if s.digest != (ledger.Digest{}) {
		out.Digest = hex.EncodeToString(s.digest[:])
	}
	return out
}

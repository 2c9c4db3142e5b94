package intake

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/webhook"
)

// The first lines of 7-rules §1: source and token, then size and content type,
// then the signature. What each refuses would be taken otherwise, and nothing of
// it reaches the ledger.
func TestOrderOfRefusals(t *testing.T) {
	s := &taken{}
	h, callbacks := fuzzHandler(t, s)
	token := callbacks.Token("studio", pawl.NewID(1_760_000_000_000_000, 7))
	scheme, _ := webhook.Lookup("body-timestamp")
	key, err := scheme.ParseKey(fuzzSecret)
	if err != nil {
		t.Fatal(err)
	}
	const good = `{"id":"evt_1","type":"ai.task.progress","data":{"task_id":"t","status":"running","version":3}}`
	spaces := func(n int) string { return good + strings.Repeat(" ", n-len(good)) }
	for name, c := range map[string]struct {
		path, contentType, body string
		unsigned, undeclared    bool
		status                  int
	}{
		"taken":                         {"/hooks/studio/" + token, "application/json", good, false, false, 202},
		"taken without a token":         {"/hooks/studio", "", good, false, false, 202},
		"unknown source":                {"/hooks/nobody", "application/json", good, false, false, 404},
		"unknown source before all":     {"/hooks/nobody", "text/plain", spaces(MaxBody + 1), true, false, 404},
		"forged token":                  {"/hooks/studio/" + token[:len(token)-2] + "00", "application/json", good, false, false, 404},
		"forged token before the type":  {"/hooks/studio/x", "text/plain", good, true, false, 404},
		"another content type":          {"/hooks/studio", "text/plain", good, false, false, 415},
		"two content types":             {"/hooks/studio", "application/json|text/html", good, false, false, 415},
		"the type before the signature": {"/hooks/studio", "text/plain", good, true, false, 415},
		"as large as may be":            {"/hooks/studio", "application/json", spaces(4 << 20), false, false, 202},
		"one byte more":                 {"/hooks/studio", "application/json", spaces(4<<20 + 1), false, false, 413},
		"one byte more, undeclared":     {"/hooks/studio", "application/json", spaces(4<<20 + 1), false, true, 413},
		"the size before the signature": {"/hooks/studio", "application/json", spaces(4<<20 + 1), true, true, 413},
		"no signature":                  {"/hooks/studio", "application/json", good, true, false, 401},
	} {
		s.commands = nil
		r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: c.path}, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.body)), ContentLength: int64(len(c.body)), RemoteAddr: "192.0.2.1:1"}
		if c.undeclared {
			r.ContentLength = -1
		}
		if !c.unsigned {
			if r.Header, err = scheme.Sign(webhook.Message{ID: "evt_1", Timestamp: fuzzNow.Unix(), Body: []byte(c.body)}, key); err != nil {
				t.Fatal(err)
			}
		}
		if c.contentType != "" {
			r.Header["Content-Type"] = strings.Split(c.contentType, "|")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || (len(s.commands) > 0) != (c.status == 202) {
			t.Errorf("%s: %d, %d commands, want %d", name, w.Code, len(s.commands), c.status)
		}
	}
}

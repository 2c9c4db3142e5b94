package canary_test

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// newReceiver takes deliveries. The first segment of the path is its mood: the
// bad ones echo what they were sent, as error pages of frameworks do.
func newReceiver(t *testing.T, w *watch) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.HasPrefix(r.URL.Path, "/ok/notices") {
			w.look(notices, string(body))
		} else {
			w.look(toEndpoint, string(body))
		}
		signature := cmp.Or(r.Header.Get("Webhook-Signature"), r.Header.Get("X-Webhook-Signature"))
		w.look(headersOut, fmt.Sprint(r.Header))
		w.add(ourSignature, strings.TrimPrefix(strings.TrimPrefix(signature, "v1,"), "sha256="))
		mood := strings.Split(strings.Trim(r.URL.Path, "/"), "/")[0]
		if mood == "ok" {
			rw.WriteHeader(http.StatusNoContent)
			return
		}
		kind, text := echo(mood, r, body)
		rw.Header().Set("Content-Type", kind)
		rw.Header().Set("Location", "https://"+r.Host+r.URL.RequestURI())
		if mood == "moved" {
			rw.WriteHeader(http.StatusFound)
		} else {
			rw.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(rw, text)
	}))
	t.Cleanup(s.Close)
	return s
}

// moods are those that fail.
var moods = []string{"json", "nested", "text", "python", "ruby", "html", "yaml", "headers", "moved", "cut", "encoded", "trace"}

// echo is an error page that repeats the request.
func echo(mood string, r *http.Request, body []byte) (kind, page string) {
	var event map[string]any
	_ = json.Unmarshal(body, &event)
	data, _ := event["data"].(map[string]any)
	customer, text, link := member(data, "metadata", "customer"), member(data, "result", "text"), member(data, "result", "url")
	switch mood {
	case "json":
		return "application/json", fmt.Sprintf(`{"error":"no","url":%q,"headers":{"Webhook-Signature":%q},"request":%s}`, r.URL, r.Header.Get("Webhook-Signature"), body)
	case "nested":
		page, _ := json.Marshal(map[string]string{"echo": string(body)})
		return "application/json", string(page)
	case "python":
		return "text/plain", fmt.Sprintf("KeyError: 'x' in {'data': {'metadata': {'customer': '%v'}, 'result': {'text': '%v', 'url': '%v'}}}", customer, text, link)
	case "ruby":
		return "text/plain", fmt.Sprintf(`Parameters: {"data"=>{"metadata"=>{"customer"=>"%v"}, "result"=>{"text"=>"%v", "url"=>"%v"}}}`, customer, text, link)
	case "html":
		return "text/html", "<pre>" + strings.NewReplacer(`"`, "&quot;", "<", "&lt;", "&", "&amp;").Replace(string(body)) + "</pre>"
	case "yaml":
		return "text/plain", fmt.Sprintf("data:\n  metadata:\n    customer: %v\n  result:\n    text: %v\n    url: %v\n", customer, text, link)
	case "headers":
		return "text/plain", fmt.Sprintf("%s %s\n%v\n%s", r.Method, r.URL, r.Header, data["metadata"])
	case "encoded":
		signature := strings.TrimPrefix(r.Header.Get("Webhook-Signature"), "v1,")
		return "text/plain", fmt.Sprintf("signed %s %s with %s %x", base64.StdEncoding.EncodeToString([]byte("a:"+signature)), url.QueryEscape(signature),
			base64.URLEncoding.EncodeToString([]byte("user:"+theEndpointSecretText)), theEndpointSecret)
	case "trace":
		// A framework's page for developers shows the receiver's own settings too.
		return "text/plain", fmt.Sprintf("%s in DATABASE_URL=postgres://app:%s@db.internal/shop\nAuthorization: Bearer %s", theReceiverWords, theReceiverPassword, theReceiverPassword)
	case "cut":
		// The end of the excerpt falls into the values.
		return "text/plain", strings.Repeat("x", 480-len(`"metadata":{"`)) + string(body[max(0, strings.Index(string(body), `"metadata"`)):])
	}
	return "text/plain", fmt.Sprintf("cannot take %s from %s", body, r.URL)
}

func member(data map[string]any, outer, inner string) any {
	object, _ := data[outer].(map[string]any)
	return object[inner]
}

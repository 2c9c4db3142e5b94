package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

// A request's line and headers may have 32 KiB together, and not one byte more
// (2-contracts §1). Each room refuses in its own form.
func TestHeaderLimit(t *testing.T) {
	t.Parallel()
	n := newWorld(t, "media-v2").node
	for path, c := range map[string]struct {
		method, contentType string
		within              int
	}{
		"/v1/openapi.json":        {"GET", "application/problem+json", http.StatusOK},
		"/hooks/nobody":           {"POST", "application/problem+json", http.StatusNotFound},
		"/api/v1/jobs/recordInfo": {"GET", "application/json", http.StatusUnauthorized},
		"/tasks/task_x":           {"GET", "application/json", http.StatusUnauthorized},
	} {
		for size, status := range map[int]int{32 << 10: c.within, 32<<10 + 1: http.StatusRequestHeaderFieldsTooLarge, 60 << 10: http.StatusRequestHeaderFieldsTooLarge} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(n.APIURL(), "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			around := c.method + " " + path + " HTTP/1.1\r\nHost: pawl\r\nPad: \r\n\r\n"
			head := strings.Replace(around, "Pad: ", "Pad: "+strings.Repeat("x", size-len(around)), 1)
			if _, err := fmt.Fprint(conn, head); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			var body map[string]any
			err = json.NewDecoder(answer.Body).Decode(&body)
			answer.Body.Close()
			if answer.StatusCode != status || err != nil || status != http.StatusOK && answer.Header.Get("Content-Type") != c.contentType {
				t.Errorf("%s, %d bytes: %d %s %v %v, want %d", path, size, answer.StatusCode, answer.Header.Get("Content-Type"), body, err, status)
			}
			if reason, ok := body["reason"]; ok && status == http.StatusRequestHeaderFieldsTooLarge && reason != "headers_too_large" {
				t.Errorf("%s: %v", path, body)
			}
		}
	}
}

// What the router refuses is answered in the form of every other refusal.
func TestRefusalsOfTheRouter(t *testing.T) {
	t.Parallel()
	n := newWorld(t, "media-v2").node
	for _, c := range []struct {
		method, path string
		status       int
		reason       string
	}{
		{"GET", "/hooks/x/y", 405, "method_not_allowed"}, {"PUT", "/hooks/x", 405, "method_not_allowed"}, {"POST", "/hooks/a/b/c", 404, "unknown_source"},
		{"POST", "/hooks/", 404, "unknown_source"}, {"POST", "/hooks/a/", 404, "unknown_source"}, {"DELETE", "/v1/whoami", 405, "method_not_allowed"},
		{"GET", "/v1/nothing", 404, "not_found"}, {"GET", "/nothing", 404, "not_found"},
	} {
		req, err := http.NewRequest(c.method, n.APIURL()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Status int
			Reason string
		}
		err = json.NewDecoder(answer.Body).Decode(&body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != c.status || body.Status != c.status || body.Reason != c.reason || answer.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d %s %+v %v", c.method, c.path, answer.StatusCode, answer.Header.Get("Content-Type"), body, err)
		}
		if allow := answer.Header.Get("Allow"); (allow != "") != (c.status == 405) {
			t.Errorf("%s %s: Allow %q", c.method, c.path, allow)
		}
	}
}

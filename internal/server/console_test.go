package server

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

// The console is at the admin listener alone, and what it shows is the node's.
func TestConsole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	resp, err := client.PostForm(w.node.AdminURL()+"/console/login", url.Values{"key": {adminKey}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Request.URL.Path != "/console" {
		t.Errorf("the login ends at %s with %d", resp.Request.URL, resp.StatusCode)
	}
	if got := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'") {
		t.Errorf("policy %q", got)
	}
	public, err := client.Get(w.node.APIURL() + "/console")
	if err != nil {
		t.Fatal(err)
	}
	defer public.Body.Close()
	if public.StatusCode != http.StatusNotFound {
		t.Errorf("the API's listener answers %d for the console", public.StatusCode)
	}
}

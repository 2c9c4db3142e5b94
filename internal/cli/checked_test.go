package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/pawlhq/pawl/internal/api/apitest"
)

// documents are what the nodes of these tests serve, parsed once.
var documents apitest.Documents

// checked holds everything that a node at base answers under /v1 against the
// document that it serves.
func checked(t *testing.T, base string) http.RoundTripper {
	fetch := sync.OnceValue(func() *apitest.Document {
		res, err := http.Get(base + "/v1/openapi.json")
		if err != nil {
			t.Error(err)
			return nil
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
			return nil
		}
		d, err := documents.Of(text)
		if err != nil {
			t.Error(err)
		}
		return d
	})
	return &apitest.Transport{
		Base: &http.Transport{DisableKeepAlives: true}, Report: func(fault string) { t.Error(fault) },
		Document: func(r *http.Request) *apitest.Document {
			if !strings.HasPrefix(r.URL.Path, "/v1/") {
				return nil
			}
			return fetch()
		},
	}
}

// checkedProxy stands between the commands of a script and its node.
func checkedProxy(t *testing.T, base string) *httptest.Server {
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: checked(t, base),
	})
}

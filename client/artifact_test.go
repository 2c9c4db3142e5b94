package client_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pawlhq/pawl/client"
)

// A file is fetched where the server says, without the API key, and held against
// its size and checksum.
func TestDownload(t *testing.T) {
	content := []byte("the bytes of a film")
	sum := sha256.Sum256(content)
	var asked []string
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/whole":
			_, _ = w.Write(content)
		case "/other":
			_, _ = w.Write(bytes.ToUpper(content))
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write(content)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(http.StatusGone)
		}
	}))
	t.Cleanup(files.Close)
	a := client.Artifact{ID: "art_1", Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
	for _, c := range []struct {
		link string
		want error
	}{
		{files.URL + "/whole", nil}, {files.URL + "/other", client.ErrDamaged}, {files.URL + "/cut", client.ErrDamaged},
		{files.URL + "/gone", &client.Problem{Status: http.StatusGone}},
	} {
		api, f := against(t, says(302, `{}`, "Location", c.link))
		var into bytes.Buffer
		err := api.Download(t.Context(), a, &into)
		if !errors.Is(err, c.want) || c.want == nil && !bytes.Equal(into.Bytes(), content) {
			t.Errorf("%s: %v, %q", c.link, err, into.String())
		}
		if f.call(0).URL.Path != "/v1/artifacts/art_1" {
			t.Error(f.call(0).URL)
		}
	}
	for _, header := range asked {
		if header != "" {
			t.Error("the key went to the store of files")
		}
	}
	api, _ := against(t, problem(409, "not_captured"))
	if err := api.Download(t.Context(), a, new(bytes.Buffer)); !errors.Is(err, client.ErrConflict) {
		t.Error(err)
	}
	api, _ = against(t, says(302, `{}`, "Location", "file:///etc/passwd"))
	if err := api.Download(t.Context(), a, new(bytes.Buffer)); err == nil {
		t.Error("a link to a file was followed")
	}
	api, _ = against(t, says(200, `{"items":[{"id":"art_1","state":"captured","size":3,"sha256":"x","content_type":null}]}`))
	if files, err := api.Artifacts(t.Context(), "op_1"); err != nil || len(files) != 1 || files[0].Size != 3 {
		t.Error(files, err)
	}
}

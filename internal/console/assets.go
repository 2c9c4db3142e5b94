package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"time"
)

//go:embed static
var staticFiles embed.FS

// assets are the files that pages load, by name. The address of each holds a
// digest of it, so that browsers keep it until it changes.
type assets map[string]asset

type asset struct {
	body    []byte
	digest  string
	content string
}

func loadAssets() assets {
	all := make(assets)
	files, err := fs.ReadDir(staticFiles, "static")
	if err != nil {
		panic(err) // They are part of the program.
	}
	for _, f := range files {
		body, err := fs.ReadFile(staticFiles, "static/"+f.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(body)
		content := mime.TypeByExtension(path.Ext(f.Name()))
		switch path.Ext(f.Name()) { // What the machine calls them must not matter.
		case ".js":
			content = "text/javascript; charset=utf-8"
		case ".css":
			content = "text/css; charset=utf-8"
		case ".svg":
			content = "image/svg+xml"
		case ".txt":
			content = "text/plain; charset=utf-8"
		}
		all[f.Name()] = asset{body, hex.EncodeToString(sum[:6]), content}
	}
	return all
}

// link is the address of a file.
func (a assets) link(name string) string { return "/console/static/" + name + "?v=" + a[name].digest }

func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	file, ok := a[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.URL.Query().Get("v") == file.digest {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Content-Type", file.content)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.body))
}

package capture

import (
	"encoding/hex"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Server gives captured files out by [Links]. It is an [http.Handler].
type Server struct {
	Links  Links
	Files  *Files
	Reader store.Reader
	Log    *slog.Logger
}

// ServeHTTP answers with the file, or a range of it. A link that we did not make
// is 404, whatever it names; one that has ended, or whose file is gone, is 410.
func (s Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		plain(w, http.StatusMethodNotAllowed, "only GET and HEAD")
		return
	}
	token := strings.TrimPrefix(r.URL.Path, FilesPath)
	id, until, ok := s.Links.parse(token)
	if !ok {
		plain(w, http.StatusNotFound, "no such file")
		return
	}
	a, op, err := s.find(r, id)
	switch {
	case err != nil:
		h.Set("Retry-After", "5")
		plain(w, http.StatusServiceUnavailable, "try again later")
		return
	case !s.Links.proves(token, a):
		plain(w, http.StatusNotFound, "no such file")
		return
	case time.Now().Unix() >= until:
		plain(w, http.StatusGone, "this link has ended; ask for a new one")
		return
	case a.State != pawl.ArtifactCaptured || op.Held():
		plain(w, http.StatusGone, "the file is gone")
		return
	}
	s.give(w, r, a)
}

// find loads the artifact with its operation; both are zero where there is none,
// which no token proves.
func (s Server) find(r *http.Request, id pawl.ID) (a ledger.Artifact, op ledger.Operation, err error) {
	rows := new(ledger.Rows)
	if err := s.Reader.Load(r.Context(), &ledger.Keys{Artifacts: []pawl.ID{id}}, rows); err != nil {
		return a, op, err
	}
	a, ok := rows.Artifacts.Get(id)
	if !ok {
		return ledger.Artifact{ID: id}, op, nil
	}
	err = s.Reader.Load(r.Context(), &ledger.Keys{Operations: []pawl.ID{a.Operation}}, rows)
	op, _ = rows.Operations.Get(a.Operation)
	return a, op, err
}

// give writes the file. The client names it, types it and never runs it: what is
// in it is somebody else's.
func (s Server) give(w http.ResponseWriter, r *http.Request, a ledger.Artifact) {
	file, ok, err := s.Files.open(r.Context(), a.Key())
	if err != nil || !ok {
		if err != nil {
			s.Log.ErrorContext(r.Context(), "a captured file could not be read", "artifact", a.ID.Text(pawl.PrefixArtifact), "error", err)
			plain(w, http.StatusServiceUnavailable, "the file cannot be read now")
			return
		}
		s.Log.ErrorContext(r.Context(), "a captured file is missing from the store", "artifact", a.ID.Text(pawl.PrefixArtifact))
		plain(w, http.StatusGone, "the file is gone")
		return
	}
	defer file.Close()
	h := w.Header()
	h.Set("Content-Type", a.ContentType)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": NameOf(a)}))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("ETag", `"`+hex.EncodeToString(a.SHA256[:])+`"`)
	http.ServeContent(&patient{ResponseWriter: w, control: http.NewResponseController(w)}, r, "", time.Time{}, file)
}

// NameOf is what a captured file is called: by its server's word, else by its id.
func NameOf(a ledger.Artifact) string {
	if a.Filename != "" {
		return a.Filename
	}
	name := a.ID.Text(pawl.PrefixArtifact)
	kind, _, _ := mime.ParseMediaType(a.ContentType)
	if ending, ok := endings[kind]; ok {
		return name + ending
	}
	return name
}

// endings are those of the usual types; what the machine's own table says
// differs from one to the next.
var endings = map[string]string{
	"video/mp4": ".mp4", "video/webm": ".webm", "image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif",
	"audio/mpeg": ".mp3", "audio/wav": ".wav", "application/json": ".json", "application/pdf": ".pdf", "application/zip": ".zip",
	"text/plain": ".txt", "text/csv": ".csv", "text/markdown": ".md",
}

// patient lets a download take as long as it moves: each write has its own time.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

// writeWithin is how long one write may take.
const writeWithin = time.Minute

// Write implements http.ResponseWriter.
func (p *patient) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(writeWithin)) // A writer without deadlines has no limit either.
	return p.ResponseWriter.Write(b)
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

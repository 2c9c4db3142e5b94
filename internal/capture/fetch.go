package capture

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/strict"
)

// maxHops is how many redirects are followed (7-rules R31).
const maxHops = 5

// resumes is how often one fetch goes on at once after a connection that was
// cut, as long as each brought something.
const resumes = 20

// failure is why a fetch did not bring the whole file, in words of ours.
type failure struct {
	outcome ledger.ArtifactOutcome
	message string
	after   time.Duration
	// slow says that it came too slowly to be waited for.
	slow bool
}

// Error is the message, which holds nothing of the link.
func (f *failure) Error() string { return f.message }

func again(format string, args ...any) *failure {
	return &failure{outcome: ledger.ArtifactAgain, message: fmt.Sprintf(format, args...)}
}

func refused(format string, args ...any) *failure {
	return &failure{outcome: ledger.ArtifactRefused, message: fmt.Sprintf(format, args...)}
}

// mismatch is that a whole file came, and is not what the server declared.
func mismatch(message string) *failure {
	return &failure{outcome: ledger.ArtifactMismatch, message: message}
}

// fetcher brings one file into its spool.
type fetcher struct {
	client *egress.Client
	agent  string
	max    int64
	// stall is how long a server may send nothing.
	stall time.Duration
	// window is the time over which slowest is measured, came what has come in it.
	window time.Duration
	came   *atomic.Int64
}

// errSlow is why a fetch was given up.
var errSlow = errors.New("too slow")

// watch gives a fetch up that is slower than slowest over a window, whatever
// number of requests it makes.
func (f fetcher) watch(ctx context.Context, giveUp context.CancelCauseFunc) {
	ticker := time.NewTicker(f.window)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if float64(f.came.Swap(0)) < slowest*f.window.Seconds() {
			giveUp(errSlow)
			return
		}
	}
}

// fetch goes on where the spool file stops, until it is complete. Nil means that
// it is.
func (f fetcher) fetch(ctx context.Context, link string, file *spoolFile) *failure {
	u, err := f.client.Policy().ParseURL(withoutFragment(link))
	if err != nil {
		return f.explain(err, file)
	}
	if res := resource(u); file.about.Resource != res {
		if err := file.restart(about{Resource: res, Length: -1}); err != nil {
			return again("the spool file could not be written")
		}
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	go f.watch(ctx, giveUp)
	for n := 0; ; n++ {
		switch {
		case file.about.Complete:
			return nil
		case file.size > 0 && file.size == file.about.Length:
			return f.ended(file)
		case file.size > 0 && file.about.Validator == "":
			// Nothing would prove that the rest belongs to what is here.
			file.discard()
		}
		before := file.size
		failed := f.once(ctx, u, file)
		if failed == nil {
			continue
		}
		if failed.outcome == ledger.ArtifactAgain && context.Cause(ctx) == errSlow {
			failed = again("slower than %d bytes a second: %s", slowest, bytesOf(file))
			failed.slow = true
		}
		if failed.outcome != ledger.ArtifactAgain || failed.after > 0 || file.size <= before || n == resumes || ctx.Err() != nil {
			return failed
		}
	}
}

// resource is the digest of a link without its query, which is where signatures
// are.
func resource(u *url.URL) ledger.Digest {
	return sha256.Sum256([]byte(u.Scheme + "://" + u.Host + u.EscapedPath()))
}

func withoutFragment(link string) string {
	link, _, _ = strings.Cut(link, "#")
	return link
}

// once makes one request, with its redirects, and writes what it brings.
func (f fetcher) once(ctx context.Context, u *url.URL, file *spoolFile) *failure {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The time that nothing may come: the wait for headers counts as well.
	stall := time.AfterFunc(f.stall, cancel)
	defer stall.Stop()
	answer, failed := f.follow(ctx, u, file)
	if failed != nil {
		return failed
	}
	defer answer.Close()
	until, failed := f.judge(answer, file)
	if failed != nil || file.about.Complete {
		return failed
	}
	buffer := make([]byte, 64<<10)
	for {
		n, err := answer.Read(buffer)
		stall.Reset(f.stall)
		f.came.Add(int64(n))
		if n > 0 {
			if file.size+int64(n) > f.max {
				file.discard()
				return refused("the file is larger than %d bytes", f.max)
			}
			if until > 0 && file.size+int64(n) > until {
				file.discard()
				return again("a part that is longer than it says")
			}
			if _, err := file.Write(buffer[:n]); err != nil {
				return again("the spool file could not be written")
			}
		}
		switch {
		case err == io.EOF && until > 0 && file.about.Length < 0:
			// A part of a file whose length nobody knows: whether more follows must be
			// asked.
			return again("cut: %s", bytesOf(file))
		case err == io.EOF:
			return f.ended(file)
		case errors.Is(err, egress.ErrTooLarge):
			file.discard()
			return refused("the file is larger than %d bytes", f.max)
		case err != nil:
			return f.explain(err, file)
		}
	}
}

// ended judges the end of an answer against what the server declared, never
// against the file (O-077).
func (f fetcher) ended(file *spoolFile) *failure {
	if file.about.Length >= 0 && file.size != file.about.Length {
		return again("cut: %s", bytesOf(file))
	}
	file.about.Complete = true
	if err := file.describe(); err != nil {
		return again("the spool file could not be written")
	}
	return nil
}

// bytesOf says how much of a file has come.
func bytesOf(file *spoolFile) string {
	if file.about.Length < 0 {
		return fmt.Sprintf("%d bytes of an unknown number", file.size)
	}
	return fmt.Sprintf("%d of %d bytes", file.size, file.about.Length)
}

// explain turns an error of egress into a failure. Its errors name hosts and
// causes, never a path or query.
func (f fetcher) explain(err error, file *spoolFile) *failure {
	var no *egress.Refused
	if errors.As(err, &no) {
		return refused("refused: %s", no.Reason)
	}
	var known *egress.Error
	if errors.As(err, &known) {
		if known.Cause == egress.CauseCanceled {
			return again("nothing came for a while: %s", bytesOf(file))
		}
		return again("%s: %s", known.Detail, bytesOf(file))
	}
	return again("the file could not be fetched: %s", bytesOf(file))
}

// follow sends the request and follows redirects, each hop through the guard and
// never from https to http (7-rules R31). No request carries a credential.
func (f fetcher) follow(ctx context.Context, u *url.URL, file *spoolFile) (*egress.Stream, *failure) {
	for hop := 0; ; hop++ {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
		if err != nil {
			return nil, refused("refused: the link cannot be requested")
		}
		r.Header.Set("User-Agent", f.agent)
		r.Header.Set("Accept", "*/*")
		r.Header.Set("Accept-Encoding", "identity")
		if file.size > 0 {
			r.Header.Set("Range", "bytes="+strconv.FormatInt(file.size, 10)+"-")
			r.Header.Set("If-Range", file.about.Validator)
		}
		answer, err := f.client.Open(ctx, r, egress.Limits{Timeout: longest, MaxResponse: f.max + 1})
		if err != nil {
			return nil, f.explain(err, file)
		}
		to := answer.Header.Get("Location")
		if answer.Status < 300 || answer.Status > 399 || to == "" {
			return answer, nil
		}
		answer.Close()
		if hop == maxHops {
			return nil, refused("refused: more than %d redirects", maxHops)
		}
		next, err := u.Parse(to)
		if err != nil {
			return nil, refused("refused: a redirect leads to no address")
		}
		if u.Scheme == "https" && next.Scheme != "https" {
			return nil, refused("refused: a redirect leads from https to %s", next.Scheme)
		}
		if u, err = f.client.Policy().ParseURL(withoutFragment(next.String())); err != nil {
			return nil, f.explain(err, file)
		}
	}
}

// judge decides by an answer's status and headers whether its body goes on where
// the file stops, or begins anew, or is none of it. Until is where a part ends,
// 0 where the answer is the whole file. Where no body is needed, the file is
// complete.
func (f fetcher) judge(answer *egress.Stream, file *spoolFile) (until int64, failed *failure) {
	if answer.Status == http.StatusPartialContent {
		return f.goOn(answer, file)
	}
	return 0, f.judgeWhole(answer, file)
}

func (f fetcher) judgeWhole(answer *egress.Stream, file *spoolFile) *failure {
	after, _ := strict.RetryAfter(answer.Header.Get("Retry-After"), time.Now())
	switch status := answer.Status; {
	case status == http.StatusOK:
		return f.begin(answer, file)
	case status == http.StatusRequestedRangeNotSatisfiable:
		return f.beyond(answer, file)
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status == http.StatusTooEarly, status >= 500:
		return &failure{outcome: ledger.ArtifactAgain, message: fmt.Sprintf("status %d: %s", status, bytesOf(file)), after: after}
	case status >= 400:
		return &failure{outcome: ledger.ArtifactGone, message: fmt.Sprintf("status %d: %s", status, bytesOf(file))}
	default:
		return again("status %d, which is no file", status)
	}
}

// begin starts the file anew with what a full answer says of itself.
func (f fetcher) begin(answer *egress.Stream, file *spoolFile) *failure {
	h := answer.Header
	a := about{
		Resource: file.about.Resource, Validator: validator(h), Length: answer.ContentLength, Type: mediaType(h.Get("Content-Type")),
		Encoding: strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding"))), Filename: filename(h.Get("Content-Disposition")),
		MD5: decoded(h.Get("Content-MD5"), 16), SHA256: declared(h),
	}
	if a.Encoding != "" && a.Encoding != "identity" && a.Encoding != "gzip" {
		return refused("refused: the server encodes the file in a way that was not asked for")
	}
	if err := file.restart(a); err != nil {
		return again("the spool file could not be written")
	}
	return f.fits(file)
}

// fits refuses a file that says that it is too large before it is fetched.
func (f fetcher) fits(file *spoolFile) *failure {
	if file.about.Length > f.max {
		size := file.about.Length
		file.discard()
		return refused("the file has %d bytes, and %d are the most", size, f.max)
	}
	return nil
}

// validator is what a later request can name the same entity by; empty where
// nothing would prove that it is the same. A file that was changed in the second
// in which it was sent may have been changed twice in it: such a date proves
// nothing (RFC 9110 §8.8.2.2).
func validator(h http.Header) string {
	if tag := h.Get("ETag"); strings.HasPrefix(tag, `"`) {
		return tag
	}
	changed, err := http.ParseTime(h.Get("Last-Modified"))
	sent, unsent := http.ParseTime(h.Get("Date"))
	if err != nil || unsent != nil || sent.Sub(changed) < time.Second {
		return ""
	}
	return h.Get("Last-Modified")
}

// declared is the SHA-256 that the server says the entity has (RFC 9530 and the
// older Digest), nil if it says none.
func declared(h http.Header) []byte {
	for _, name := range [...]string{"Repr-Digest", "Digest"} {
		for part := range strings.SplitSeq(h.Get(name), ",") {
			algorithm, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			if strings.EqualFold(algorithm, "sha-256") {
				return decoded(strings.Trim(value, ":"), sha256.Size)
			}
		}
	}
	return nil
}

func decoded(text string, size int) []byte {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != size || base64.StdEncoding.EncodeToString(b) != text {
		return nil
	}
	return b
}

// mediaType keeps a media type with its parameters as they are written anew, and
// drops what is none.
func mediaType(text string) string {
	kind, params, err := mime.ParseMediaType(text)
	if err != nil || len(text) > 255 {
		return ""
	}
	return mime.FormatMediaType(kind, params)
}

// maxFilename bounds the name of a file, in bytes.
const maxFilename = 200

// filename is the last part of the name that the server gives the file; empty if
// it gives none that can be shown. A link's own path is no name: it may be what
// makes the link a secret.
func filename(disposition string) string {
	_, params, err := mime.ParseMediaType(disposition)
	if err != nil {
		return ""
	}
	name := path.Base(strings.ReplaceAll(params["filename"], `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || strings.ContainsRune(`<>:"/|?*`, r) {
			return '_'
		}
		return r
	}, name)
	if strings.Trim(name, ". /_") == "" || len(name) > maxFilename || strings.Contains(name, "://") {
		return ""
	}
	return name
}

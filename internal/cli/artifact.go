package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

// artifactCmd are the commands about result files.
type artifactCmd struct {
	List artifactListCmd `cmd:"" help:"Show the files of an operation's result."`
	Get  artifactGetCmd  `cmd:"" help:"Save the copy of a result file."`
}

type artifactListCmd struct {
	exporting
	Operation string `arg:"" help:"The operation, op_…."`
}

// Help teaches by example.
func (artifactListCmd) Help() string { return examples(`pawl artifact list op_01…`) }

func (c *artifactListCmd) Run(s *session) error {
	if err := c.held(s); err != nil {
		return err
	}
	return s.list(operations+"/"+id(c.Operation)+"/artifacts", nil, "id", "state", "content_type", "size", "filename", "expires_at", "error")
}

// held says that the files of a held result are not shown.
func (c *artifactListCmd) held(s *session) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	a, err := client.call(s.ctx, http.MethodGet, operations+"/"+id(c.Operation), nil, nil)
	if err != nil {
		return err
	}
	var op struct {
		Release string `json:"release"`
	}
	if err := decode(a.body, &op); err != nil {
		return err
	}
	if op.Release == held(true) {
		s.say("the result is held, and its files with it, until it is let out: pawl op release %s", plain(c.Operation))
	}
	return nil
}

type artifactGetCmd struct {
	ID    string        `arg:"" help:"The file, art_…."`
	Out   string        `required:"" placeholder:"FILE" help:"Where to save it; - for standard output."`
	Force bool          `help:"Replace FILE if it exists."`
	Wait  time.Duration `help:"Wait at most so long for the file to be saved, where it is not yet."`
}

// Help teaches by example.
func (artifactGetCmd) Help() string {
	return `The file is checked against its SHA-256 before it gets its name; a connection that is cut is gone on from.

` + examples(`pawl artifact get art_01… --out video.mp4`)
}

// artifactLink is the API's answer about a captured file.
type artifactLink struct {
	Artifact struct {
		ID     string `json:"id"`
		Size   int64  `json:"size"`
		SHA256 string `json:"sha256"`
	} `json:"artifact"`
	URL string `json:"url"`
}

func (c *artifactGetCmd) Run(s *session) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	a, err := c.found(s, client)
	if err != nil {
		return err
	}
	var link artifactLink
	if err := json.Unmarshal(a.body, &link); err != nil || link.URL == "" {
		return errors.New("the answer is not one of Pawl's; check the address of the server")
	}
	d := download{link: link, sum: sha256.New(), http: client.http}
	if c.Out == "-" {
		d.to = s.Stdout
		return d.run(s.ctx)
	}
	return c.save(s, d)
}

// found asks for the link of the file, for as long as the file may take to be
// saved. The redirect is not followed: the key is for the API alone.
func (c *artifactGetCmd) found(s *session, client *client) (*answer, error) {
	for until := time.Now().Add(c.Wait); ; {
		a, err := client.exchange(s.ctx, http.MethodGet, "/v1/artifacts/"+id(c.ID), nil, nil)
		if err != nil || a.status == http.StatusFound {
			return a, err
		}
		refused := a.refusal()
		var r *refusal
		if !errors.As(refused, &r) || r.Reason != "not_captured" || time.Now().After(until) {
			return nil, refused
		}
		select {
		case <-s.ctx.Done():
			return nil, errors.New("interrupted")
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// save writes next to the wanted name, which only a whole file gets.
func (c *artifactGetCmd) save(s *session, d download) error {
	if _, err := os.Lstat(c.Out); err == nil && !c.Force {
		return fmt.Errorf("%s exists; name another file, or give --force", c.Out)
	}
	part := c.Out + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	d.to = f
	err = d.run(s.ctx)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(part)
		return err
	}
	if err := os.Rename(part, c.Out); err != nil {
		return err
	}
	if s.flags.JSON {
		return json.NewEncoder(s.Stdout).Encode(map[string]any{"id": d.link.Artifact.ID, "file": c.Out, "size": d.got, "sha256": d.link.Artifact.SHA256})
	}
	_, err = fmt.Fprintf(s.Stdout, "%s: %d bytes, sha256 %s\n", c.Out, d.got, d.link.Artifact.SHA256)
	return err
}

// download fetches one file.
type download struct {
	link artifactLink
	http *http.Client
	to   io.Writer
	sum  hash.Hash
	got  int64
}

// downloadTries is how often a download goes on after it was cut.
const downloadTries = 5

// run fetches until the whole file is there, and checks it. Its errors do not
// hold the link.
func (d *download) run(ctx context.Context) error {
	for n := 0; d.got < d.link.Artifact.Size || n == 0; n++ {
		before := d.got
		err := d.once(ctx)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil && (n == downloadTries || d.got == before) {
			return err
		}
	}
	if got := hex.EncodeToString(d.sum.Sum(nil)); got != d.link.Artifact.SHA256 || d.got != d.link.Artifact.Size {
		return fmt.Errorf("what came is not the file: %d bytes with the sha256 %s, instead of %d with %s", d.got, got, d.link.Artifact.Size, d.link.Artifact.SHA256)
	}
	return nil
}

func (d *download) once(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.link.URL, http.NoBody)
	if err != nil {
		return errors.New("the link of the server cannot be requested")
	}
	r.Header.Set("User-Agent", "pawl/"+version().Version)
	want := http.StatusOK
	if d.got > 0 {
		r.Header.Set("Range", "bytes="+strconv.FormatInt(d.got, 10)+"-")
		r.Header.Set("If-Range", `"`+d.link.Artifact.SHA256+`"`)
		want = http.StatusPartialContent
	}
	// A file may take longer than an answer of the API.
	patient := *d.http
	patient.Timeout = 0
	resp, err := patient.Do(r)
	if err != nil {
		return errors.New("the file's server did not answer")
	}
	defer resp.Body.Close()
	if resp.StatusCode != want {
		return fmt.Errorf("the file's server answered with status %d", resp.StatusCode)
	}
	n, err := io.Copy(io.MultiWriter(d.to, d.sum), resp.Body)
	if d.got += n; err != nil {
		return errors.New("the file was cut while it was fetched, or cannot be written")
	}
	return nil
}

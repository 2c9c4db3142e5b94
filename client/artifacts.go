package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/pawlhq/pawl"
)

// Artifact is a file of an operation's result.
type Artifact struct {
	ID string `json:"id"`
	// State says whether our copy is made: it is "captured" then.
	State       string `json:"state"`
	ContentType string `json:"content_type"`
	Filename    string `json:"filename"`
	// Size is in bytes and SHA256 in hexadecimal, both known once it is captured.
	Size       int64     `json:"size"`
	SHA256     string    `json:"sha256"`
	ExpiresAt  pawl.Time `json:"expires_at"`
	CapturedAt pawl.Time `json:"captured_at"`
	// Error says why it was given up, or how the latest try failed.
	Error string `json:"error"`
}

// Artifacts are the files of an operation's result; none while that is held.
func (c *Client) Artifacts(ctx context.Context, operation string) ([]Artifact, error) {
	return whole[Artifact](ctx, c, operations+"/"+segment(operation)+"/artifacts")
}

// ErrDamaged: what arrived of a file is not what was stored. Whatever was written
// of it must be thrown away.
var ErrDamaged = errors.New("client: the file that arrived is not the one that was stored")

// Download writes our copy of a file and holds it against its size and checksum:
// after an error, and [ErrDamaged] is one, what was written is not to be used.
func (c *Client) Download(ctx context.Context, a Artifact, to io.Writer) error {
	found, err := c.send(ctx, get("/v1/artifacts/"+segment(a.ID), nil))
	if err != nil {
		return err
	}
	resp, err := c.follow(ctx, found.header.Get("Location"))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), resp.Body)
	switch {
	case err != nil:
		return fmt.Errorf("client: the file was cut after %d bytes: %w", n, errors.Join(ErrDamaged, err))
	case a.SHA256 == "":
		return errors.New("client: the artifact has no checksum: read it again once it is captured")
	case hex.EncodeToString(sum.Sum(nil)) != a.SHA256 || n != a.Size:
		return ErrDamaged
	}
	return nil
}

// follow asks for a file where the server says that it is, without the API key:
// the link itself is what opens it, and it may be another host's.
func (c *Client) follow(ctx context.Context, link string) (*http.Response, error) {
	base, err := url.Parse(c.server + "/")
	if err != nil {
		return nil, errors.New("client: the server did not say where the file is")
	}
	at, err := base.Parse(link)
	if err != nil || link == "" || at.Scheme != "https" && at.Scheme != base.Scheme {
		return nil, errors.New("client: the server did not say where the file is")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, errors.New("client: the link to the file cannot be used")
	}
	resp, err := c.o.HTTP.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // Without the link.
		}
		return nil, fmt.Errorf("client: the file could not be fetched: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, &Problem{Status: resp.StatusCode, Title: http.StatusText(resp.StatusCode), Detail: "the file could not be fetched; ask for its link again"}
	}
	return resp, nil
}

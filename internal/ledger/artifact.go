package ledger

import (
	"encoding/hex"
	"fmt"

	"github.com/pawlhq/pawl"
)

// Captures is how far the artifacts of an operation's result are together.
type Captures uint8

// The values of [Captures].
const (
	// NoCaptures: the result has no files.
	NoCaptures Captures = iota
	// CapturesPending: some are yet to be captured.
	CapturesPending
	// CapturesReady: all are.
	CapturesReady
	// CapturesFailed: the rest was given up.
	CapturesFailed
)

// Artifact is a result file: the provider's temporary link, and our durable
// copy, with the columns that schedule its capture. The link itself is a
// payload of its own, which only the capture reads.
type Artifact struct {
	ID        pawl.ID
	Operation pawl.ID
	Tenant    string
	// Upstream is the operation's.
	Upstream string
	// Number is its place among the links of the result, from 1.
	Number int32
	State  pawl.ArtifactState

	// Link names the payload of the present link, LinkDigest is its SHA-256 and
	// Host where it leads.
	Link       pawl.ID
	LinkDigest Digest
	Host       string
	// ExpiresAt is when the link ends, 0 if that is not known; EndsAt is when
	// capturing it is given up, and what is captured first.
	ExpiresAt, EndsAt pawl.Time

	// ContentType, Filename, Size (bytes) and SHA256 describe our copy; Stored is
	// the lease that it was made under, which is part of its name.
	ContentType, Filename string
	Size                  int64
	SHA256                Digest
	Stored                int64
	CreatedAt, CapturedAt pawl.Time

	// DueAt is when it is to be fetched (next); while leased, when the lease ends;
	// Never when nothing is to be done. Lease counts leases and is the fence.
	DueAt  pawl.Time
	Lease  int64
	Leased bool
	// Attempts counts all tries, Tries those in a row that fetched nothing.
	Attempts, Tries int32
	// Mismatches counts the whole files that were not what the server declared,
	// from the present link.
	Mismatches int32
	// Waiting says that a fresh link is being asked for, Fresh how often one was.
	Waiting bool
	Fresh   int32
	// LastError says in words of ours how the latest try failed.
	LastError string
}

// Removed reports whether our copy was removed by age or by erasure: the row then
// no longer knows where it came from.
func (a Artifact) Removed() bool {
	return a.State == pawl.ArtifactDropped && a.LinkDigest == Digest{}
}

// place names the artifact among those of its operation, for people.
func (a Artifact) place() string { return fmt.Sprintf("file %d", a.Number) }

// Key is the name of our copy in the blob store. Each lease has one of its own,
// so that a late copy never replaces the one that was recorded.
func (a Artifact) Key() string { return ArtifactKey(a.ID, a.Stored) }

// ArtifactKey is the name of the copy that is made under a lease.
func ArtifactKey(artifact pawl.ID, fence int64) string {
	return fmt.Sprintf("%s-%d", artifact.Text(pawl.PrefixArtifact), fence)
}

// ArtifactJSON is an artifact as the API and outbound events show it: never its
// link.
type ArtifactJSON struct {
	ID          string  `json:"id"`
	State       string  `json:"state"`
	ContentType *string `json:"content_type"`
	// Size is in bytes.
	Size     *int64  `json:"size"`
	SHA256   *string `json:"sha256"`
	Filename *string `json:"filename"`
	// ExpiresAt is when the provider's link ends, where that is known.
	ExpiresAt  *pawl.Time `json:"expires_at"`
	CapturedAt *pawl.Time `json:"captured_at"`
	Attempts   int32      `json:"attempts"`
	// Error says why it was given up, or how the latest try failed.
	Error *string `json:"error"`
}

// View is the artifact as it is shown.
func (a Artifact) View() ArtifactJSON {
	v := ArtifactJSON{
		ID: a.ID.Text(pawl.PrefixArtifact), State: a.State.String(), ExpiresAt: set(a.ExpiresAt), CapturedAt: set(a.CapturedAt),
		Attempts: a.Attempts, Error: known(a.LastError), ContentType: known(a.ContentType), Filename: known(a.Filename),
	}
	if a.State == pawl.ArtifactCaptured {
		sum := hex.EncodeToString(a.SHA256[:])
		v.Size, v.SHA256 = &a.Size, &sum
	}
	return v
}

// Held reports whether the operation's result is withheld (1-product G4).
func (op Operation) Held() bool { return op.Hold && op.ReleasedAt == 0 }

// ShownResult names the payload of the result that may be shown; zero for none.
func (op Operation) ShownResult() pawl.ID {
	if op.Held() {
		return pawl.ID{}
	}
	return op.Result
}

// ShowArtifacts are those of an operation's artifacts that may be shown.
func (op Operation) ShowArtifacts(all []Artifact) []ArtifactJSON {
	shown := []ArtifactJSON{}
	if op.Held() {
		return shown
	}
	for _, a := range all {
		if a.State != pawl.ArtifactDropped {
			shown = append(shown, a.View())
		}
	}
	return shown
}

// release is the word for whether the result is withheld.
func (op Operation) release() string {
	switch {
	case !op.Hold:
		return ""
	case op.Held():
		return "hold"
	default:
		return "released"
	}
}

// wantsRead reports whether an operation that has ended and settled is still to
// be read: for a result that is missing, or for links that have ended.
func (op Operation) wantsRead() bool { return op.lacksResult() || op.WantsLinks }

// ArtifactSetLoaded records that all artifacts of an operation are loaded.
func (r *Rows) ArtifactSetLoaded(operation pawl.ID) {
	if r.artifactSets == nil {
		r.artifactSets = make(map[pawl.ID]bool)
	}
	r.artifactSets[operation] = true
}

// HasArtifactSet reports whether an operation's artifacts are loaded.
func (r *Rows) HasArtifactSet(operation pawl.ID) bool { return r.artifactSets[operation] }

// ArtifactsOf are the loaded artifacts of an operation, in the order of its
// result.
func (r *Rows) ArtifactsOf(operation pawl.ID) (all []Artifact) {
	for _, a := range r.Artifacts.All() {
		if a.Operation == operation {
			all = append(all, a)
		}
	}
	sortArtifacts(all)
	return all
}

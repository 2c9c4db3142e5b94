package ledger

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
)

// The waits between tries of a capture: doubling from captureFirst to
// captureMost. freshWithin is how long a fresh link is waited for before the old
// one is tried again.
const (
	captureFirst = time.Second
	captureMost  = 5 * time.Minute
	freshWithin  = 15 * time.Minute
	// mostMismatches is how many whole files may not be what the server declares
	// before a person is asked: each was a full transfer.
	mostMismatches = 5
)

// artifacts are those of an operation, in the order of its result, without those
// that were dropped.
func (d *Draft) artifacts(op Operation) (all []Artifact) {
	if op.Artifacts == 0 {
		return nil
	}
	n := int32(0)
	for _, a := range d.Artifacts.all() {
		if a.Operation != op.ID {
			continue
		}
		if n++; a.State != pawl.ArtifactDropped {
			all = append(all, a)
		}
	}
	if n < op.Artifacts && !d.rows.HasArtifactSet(op.ID) {
		panic(Miss{Keys: Keys{ArtifactSets: []pawl.ID{op.ID}}})
	}
	sortArtifacts(all)
	return all
}

// addArtifacts makes the rows of a result's links: all are due at once.
func (d *Draft) addArtifacts(up Upstream, op *Operation, taken resultLinks) {
	op.Captures = NoCaptures
	if len(taken.Links) > 0 {
		op.Kept |= KeptFiles
	}
	for i, l := range taken.Links {
		a := Artifact{
			ID: l.ID, Operation: op.ID, Tenant: op.Tenant, Upstream: op.Upstream, Number: int32(i + 1), State: pawl.ArtifactPending,
			Link: l.ID, LinkDigest: l.Digest, Host: l.Host, ExpiresAt: l.ExpiresAt, EndsAt: endOf(l, d.Now), Size: -1,
			CreatedAt: d.Now, DueAt: d.Now,
		}
		d.Artifacts.Put(a.ID, a)
		op.Captures = CapturesPending
	}
	op.Artifacts += int32(len(taken.Links))
	if taken.Beyond > 0 {
		d.openReview(op, pawl.ReviewCapture, pawl.ID{}, up.Owner, fmt.Sprintf("the result has %d links more than the %d that are captured", taken.Beyond, MaxLinks))
	}
}

func endOf(l ResultLink, now pawl.Time) pawl.Time {
	if l.ExpiresAt.IsSet() {
		return l.ExpiresAt
	}
	return now.Add(linkLife)
}

// dropArtifacts takes the files back with a result that a correction took back.
func (d *Draft) dropArtifacts(op *Operation) {
	for _, a := range d.artifacts(*op) {
		a.State, a.DueAt, a.Leased, a.Waiting = pawl.ArtifactDropped, pawl.Never, false, false
		d.Artifacts.Put(a.ID, a)
	}
	op.Captures, op.WantsLinks = NoCaptures, false
}

// LeaseArtifact leases one due capture. What is due is found by a reader, those
// whose links end first; this decides whether it still is.
type LeaseArtifact struct {
	Header
	Artifact pawl.ID
	// For is how long the lease lasts; a longer capture renews it.
	For time.Duration
}

// Head is the command's header.
func (c LeaseArtifact) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c LeaseArtifact) Keys(k *Keys) { k.Artifacts = add(k.Artifacts, c.Artifact) }

// Decide leases it and answers with the [Artifact]; its Lease is the fence.
func (c LeaseArtifact) Decide(d *Draft) Outcome {
	a, ok := d.Artifacts.Get(c.Artifact)
	if !ok || a.State != pawl.ArtifactPending || a.DueAt > d.Now {
		return done("not_due", nil)
	}
	a.Lease++
	a.Attempts++
	a.Leased, a.Waiting, a.DueAt = true, false, d.Now.Add(c.For)
	d.Artifacts.Put(a.ID, a)
	return done("leased", a)
}

// RenewArtifact keeps a lease while a long capture goes on.
type RenewArtifact struct {
	Header
	Artifact pawl.ID
	Fence    int64
	For      time.Duration
	// Lost ends the lease instead: its holder is known to be dead, or stops.
	Lost bool
}

// Head is the command's header.
func (c RenewArtifact) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c RenewArtifact) Keys(k *Keys) { k.Artifacts = add(k.Artifacts, c.Artifact) }

// Decide moves the lease's end; "not_leased" says that somebody else has it.
func (c RenewArtifact) Decide(d *Draft) Outcome {
	a, ok := d.Artifacts.Get(c.Artifact)
	if !ok || !a.Leased || a.Lease != c.Fence {
		return done("not_leased", nil)
	}
	a.DueAt = d.Now.Add(c.For)
	if c.Lost {
		a.Leased, a.DueAt = false, d.Now
	}
	d.Artifacts.Put(a.ID, a)
	return done("renewed", nil)
}

// EndArtifact ends a capture whose link has ended before its turn to be fetched
// came: a fresh link is read, or a person is asked (1-product G3).
type EndArtifact struct {
	Header
	Up                  Upstream
	Operation, Artifact pawl.ID
}

// Head is the command's header.
func (c EndArtifact) Head() Header { return c.Header }

// Keys names the rows the command needs; the operation leads to its artifacts.
func (c EndArtifact) Keys(k *Keys) {
	k.Operations = add(k.Operations, c.Operation)
	k.Artifacts = add(k.Artifacts, c.Artifact)
}

// Decide does what follows a link that works no more; "not_due" says that it has
// not ended, or that somebody fetches it now or awaits a fresh one.
func (c EndArtifact) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	a, found := d.Artifacts.Get(c.Artifact)
	if !ok || !found || a.Operation != op.ID {
		return dropped(pawl.NotFound, "not_found", "no such artifact")
	}
	if a.State != pawl.ArtifactPending || a.DueAt > d.Now || a.EndsAt > d.Now {
		return done("not_due", nil)
	}
	message := "the link ended before the file could be fetched"
	return RecordArtifact{Up: c.Up, Outcome: ArtifactGone, Message: message}.fail(d, op, a)
}

// ArtifactOutcome is how a capture ended.
type ArtifactOutcome uint8

// The outcomes of a capture.
const (
	// ArtifactStored: the copy is complete, checked and in the blob store.
	ArtifactStored ArtifactOutcome = iota + 1
	// ArtifactAgain: it may work later: a network that failed, 5xx, 429.
	ArtifactAgain
	// ArtifactGone: the link works no more: 401, 403, 404, 410.
	ArtifactGone
	// ArtifactRefused: it will never be captured: the link is forbidden, the file
	// too large.
	ArtifactRefused
	// ArtifactMismatch: a whole file came, and it is not what the server declared:
	// its checksum or its encoding is wrong.
	ArtifactMismatch
)

var artifactOutcomes = [...]string{ArtifactStored: "captured", ArtifactAgain: "retried", ArtifactGone: "gone", ArtifactRefused: "refused", ArtifactMismatch: "mismatch"}

// String is the outcome's word in logs, metrics and timelines.
func (o ArtifactOutcome) String() string { return artifactOutcomes[o] }

// MarshalText writes the outcome's word.
func (o ArtifactOutcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// RecordArtifact records how a capture ended. A copy that was made counts under
// any lease; failures only under their own (7-rules §4).
type RecordArtifact struct {
	Header
	Up                  Upstream
	Operation, Artifact pawl.ID
	Fence               int64
	Outcome             ArtifactOutcome
	// Size (bytes), SHA256, ContentType and Filename describe the copy.
	Size                  int64
	SHA256                Digest
	ContentType, Filename string
	// Moved says that bytes were fetched that the next try goes on from.
	Moved      bool
	RetryAfter time.Duration
	// Message says in words of ours what failed; it holds nothing of the link.
	Message string
}

// Head is the command's header.
func (c RecordArtifact) Head() Header { return c.Header }

// Keys names the rows the command needs; the operation leads to its artifacts.
func (c RecordArtifact) Keys(k *Keys) {
	k.Operations = add(k.Operations, c.Operation)
	k.Artifacts = add(k.Artifacts, c.Artifact)
}

// Decide takes the copy, or decides what a failure means; it answers with the
// [Artifact].
func (c RecordArtifact) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	a, found := d.Artifacts.Get(c.Artifact)
	if !ok || !found || a.Operation != op.ID {
		return dropped(pawl.NotFound, "not_found", "no such artifact")
	}
	mine := a.Leased && a.Lease == c.Fence
	switch {
	case a.State == pawl.ArtifactCaptured && a.Stored == c.Fence:
		return done(CapturedReason, a)
	case a.State == pawl.ArtifactCaptured || a.State == pawl.ArtifactDropped:
		return done("not_needed", a)
	case c.Outcome == ArtifactStored:
		return c.stored(d, op, a)
	case !mine:
		return done("old_lease", a)
	}
	if a.Tries++; c.Moved {
		a.Tries = 0
	}
	return c.fail(d, op, a)
}

// fail takes down a failure and what follows it.
func (c RecordArtifact) fail(d *Draft, op Operation, a Artifact) Outcome {
	a.Leased, a.Waiting, a.LastError = false, false, c.Message
	reason := c.failed(d, &op, &a)
	d.Artifacts.Put(a.ID, a)
	d.note(op, History{Kind: CaptureLine, Reason: reason, Detail: a.place() + ": " + c.Message, Version: op.Version})
	d.endCaptures(c.Up, &op)
	d.saveDue(op)
	return done(reason, a)
}

func (c RecordArtifact) stored(d *Draft, op Operation, a Artifact) Outcome {
	a.State, a.DueAt, a.Leased, a.Waiting, a.LastError = pawl.ArtifactCaptured, pawl.Never, false, false, ""
	a.Size, a.SHA256, a.ContentType, a.Filename = c.Size, c.SHA256, c.ContentType, c.Filename
	a.Stored, a.CapturedAt = c.Fence, d.Now
	d.Artifacts.Put(a.ID, a)
	d.note(op, History{Kind: CaptureLine, Reason: CapturedReason, Detail: a.place(), Version: op.Version})
	d.endCaptures(c.Up, &op)
	d.saveDue(op)
	return done(CapturedReason, a)
}

// failed decides what follows a failure: another try within the link's life,
// one read of the upstream for a fresh link (1-product G3), or the end.
func (c RecordArtifact) failed(d *Draft, op *Operation, a *Artifact) string {
	step := max(a.Tries, 1)
	if c.Outcome == ArtifactMismatch {
		if a.Mismatches++; a.Mismatches >= mostMismatches {
			a.State, a.DueAt = pawl.ArtifactFailed, pawl.Never
			return "failed"
		}
		// Whole transfers for nothing: the waits quadruple.
		step = 2*a.Mismatches - 1
	}
	if c.Outcome == ArtifactAgain || c.Outcome == ArtifactMismatch {
		wait := max(d.jitter(backoff(captureFirst, captureMost, step)), min(c.RetryAfter, time.Hour))
		if next := d.Now.Add(wait); next < a.EndsAt {
			a.DueAt = next
			return "retried"
		}
	}
	if c.Outcome != ArtifactRefused && c.Up.Reads && op.Task != "" && a.Fresh == 0 {
		a.Fresh++
		a.Waiting, a.DueAt = true, d.Now.Add(freshWithin)
		op.WantsLinks = true
		d.readNow(op)
		return "fresh_link_wanted"
	}
	a.State, a.DueAt = pawl.ArtifactFailed, pawl.Never
	return "failed"
}

// endCaptures tells once all artifacts of the result have come to an end: they
// are ready, or a person is asked (7-rules R32). Of a held result nobody is told
// that it is ready.
func (d *Draft) endCaptures(up Upstream, op *Operation) {
	pending, failed, all := 0, "", d.artifacts(*op)
	for _, a := range all {
		switch a.State {
		case pawl.ArtifactPending:
			pending++
		case pawl.ArtifactFailed:
			failed = a.place() + ": " + a.LastError
		}
	}
	to := CapturesReady
	if failed != "" {
		to = CapturesFailed
	}
	if op.State != pawl.Succeeded || pending > 0 || len(all) == 0 || op.Captures == to {
		return
	}
	op.Captures = to
	if to == CapturesFailed {
		d.emit(op, pawl.TypeNoArtifacts)
		d.openReview(op, pawl.ReviewCapture, pawl.ID{}, up.Owner, failed)
		return
	}
	if !op.Held() {
		d.emit(op, pawl.TypeArtifacts)
	}
	d.closeOpen(op, pawl.ReviewCapture, DecidedBySystem)
}

// takeFreshLinks gives the artifacts that wait for them the links of a later
// answer for the same result, each by its place, and reports whether any was
// new. Those without a new one have failed.
func (d *Draft) takeFreshLinks(up Upstream, op *Operation, o Observation) bool {
	links, fresh := linksOf(o.Result), false
	for _, a := range d.artifacts(*op) {
		if !a.Waiting {
			continue
		}
		a.Waiting = false
		l := ResultLink{}
		if int(a.Number) <= len(links) {
			l = newLink(up, o, links[a.Number-1], d.Now)
		}
		usable := l.Digest != (Digest{}) && (l.ExpiresAt == 0 || l.ExpiresAt > d.Now)
		if !usable || l.Digest == a.LinkDigest && l.ExpiresAt <= a.ExpiresAt {
			a.State, a.DueAt = pawl.ArtifactFailed, pawl.Never
			a.LastError += "; the provider gave no fresh link"
			d.Artifacts.Put(a.ID, a)
			continue
		}
		d.drop(a.Link, LinkPayload)
		a.Link, a.LinkDigest, a.Host, a.ExpiresAt, a.EndsAt = d.NewID(), l.Digest, l.Host, l.ExpiresAt, endOf(l, d.Now)
		a.DueAt, a.Tries, a.Mismatches, fresh = d.Now, 0, 0, true
		d.keep(a.Link, LinkPayload, links[a.Number-1])
		d.Artifacts.Put(a.ID, a)
	}
	op.WantsLinks = false
	d.endCaptures(up, op)
	return fresh
}

// noFreshLinks gives up on fresh links: the upstream could not be read.
func (d *Draft) noFreshLinks(up Upstream, op *Operation, why string) {
	for _, a := range d.artifacts(*op) {
		if a.Waiting {
			a.Waiting, a.State, a.DueAt = false, pawl.ArtifactFailed, pawl.Never
			a.LastError += "; no fresh link: " + why
			d.Artifacts.Put(a.ID, a)
		}
	}
	op.WantsLinks = false
	d.endCaptures(up, op)
}

// retryCaptures makes the captures that were given up due again, and nothing
// else (7-rules R32).
func (d *Draft) retryCaptures(op *Operation) {
	for _, a := range d.artifacts(*op) {
		if op.State != pawl.Succeeded || a.State != pawl.ArtifactFailed {
			continue
		}
		a.State, a.DueAt, a.Tries, a.Mismatches, a.Fresh = pawl.ArtifactPending, d.Now, 0, 0, 0
		if a.ExpiresAt == 0 {
			a.EndsAt = d.Now.Add(linkLife)
		}
		d.Artifacts.Put(a.ID, a)
		op.Captures = CapturesPending
	}
}

// RetryCaptures tries the captures of a success again that were given up. The
// provider is asked for nothing but links (O-078).
type RetryCaptures struct {
	Header
	Once
	Tenant    string
	Operation pawl.ID
}

// Head is the command's header.
func (c RetryCaptures) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c RetryCaptures) Keys(k *Keys) {
	c.needs(k)
	k.Operations = add(k.Operations, c.Operation)
}

// Decide makes them due and answers with the operation.
func (c RetryCaptures) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok || c.Tenant != "" && op.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such operation")
	}
	asked := ask(ForRetryCaptures, c.Operation.String())
	if out, repeated := d.repeated(c.Once, asked); repeated {
		if out.Err == nil {
			out.Value = op
		}
		return out
	}
	if op.State != pawl.Succeeded || op.Captures != CapturesFailed {
		return dropped(pawl.Conflicting, "not_retryable", "only an operation that failed, expired or was canceled is tried again; of this success no file is missing")
	}
	d.audit(op.Tenant, "operation.retry_captures", op.ID.Text(pawl.PrefixOperation), "")
	d.retryCaptures(&op)
	d.closeOpen(&op, pawl.ReviewCapture, pawl.DecideRetry)
	d.takeKey(c.Once, asked, op.ID)
	d.saveDue(op)
	return done("retried", op)
}

package ledger

import "github.com/pawlhq/pawl"

// artifacts: each file of a result is captured, failed with a word why, or still
// due, and the operation knows how many there are and how far they have come.
func (found *findings) artifacts(f Facts) {
	op, row := f.Operation, f.Operation.ID.Text(pawl.PrefixOperation)
	if int(op.Artifacts) != len(f.Artifacts) {
		found.add(row, ruleArtifact, "it counts %d artifacts, and there are %d", op.Artifacts, len(f.Artifacts))
	}
	want := NoCaptures
	for _, a := range f.Artifacts {
		name, due := a.ID.Text(pawl.PrefixArtifact), a.DueAt != pawl.Never
		switch {
		case due != (a.State == pawl.ArtifactPending):
			found.add(name, ruleArtifact, "%s, and due: %v", a.State, due)
		case a.State == pawl.ArtifactCaptured && (a.SHA256 == (Digest{}) || a.Size < 0 || a.CapturedAt == 0):
			found.add(name, ruleArtifact, "captured without size, checksum and time")
		case a.State != pawl.ArtifactDropped && op.State != pawl.Succeeded:
			found.add(name, ruleArtifact, "%s, of an operation that is %s", a.State, op.State)
		}
		switch {
		case a.State == pawl.ArtifactPending:
			want = CapturesPending
		case a.State == pawl.ArtifactFailed && want != CapturesPending:
			want = CapturesFailed
		case a.State == pawl.ArtifactCaptured && want == NoCaptures:
			want = CapturesReady
		}
	}
	if op.Captures != want {
		found.add(row, ruleArtifact, "its captures are in state %d, and the artifacts' are %d", op.Captures, want)
	}
}

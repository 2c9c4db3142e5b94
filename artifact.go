package pawl

// ArtifactState is how far the copy of a result file is.
type ArtifactState uint8

// The states of an artifact (1-product G1).
const (
	// ArtifactPending: the provider's link is known, our copy is not complete.
	ArtifactPending ArtifactState = iota + 1
	// ArtifactCaptured: our copy is complete and checked.
	ArtifactCaptured
	// ArtifactFailed: given up; a review asks a person.
	ArtifactFailed
	// ArtifactDropped: it belongs to a result that a correction took back.
	ArtifactDropped
)

var artifactNames = [...]string{
	ArtifactPending: "pending", ArtifactCaptured: "captured", ArtifactFailed: "failed", ArtifactDropped: "dropped",
}

// String is the state's word in JSON and on screens; "" for none.
func (s ArtifactState) String() string {
	if int(s) < len(artifactNames) {
		return artifactNames[s]
	}
	return ""
}

// MarshalText writes the state's word.
func (s ArtifactState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseArtifactState reads a state's word.
func ParseArtifactState(word string) (ArtifactState, bool) {
	for s := ArtifactPending; s <= ArtifactDropped; s++ {
		if artifactNames[s] == word {
			return s, true
		}
	}
	return 0, false
}

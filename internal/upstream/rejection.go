package upstream

var rejectKinds = [...]string{
	RejectSignature: "signature", RejectStale: "stale", RejectMalformed: "malformed",
	RejectUnknownState: "unknown_state", RejectUnknownType: "unknown_type",
}

// String is the kind's word in logs and metrics; "" for none.
func (k RejectKind) String() string { return wordOf(rejectKinds[:], int(k)) }

// MarshalText writes the kind's word.
func (k RejectKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func wordOf(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return ""
}

package upstream

var createOutcomes = [...]string{
	CreateAccepted: "accepted", CreateRefused: "refused", CreateConfiguration: "configuration", CreatePayment: "payment",
	CreateRateLimited: "rate_limited", CreateNotWritten: "not_written", CreateUnknown: "unknown",
}

// String is the class's word in logs and metrics; "" for none.
func (o CreateOutcome) String() string { return wordOf(createOutcomes[:], int(o)) }

// MarshalText writes the class's word.
func (o CreateOutcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

var readOutcomes = [...]string{
	ReadObserved: "observed", ReadNotFound: "not_found", ReadTaskDiffers: "task_differs",
	ReadUnknownState: "unknown_state", ReadUnauthorized: "unauthorized", ReadUnreachable: "unreachable",
}

// String is the outcome's word in logs and metrics; "" for none.
func (o ReadOutcome) String() string { return wordOf(readOutcomes[:], int(o)) }

// MarshalText writes the outcome's word.
func (o ReadOutcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

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

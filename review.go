package pawl

// Reason is why a person must decide (7-rules §6).
type Reason uint8

// The reasons of reviews.
const (
	ReviewUnconfirmed Reason = iota + 1
	ReviewOrphan
	ReviewConflict
	ReviewSecondTask
	ReviewUnknownState
	ReviewUnknownType
	ReviewDeadlineUnread
	ReviewLateSuccess
	ReviewTaskUnknown
	ReviewNoResult
	ReviewCapture
	ReviewRelease
	ReviewCurrency
	ReviewSettleOverdue
	ReviewCompletionOverdue
	ReviewDeadLetter
	ReviewOverReservation
	ReviewBodyDiffers
)

// ReviewRule is one row of the table of reviews: what a reason means and what
// may be decided.
type ReviewRule struct {
	Word      string
	Meaning   string
	Decisions []string
}

// The decisions of reviews.
const (
	// DecideCreated: the provider has it; the task id is given. → running
	DecideCreated = "created"
	// DecideNotCreated: the provider never got it. → pending, one new submit
	DecideNotCreated = "not_created"
	// DecideFailed: give up; the reservation is released. → failed
	DecideFailed = "failed"
	// DecideExpired: the deadline stands; the reservation is released. → expired
	DecideExpired = "expired"
	// DecideKeep: what is recorded stays as it is.
	DecideKeep = "keep"
	// DecideCharge: the open reservation is charged in full.
	DecideCharge = "charge"
	// DecideRelease: the open reservation is released, nothing is charged; of a
	// held result: it is let out.
	DecideRelease = "release"
	// DecideRead: read the upstream again now.
	DecideRead = "read"
	// DecideRetry: send the dead letter again, or save the result's files again.
	DecideRetry = "retry"
	// DecideDiscard: nothing will be done with it.
	DecideDiscard = "discard"
	// DecideAccept: the end that the provider reported after all is the right
	// one; state, money and result are corrected to it.
	DecideAccept = "accept"
	// DecideReprocess: the stored events of the source are judged anew.
	DecideReprocess = "reprocess"
	// DecideAttach: the event's task belongs to the operation that is named.
	DecideAttach = "attach"
)

var reviewRules = [...]ReviewRule{
	ReviewUnconfirmed:       {"unconfirmed", "A create may have reached the provider and nothing has told us since.", []string{DecideCreated, DecideNotCreated, DecideFailed}},
	ReviewOrphan:            {"orphan", "A verified event names a task that no operation claims.", []string{DecideAttach, DecideDiscard}},
	ReviewConflict:          {"conflict", "The provider reported another end than the one recorded first.", []string{DecideAccept, DecideKeep}},
	ReviewSecondTask:        {"second_task", "A second task was reported for one operation; the first stays.", []string{DecideKeep}},
	ReviewUnknownState:      {"unknown_state", "The provider used a state word that its description lacks.", []string{DecideRead, DecideKeep}},
	ReviewUnknownType:       {"unknown_type", "A verified event has a type that its source's description lacks.", []string{DecideReprocess, DecideDiscard}},
	ReviewDeadlineUnread:    {"deadline_unread", "The deadline passed and the provider could not be read; money is held.", []string{DecideRead, DecideExpired}},
	ReviewLateSuccess:       {"late_success", "A success was reported after the operation had expired.", []string{DecideAccept, DecideKeep}},
	ReviewTaskUnknown:       {"task_unknown", "The provider says that it does not know the task; money is held.", []string{DecideRead, DecideExpired}},
	ReviewNoResult:          {"no_result", "The provider reported success without any result.", []string{DecideKeep}},
	ReviewCapture:           {"capture", "A file of the result could not be saved before its link ended; nothing is bought again.", []string{DecideRetry, DecideKeep}},
	ReviewRelease:           {"release", "The result is held until somebody lets it out.", []string{DecideRelease, DecideKeep}},
	ReviewCurrency:          {"currency", "The provider reported a cost in another currency; the reservation is kept.", []string{DecideCharge, DecideRelease, DecideKeep}},
	ReviewSettleOverdue:     {"settle_overdue", "The provider has not reported the final cost in time.", []string{DecideRead, DecideCharge, DecideRelease}},
	ReviewCompletionOverdue: {"completion_overdue", "The receiver took the event and never reported it done.", []string{DecideRetry, DecideDiscard}},
	ReviewDeadLetter:        {"dead_letter", "A delivery was given up.", []string{DecideRetry, DecideDiscard}},
	ReviewOverReservation:   {"over_reservation", "The provider reported more than was reserved; only the reservation was charged.", []string{DecideKeep}},
	ReviewBodyDiffers:       {"body_differs", "An event came again under the same id with another outcome.", []string{DecideKeep}},
}

// String is the reason's word.
func (r Reason) String() string { return r.Rule().Word }

// MarshalText writes the reason's word.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Rule is the reason's row of the table; the zero rule for an unknown reason.
func (r Reason) Rule() ReviewRule {
	if int(r) < len(reviewRules) {
		return reviewRules[r]
	}
	return ReviewRule{}
}

// ParseReason reads a reason's word.
func ParseReason(word string) (Reason, bool) {
	for r := ReviewUnconfirmed; r <= ReviewBodyDiffers; r++ {
		if reviewRules[r].Word == word {
			return r, true
		}
	}
	return 0, false
}

// Allows reports whether the decision may be taken for the reason.
func (r Reason) Allows(decision string) bool {
	for _, d := range r.Rule().Decisions {
		if d == decision {
			return true
		}
	}
	return false
}

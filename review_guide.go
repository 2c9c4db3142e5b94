package pawl

import "time"

// Choice is one decision of a review and what it does.
type Choice struct {
	// Decision is the word, Effect the consequence in a sentence.
	Decision string `json:"decision"`
	Effect   string `json:"effect"`
	// Safe says that it can be undone, or does nothing that cannot be repeated: no
	// money moves, nothing is given up for good.
	Safe bool `json:"safe"`
}

// ReviewGuide is what whoever must decide needs to know of a reason. The console,
// the API, the command line and docs/reviews.md tell the same.
type ReviewGuide struct {
	Reason  string
	Meaning string
	// First is what to find out before deciding.
	First   string
	Choices []Choice
	// Runbook is the reason's section of docs/reviews.md.
	Runbook string
	// Within is how long after its opening a review is to be decided, unless the
	// configuration says otherwise (reviews.due).
	Within time.Duration
}

// Guide is what is to be known of the reason; the zero guide for an unknown one.
func (r Reason) Guide() ReviewGuide {
	rule := r.Rule()
	if rule.Word == "" {
		return ReviewGuide{}
	}
	advice := reviewAdvice[r]
	g := ReviewGuide{Reason: rule.Word, Meaning: rule.Meaning, First: advice.first, Runbook: "docs/reviews.md#" + rule.Word, Within: advice.within}
	for _, decision := range rule.Decisions {
		g.Choices = append(g.Choices, choiceOf(r, decision))
	}
	return g
}

// choiceOf is what a decision does, for a reason where that is of its own kind.
func choiceOf(r Reason, decision string) Choice {
	effect, safe := decisionEffects[decision].effect, decisionEffects[decision].safe
	switch {
	case r == ReviewRelease && decision == DecideRelease:
		effect, safe = "The result is let out to its owner, who is told. It cannot be taken back.", false
	case r == ReviewCapture && decision == DecideRetry:
		effect = "The files are fetched again, and nothing else: nothing is bought again."
	case r == ReviewCompletionOverdue && decision == DecideRetry:
		effect = "The event is sent again under its own id with a fresh schedule; the receiver must know it as a repeat."
	case r == ReviewUnknownType && decision == DecideDiscard:
		effect, safe = "All events of the source that are of unknown types are done; they stay stored and can still be judged anew.", true
	case r == ReviewRelease && decision == DecideKeep:
		effect = "The result stays withheld; it can still be released with pawl op release."
	case r == ReviewCurrency && decision == DecideKeep:
		effect = "No figure is booked and the reservation stays; another figure asks again."
	}
	return Choice{decision, effect, safe}
}

// decisionEffects are what decisions do whatever the reason.
var decisionEffects = map[string]struct {
	effect string
	safe   bool
}{
	DecideCreated:    {"The provider has it under the task id that is given. The operation is running and is read.", true},
	DecideNotCreated: {"The provider never got it. The operation is submitted once more: if the provider has it after all, it is done and paid twice.", false},
	DecideFailed:     {"The operation is failed and its reservation released. If the provider does it after all, its work is nobody's.", false},
	DecideExpired:    {"The deadline stands: the operation is expired and its reservation released.", false},
	DecideKeep:       {"What is recorded stays as it is.", true},
	DecideCharge:     {"The open reservation is charged in full.", false},
	DecideRelease:    {"The open reservation is released in full, and nothing is charged.", false},
	DecideRead:       {"The provider is asked again now. The review closes, and opens anew if nothing has changed.", true},
	DecideRetry:      {"It is sent again with a fresh schedule under the same event id.", true},
	DecideDiscard:    {"Nothing will be done with it; it stays stored.", false},
	DecideAccept:     {"State, result and money are corrected to what the provider reported last; the correction is told and audited.", false},
	DecideReprocess:  {"The source's stored events of unknown types are judged anew by today's description; what was counted is not counted again.", true},
	DecideAttach:     {"The event's task belongs to the operation that is named, and all events that wait for the task are judged.", false},
}

// reviewAdvice is what to find out first, and how long there is for a decision:
// hours where money or a customer waits, days where nothing is lost meanwhile.
var reviewAdvice = [...]struct {
	first  string
	within time.Duration
}{
	ReviewUnconfirmed:       {"Look in the provider's own list for a task of that time, model and input.", 4 * time.Hour},
	ReviewOrphan:            {"Look whether another system uses the same provider account, and which operation of that time has no task.", 24 * time.Hour},
	ReviewConflict:          {"Read the task at the provider: its word of now is the last one.", 8 * time.Hour},
	ReviewSecondTask:        {"Look at the provider whether both tasks cost money, and ask it for the second one's back.", 24 * time.Hour},
	ReviewUnknownState:      {"Look up the word in the provider's documentation, and add it to the description.", 8 * time.Hour},
	ReviewUnknownType:       {"Look at one of the events (pawl event raw): does it say something that should count?", 24 * time.Hour},
	ReviewDeadlineUnread:    {"Look whether the provider is down; what it says of the task decides.", 4 * time.Hour},
	ReviewLateSuccess:       {"Look whether the result is still wanted, and what it costs.", 8 * time.Hour},
	ReviewTaskUnknown:       {"Look in the provider's own list, and whether the credential is of the same account.", 4 * time.Hour},
	ReviewNoResult:          {"Look at the task at the provider: is there a result that its answers leave out?", 8 * time.Hour},
	ReviewCapture:           {"See why fetching failed (the operation's timeline), and whether the provider gives a fresh link.", 4 * time.Hour},
	ReviewRelease:           {"Check whoever holds the rights to the result.", 24 * time.Hour},
	ReviewCurrency:          {"See the provider's bill for what was charged, in which currency.", 48 * time.Hour},
	ReviewSettleOverdue:     {"See the provider's bill for the final cost.", 48 * time.Hour},
	ReviewCompletionOverdue: {"Ask the owner of the receiver whether the work was done.", 8 * time.Hour},
	ReviewDeadLetter:        {"See the attempts (pawl delivery attempts): what did the receiver answer, and is that mended?", 8 * time.Hour},
	ReviewOverReservation:   {"Compare the provider's bill with the price in the configuration.", 72 * time.Hour},
	ReviewBodyDiffers:       {"Look at the event and at its source: a sender that reuses ids is a fault of the sender's.", 24 * time.Hour},
}

package sim

// Faults that no plan draws: each asks a person sooner or later, or needs a
// client that cancels. Scripts made by hand have them (see [NewScripts]).
const (
	// CreateOther: the create's answer names another task than the callbacks and
	// reads do.
	CreateOther Fault = "create_other_task"
	// CallbackNoToken: sent to the source's own address, where nothing but the
	// task tells whose it is.
	CallbackNoToken Fault = "callback_no_token"
	// CallbackUnknownType: well signed, of a type outside the vocabulary.
	CallbackUnknownType Fault = "callback_unknown_type"
	// CallbackDiffers: well signed, the end's own event id, another end, after the
	// first was acknowledged.
	CallbackDiffers Fault = "callback_differs"
	// ReadUnknownState: the first reads show a state word outside the vocabulary.
	ReadUnknownState Fault = "read_unknown_state"
	// ReadNotFound: the first reads answer 404.
	ReadNotFound Fault = "read_not_found"
	// ResultMissing: the task succeeds and has no result.
	ResultMissing Fault = "result_missing"
	// LinkGone: the link of the result is answered 403, whichever it is.
	LinkGone Fault = "link_gone"
	// LinkEnded: the link that a callback brings has ended; that of a read works.
	LinkEnded Fault = "link_ended"
	// CancelLost: the task is canceled, then the connection is closed unanswered.
	CancelLost Fault = "cancel_lost"
	// CancelFailed: 503, and the task goes on.
	CancelFailed Fault = "cancel_failed"
	// CancelRefused: 409, however often it is asked.
	CancelRefused Fault = "cancel_refused"
	// CancelIgnored: 202, and the task goes on to its own end.
	CancelIgnored Fault = "cancel_ignored"
)

// Trouble is what a script made by hand has beside what plans draw.
type Trouble struct {
	// Currency replaces that of the plan.
	Currency string
	// Result is ResultMissing, LinkGone, LinkEnded or none.
	Result Fault
	// Cancel is met by the first CancelTimes cancels (CancelRefused: by all).
	Cancel      Fault
	CancelTimes int
}

// NewScripts is a plan of scripts made by hand, numbered from 0 in their order.
// Nothing in them is checked: a cost may lie above its price, and a charge may
// never become final.
func NewScripts(options Options, scripts ...Script) Plan {
	p := NewPlan(0, len(scripts), options)
	for i, s := range scripts {
		s.N = i
		p.scripts[i] = s
	}
	return p
}

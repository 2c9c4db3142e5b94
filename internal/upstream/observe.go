package upstream

import (
	"net/http"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/strict"
)

// Reasons of what cannot be used: stable words for records and metrics.
const (
	ReasonMalformedJSON  = "malformed_json"
	ReasonMissingEvent   = "missing_event"
	ReasonMissingTask    = "missing_task"
	ReasonMissingState   = "missing_state"
	ReasonMissingType    = "missing_type"
	ReasonBadVersion     = "bad_version"
	ReasonBadCost        = "bad_cost"
	ReasonBadSettled     = "bad_settled"
	ReasonUnknownState   = "unknown_state"
	ReasonUnknownType    = "unknown_type"
	ReasonPayloadVersion = "payload_version"
)

// maxCostText bounds the spelling of a cost that is kept beside its value.
const maxCostText = 64

// observe reads what a document says of a task. The reason is empty unless a
// fact is there that cannot be understood: guessing at a version or at money
// would be worse than refusing the whole. A missing task or state and an
// unknown word are the caller's to judge.
func (u Upstream) observe(d document, f Fields, h http.Header) (ledger.Observation, string) {
	o := ledger.Observation{
		Task:         d.id(f.Task),
		Progress:     progress(d.at(f.Progress), f.ProgressPercent),
		ErrorWord:    u.word(d.word(f.ErrorCode), maxWord),
		ErrorMessage: u.message(d.word(f.ErrorMessage)),
		Result:       string(d.at(f.Result).Raw),
		RequestID:    u.withoutKeys(f.requestID(d, h)),
	}
	o.LinksExpire = moment(d.at(f.LinksExpire))
	if word := d.word(f.State); word != "" {
		o.State = u.spec.States[word]
		o.Word = u.word(word, maxWord)
	}
	if o.State == pawl.Failed {
		o.ErrorCode = u.failure(d.word(f.ErrorCode))
	}
	if reason := readVersion(d.at(f.Version), &o); reason != "" {
		return o, reason
	}
	if reason := u.readCost(d, f, &o); reason != "" {
		return o, reason
	}
	return o, ""
}

// failure maps the provider's word to one of the nine codes (1-product D5).
func (u Upstream) failure(word string) pawl.FailureCode {
	if code, ok := u.spec.Failures[word]; ok {
		return code
	}
	return pawl.FailureCodeOf(word)
}

// readVersion takes a number or a string that holds one. An absent version is
// legal: the observation is then judged by rank (7-rules R11).
func readVersion(v strict.Value, o *ledger.Observation) string {
	if !v.Present() {
		return ""
	}
	if text, ok := v.Decimal(); ok {
		v = strict.Value{Raw: []byte(text)}
	}
	n, ok := v.Int()
	if !ok || n < 0 {
		return ReasonBadVersion
	}
	o.Version, o.HasVersion = n, true
	return ""
}

// readCost takes a string or a number, never through a float, and whether it
// is final. A provider that has a word for that and leaves it out has not said
// that the figure is final.
func (u Upstream) readCost(d document, f Fields, o *ledger.Observation) string {
	if v := d.at(f.Cost); v.Present() {
		text, ok := v.Decimal()
		if !ok || len(text) > maxCostText {
			return ReasonBadCost
		}
		amount, err := pawl.RoundAmount(text)
		if err != nil || amount < 0 {
			return ReasonBadCost
		}
		o.Cost, o.HasCost, o.CostText = amount, true, text
		o.Currency = u.settings.Currency
		if named := d.word(f.Currency); named != "" {
			o.Currency = strings.ToUpper(printable(cut(named, maxWord)))
		}
	}
	if f.Settled == "" {
		return ""
	}
	o.Settled = ledger.SettledNo
	if v := d.at(f.Settled); v.Present() {
		settled, ok := v.Bool()
		if !ok {
			return ReasonBadSettled
		}
		if settled {
			o.Settled = ledger.SettledYes
		}
	}
	return ""
}

// progress is in hundredths of a percent, -1 where there is none; it is for
// display only, so what cannot be read is as good as absent.
func progress(v strict.Value, percent bool) int32 {
	text, ok := v.Decimal()
	if !ok {
		return -1
	}
	amount, err := pawl.RoundAmount(text)
	if err != nil || amount < 0 {
		return -1
	}
	step := pawl.Amount(pawl.AmountScale / 10_000)
	if percent {
		step = pawl.AmountScale / 100
	}
	return int32(min(amount/step, 10_000))
}

// moment reads when something ends, RFC 3339 or Unix seconds; what cannot be
// read is as good as absent.
func moment(v strict.Value) pawl.Time {
	if seconds, ok := v.Int(); ok && seconds > 0 && seconds < 1<<36 {
		return pawl.TimeOf(time.Unix(seconds, 0))
	}
	text, ok := v.Text()
	if !ok {
		return 0
	}
	at, err := strict.ParseTime(text)
	if err != nil {
		return 0
	}
	return pawl.TimeOf(at)
}

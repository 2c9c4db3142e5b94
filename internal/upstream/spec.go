package upstream

import (
	"strconv"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
)

// Spec describes a provider. The zero value describes nothing; take one from
// [Parse] or [Preset], which check it.
type Spec struct {
	// Name and Version identify the description; together they are what
	// operations show as their adapter, such as "media-v2/1".
	Name    string `yaml:"name"`
	Version int    `yaml:"version"`
	// BaseURL is where the provider is unless the configuration says otherwise.
	BaseURL string `yaml:"base_url"`
	// Auth is the header that carries the credential.
	Auth Auth `yaml:"auth"`
	// Headers are sent with every request.
	Headers []Header `yaml:"headers"`
	// Envelope is the code that every answer repeats in its body, if any.
	Envelope Envelope `yaml:"envelope"`
	// Errors is where an answer that refuses keeps its reason.
	Errors Errors `yaml:"errors"`
	// States maps each of the provider's words to a state. A word outside the
	// table is never read as any state (O-052, O-055).
	States StateTable `yaml:"states"`
	// Failures maps the provider's error words to codes of 1-product D5 where
	// they differ; a word in neither is upstream_failed.
	Failures map[string]pawl.FailureCode `yaml:"failures"`
	// Fields are where the provider keeps a task's facts; Read, Cancel and
	// Callback have them from here unless they name their own.
	Fields Fields `yaml:"fields"`
	// Create makes a task; Read asks for one, Cancel asks to stop one and Lookup
	// finds one by our client reference, each nil where the provider cannot.
	Create Create `yaml:"create"`
	Read   *Call  `yaml:"read"`
	Cancel *Call  `yaml:"cancel"`
	Lookup *Call  `yaml:"lookup"`
	// List is where the provider lists its tasks, or what it sent; nil if it does
	// not (1-product E3).
	List *ListCall `yaml:"list"`
	// Callback is how the provider calls back, nil if it does not.
	Callback *CallbackSpec `yaml:"callback"`
	// Links is how long the links in results work, where the provider says so.
	Links Links `yaml:"links"`
}

// Links says when the links in a result end. What the field links_expire and
// the query of a signed link name counts as well, and the earliest end holds.
type Links struct {
	// Lifetime is how long they work from the success on; 0 if that is not known.
	Lifetime time.Duration `yaml:"lifetime"`
}

// Auth is a header whose value is Format with "{key}" replaced by the
// credential.
type Auth struct {
	Header string `yaml:"header"`
	Format string `yaml:"format"`
}

// Header is a fixed header of every request, such as an API version.
type Header struct {
	Name  string `yaml:"name"`
	Value string `yaml:"value"`
}

// Envelope is a code inside the body that repeats the HTTP status. Where the
// two disagree a 2xx gives way to the code, and everything else is ambiguous.
type Envelope struct {
	// Code is the pointer to the code; empty for a provider without envelope.
	Code string `yaml:"code"`
}

// Errors points to the provider's word for a refusal and to its message.
type Errors struct {
	Code    string `yaml:"code"`
	Message string `yaml:"message"`
}

// Source names a value that a request is made of.
type Source string

// The sources of a request's values.
const (
	FromModel       Source = "model"
	FromInput       Source = "input"
	FromCallbackURL Source = "callback_url"
	FromClientRef   Source = "client_ref"
	FromTask        Source = "task"
	FromValue       Source = "value"
)

// Call is one kind of request and how its answer is read.
type Call struct {
	Method string `yaml:"method"`
	// Path follows the base URL; "{task}" in it is replaced by the escaped id.
	Path string `yaml:"path"`
	// Query adds parameters; one whose source is empty is left out.
	Query  map[string]Source `yaml:"query"`
	Fields Fields            `yaml:"fields"`
}

// ListCall is a GET of one page of a list.
type ListCall struct {
	// Path follows the base URL, Query is sent with every page.
	Path   string            `yaml:"path"`
	Query  map[string]string `yaml:"query"`
	Items  string            `yaml:"items"`
	Fields config.ListFields `yaml:"fields"`
	Paging config.Paging     `yaml:"paging"`
}

// Create is the call that makes a task.
type Create struct {
	Call `yaml:",inline"`
	// Body lists the members of the JSON object that is sent, in this order.
	Body []Member `yaml:"body"`
	// Idempotency says that a repeat under the same key makes no second task;
	// nil for a provider that does not promise it (1-product B2).
	Idempotency *Idempotency `yaml:"idempotency"`
}

// Member is one member of a request body. An empty value is left out.
type Member struct {
	// Name is the member's name. Empty spreads the members of an object from
	// the input into the body itself.
	Name string `yaml:"name"`
	From Source `yaml:"from"`
	// Pointer picks a part of the input; empty means all of it.
	Pointer string `yaml:"pointer"`
	// Value is the JSON text of a member from "value".
	Value string `yaml:"value"`
}

// Idempotency is the header that carries the key of a create and how long the
// provider remembers it.
type Idempotency struct {
	Header string        `yaml:"header"`
	Window time.Duration `yaml:"window"`
}

// Fields are JSON Pointers to facts of a task, empty for those that the
// provider does not give.
type Fields struct {
	Task         string `yaml:"task"`
	State        string `yaml:"state"`
	Version      string `yaml:"version"`
	Progress     string `yaml:"progress"`
	Cost         string `yaml:"cost"`
	Currency     string `yaml:"currency"`
	Settled      string `yaml:"settled"`
	ErrorCode    string `yaml:"error_code"`
	ErrorMessage string `yaml:"error_message"`
	Result       string `yaml:"result"`
	// LinksExpire is when the links in the result end: RFC 3339, or Unix seconds.
	LinksExpire string `yaml:"links_expire"`
	// RequestID is a pointer or, as "header:NAME", a header of the answer.
	RequestID string `yaml:"request_id"`
	// ProgressPercent says that progress runs to 100 and not to 1.
	ProgressPercent bool `yaml:"progress_percent"`
}

// CallbackSpec is how the provider's events are verified and read.
type CallbackSpec struct {
	// Trust is signed if not given. A hint needs neither scheme nor event, and of
	// its fields those alone that it has: what is there is checked.
	Trust Trust `yaml:"trust"`
	// Scheme is a name that webhook.Lookup knows.
	Scheme string `yaml:"scheme"`
	// Event is what identifies an event.
	Event EventKey `yaml:"event"`
	// Type points to the event's type; empty where every event is of one type.
	Type string `yaml:"type"`
	// Types are the known types and whether they tell the state or only show
	// progress (7-rules R12).
	Types  map[string]EventKind `yaml:"types"`
	Fields Fields               `yaml:"fields"`
}

// EventKind is what an event of a type may do.
type EventKind string

// The kinds of events.
const (
	EventState    EventKind = "state"
	EventProgress EventKind = "progress"
)

// EventKey declares the deduplication key of an event (1-product C3, 7-rules
// R17): either named places or a digest of the body.
type EventKey struct {
	// From lists pointers into the body, or "signed-id" for the event id that
	// the signature covers. Several are joined; all must be present. A header
	// that is not signed cannot be named: whoever captured a request could send
	// it again under another id.
	From []string `yaml:"from"`
	// Digest takes the SHA-256 of the body after the values of the members
	// at Volatile, such as a time of sending, were cut out of its bytes.
	Digest   bool     `yaml:"digest"`
	Volatile []string `yaml:"volatile"`
}

// signedID is the place of the event id that the signature covers.
const signedID = "signed-id"

// StateTable maps the provider's words to states.
type StateTable map[string]pawl.State

// Adapter is the description's name and version, such as "media-v2/1".
func (s Spec) Adapter() string { return s.Name + "/" + strconv.Itoa(s.Version) }

package canary_test

// class is a kind of value that is looked for.
type class string

// The classes.
const (
	prompt         class = "prompt in the input"
	metadata       class = "metadata value"
	result         class = "result content"
	resultLink     class = "provider's link in a result"
	heldResult     class = "result and links of a held operation"
	fileToken      class = "token of a link to a captured file"
	message        class = "provider's error message"
	messageLink    class = "link in a provider's message"
	providerKey    class = "provider's API key"
	providerSecret class = "provider's webhook secret"
	callSignature  class = "signature of a callback"
	hookToken      class = "callback token"
	gateKey        class = "key of a server in front of the node"
	forged         class = "content of a refused callback"
	adminKey       class = "admin API key"
	tenantKey      class = "tenant's API key"
	keySecret      class = "webhook secret of an API key"
	endpointSecret class = "endpoint secret"
	endpointURL    class = "path and query of an endpoint"
	callbackURL    class = "path and query of a callback_url"
	ourSignature   class = "signature of a delivery"
	idempotency    class = "idempotency key"
	refused        class = "value in a refused request"
	name           class = "name in a refused request"
	panicked       class = "value of a panic"
	ledgerKey      class = "key file of the ledger"
	ownData        class = "data of a published event"
	received       class = "content of an event of a generic source"
	sourceSecret   class = "secret of a generic source"
	bareLink       class = "link without a scheme in a provider's message"
	pathLink       class = "link without a query in a provider's message"
	receiverWords  class = "error message of a receiver"
	receiverSecret class = "receiver's own credential in its error page"
	configured     class = "value in a broken configuration"
)

// sink is a place that Pawl writes to.
type sink string

// The sinks that belong to nobody in particular: nothing at all may appear
// there. Answers of the API are sinks named "METHOD PATH" by route, those for
// a key with scope payloads end in " payloads"; commands are "pawl WORDS".
const (
	logs       sink = "log at level debug"
	defaultLog sink = "default logger"
	metrics    sink = "metrics"
	traces     sink = "spans of traces"
	problems   sink = "problem answers"
	hookAnswer sink = "answers to callbacks"
	printed    sink = "values printed with %v"
	startError sink = "errors of a start"
	stdout     sink = "standard output of serve"
	stderr     sink = "standard error"
	receipts   sink = "receipts of an exercise"
	toProvider sink = "requests to the provider"
	toEndpoint sink = "bodies of deliveries"
	headersOut sink = "headers of deliveries"
	atRest     sink = "files of the ledger"
	notices    sink = "notices to the installation"
)

// ownViews are the answers that show an operation as its owner sees it.
var ownViews = []sink{
	"POST /v1/operations", "GET /v1/operations", "GET /v1/operations payloads", "POST /v1/work/lease", "POST /v1/work/{lease}/complete", "POST /v1/work/{lease}/fail",
	"GET /v1/operations/{id}", "GET /v1/operations/{id} payloads",
	"GET /v1/events/{id}", "GET /v1/events/{id} payloads", toEndpoint, recordInfo,
	"pawl op get", "pawl op submit", "pawl event show", "pawl event show inbound", "pawl op list --json",
}

// rawEvents are the answers that show the bytes of an inbound event.
var rawEvents = []sink{"GET /v1/events/{id} payloads", "pawl event show inbound", rawPage}

// The pages of the console that show an event: as it is told, and as it came, which
// is for keys with scope payloads and goes into the audit.
const (
	eventPage    sink = "console /console/events/{id}"
	rawPage      sink = "console /console/events/{id}/raw"
	deliveryPage sink = "console /console/deliveries/{id}"
)

// endpointViews are the answers that show an endpoint to its owner.
var endpointViews = []sink{
	"POST /v1/endpoints", "GET /v1/endpoints", "GET /v1/endpoints payloads", "GET /v1/endpoints/{id}", "GET /v1/endpoints/{id} payloads",
	"POST /v1/endpoints/{id}/rotate-secret", "pawl endpoint create", "pawl endpoint list", "pawl endpoint list --csv",
	"console /console/endpoints", "console /console/endpoints/{id}",
}

// kept are the classes that the ledger holds as they are; secrets, tokens and
// signatures are not among them.
var kept = []class{prompt, metadata, result, resultLink, heldResult, message, messageLink, providerKey, endpointURL, callbackURL, idempotency, ownData, received, receiverWords}

// may says where a class may appear, and by that where it must be looked for
// in vain: everywhere else.
var may = map[class][]sink{
	// The input is for keys with scope payloads (7-rules R53).
	prompt: {toProvider, "GET /v1/operations/{id} payloads", "POST /v1/work/lease", "pawl op get", "console /console/operations/{id}/input"},
	// A list of the console repeats the filter that it was asked with.
	metadata: append([]sink{"console /console/operations", "console /console/operations/{id}", eventPage}, ownViews...),
	result:   append([]sink{readTask, eventPage, rawPage}, ownViews...),
	// A provider's link is in no view of a result (1-product G4): only in the raw
	// bytes of the event that brought it, and where it leads.
	resultLink: append([]sink{toProvider}, rawEvents...),
	// Before its release a held result is nowhere but in the ledger, and its link
	// where it leads.
	heldResult: {toProvider},
	fileToken:  {"GET /v1/artifacts/{id}", "GET /v1/artifacts/{id} payloads"},
	// What a provider says of a failure is the operation's error message, and
	// the same in the line of its timeline.
	message: append([]sink{"GET /v1/operations/{id}/timeline", "GET /v1/operations/{id}/timeline payloads", "pawl op timeline", "console /console/operations/{id}", eventPage, rawPage}, ownViews...),
	// The raw bytes of a verified event are evidence: they are kept and shown as
	// they came, to keys with scope payloads.
	messageLink: rawEvents,
	providerKey: append([]sink{toProvider}, rawEvents...),
	hookToken:   {toProvider},
	tenantKey:   {"POST /v1/keys", "console POST /console/keys"},
	keySecret:   {"POST /v1/keys", "POST /v1/keys/{id}/rotate-webhook-secret", "console POST /console/keys"},
	// Shown once, when it is made.
	endpointSecret: {"POST /v1/endpoints", "POST /v1/endpoints/{id}/rotate-secret", "pawl endpoint create"},
	endpointURL:    endpointViews,
	callbackURL:    append([]sink{"console /console/operations/{id}", eventPage, "console /console/endpoints", "console /console/endpoints/{id}", "pawl endpoint list --csv", "GET /v1/endpoints", "GET /v1/endpoints payloads", "GET /v1/endpoints/{id}", "GET /v1/endpoints/{id} payloads", "pawl endpoint list"}, ownViews...),
	ourSignature:   {headersOut, "pawl sign"},
	// Events that are about no operation.
	ownData: {"POST /v1/events", "GET /v1/events/{id}", "GET /v1/events/{id} payloads", "GET /v1/events?endpoint", "GET /v1/events?endpoint payloads",
		toEndpoint, "pawl event show", eventPage},
	received: {rawPage, "GET /v1/events/{id} payloads", "GET /v1/events?endpoint payloads", toEndpoint},
	// What a receiver said is kept as a redacted excerpt (1-product H5).
	receiverWords: {"GET /v1/deliveries/{id}/attempts", "GET /v1/deliveries/{id}/attempts payloads", "pawl delivery attempts", deliveryPage, "console /console/operations/{id}"},
	// A caller is told which of its own names is not known, bounded.
	name: {problems},
}

// must are the cells in which a class has to be seen: where it is not, its path
// was not walked and the test proves nothing.
var must = map[class][]sink{
	prompt:         {toProvider, atRest, "GET /v1/operations/{id} payloads", "pawl op get"},
	metadata:       {"POST /v1/operations", "GET /v1/operations/{id}", "GET /v1/events/{id}", toEndpoint, "pawl op get", "pawl event show"},
	result:         {"GET /v1/operations/{id}", "GET /v1/events/{id} payloads", toEndpoint, recordInfo, readTask, "pawl op get"},
	message:        {"GET /v1/operations/{id}", "GET /v1/operations/{id}/timeline", toEndpoint, recordInfo},
	resultLink:     {toProvider, "GET /v1/events/{id} payloads", atRest},
	heldResult:     {toProvider, atRest},
	fileToken:      {"GET /v1/artifacts/{id}"},
	messageLink:    {"GET /v1/events/{id} payloads"},
	providerKey:    {toProvider},
	hookToken:      {toProvider},
	tenantKey:      {"POST /v1/keys"},
	keySecret:      {"POST /v1/keys"},
	endpointSecret: {"POST /v1/endpoints", "pawl endpoint create"},
	endpointURL:    {atRest, "POST /v1/endpoints", "GET /v1/endpoints", "pawl endpoint list"},
	callbackURL:    {"GET /v1/operations/{id}", "GET /v1/endpoints", toEndpoint},
	ourSignature:   {headersOut},
	name:           {problems},
	receiverWords:  {"GET /v1/deliveries/{id}/attempts"},
	ownData:        {toEndpoint, atRest},
	received:       {toEndpoint, atRest, "GET /v1/events/{id} payloads"},
}

// mustOfPages are those of the console, the exports and the notices.
var mustOfPages = map[class][]sink{
	prompt:        {"console /console/operations/{id}/input"},
	metadata:      {"console /console/operations/{id}", eventPage},
	result:        {eventPage, rawPage},
	message:       {"console /console/operations/{id}", eventPage},
	messageLink:   {rawPage},
	resultLink:    {rawPage},
	heldResult:    {toProvider, atRest},
	received:      {rawPage},
	endpointURL:   {"console /console/endpoints", "console /console/endpoints/{id}", "pawl endpoint list --csv", atRest},
	callbackURL:   {"console /console/endpoints", "console /console/operations/{id}"},
	receiverWords: {deliveryPage},
	tenantKey:     {"console POST /console/keys"},
	keySecret:     {"console POST /console/keys"},
}

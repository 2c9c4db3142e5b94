package api

import (
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// eventType is one type of outbound events.
type eventType struct {
	name, meaning string
	// state is that of the operation in the example.
	state pawl.State
}

// eventTypes are the types that an endpoint may ask for (7-rules §3).
var eventTypes = []eventType{
	{pawl.TypeUnconfirmed, "A create may have reached the provider and nothing has told us.", pawl.Unconfirmed},
	{pawl.TypeRunning, "The provider accepted the task.", pawl.Running},
	{pawl.TypeSucceeded, "The task succeeded.", pawl.Succeeded},
	{pawl.TypeFailed, "The operation failed; its reservation is released.", pawl.Failed},
	{pawl.TypeCanceled, "The operation was canceled.", pawl.Canceled},
	{pawl.TypeExpired, "The operation passed its deadline; its reservation is released.", pawl.Expired},
	{pawl.TypeSettled, "The final charge became known after the end.", pawl.Succeeded},
	{pawl.TypeArtifacts, "The results are saved and can be fetched.", pawl.Succeeded},
	{pawl.TypeNoArtifacts, "The results could not be saved.", pawl.Succeeded},
	{pawl.TypeReviewOpened, "A person must decide something about the operation.", pawl.Unconfirmed},
	{pawl.TypeReviewClosed, "A review was decided.", pawl.Running},
	{pawl.TypeReleased, "A result that was held back was let out.", pawl.Succeeded},
	{pawl.TypeCorrected, "An operator corrected the state: another end, or that the task was never created and will be.", pawl.Pending},
	{pawl.TypeProgress, "Work goes on; for display only, and only sent to endpoints that name it.", pawl.Running},
}

// notice is one type of events about the installation.
type notice struct {
	name, meaning string
	data          ledger.Notice
}

// notices are the types that an endpoint of the installation may ask for
// (1-product I2).
var notices = []notice{
	{pawl.TypeLooseReview, "A person must decide something, about whatever it is.", ledger.Notice{
		ReviewID: pawl.NewID(exampleAt, 4).Text(pawl.PrefixReview), Reason: "unconfirmed", OperationID: pawl.NewID(exampleAt, 1).Text(pawl.PrefixOperation),
		Tenant: "default", Source: "studio",
	}},
	{pawl.TypeUpstreamPaused, "Creates at an upstream stop: it refuses our credential, or somebody paused it.", ledger.Notice{Upstream: "studio", Reason: "upstream_unauthorized"}},
	{pawl.TypeEndpointDisabled, "Nothing is sent to an endpoint any more.", ledger.Notice{
		EndpointID: pawl.NewID(exampleAt, 5).Text(pawl.PrefixEndpoint), Tenant: "default", Reason: "answered_410",
	}},
	{pawl.TypeDeliveryDead, "A delivery was given up.", ledger.Notice{
		DeliveryID: pawl.NewID(exampleAt, 6).Text(pawl.PrefixDelivery), EndpointID: pawl.NewID(exampleAt, 5).Text(pawl.PrefixEndpoint),
		EventID: pawl.NewID(exampleAt, 2).Text(pawl.PrefixEvent), OperationID: pawl.NewID(exampleAt, 1).Text(pawl.PrefixOperation),
		Tenant: "default", Reason: "attempts_exhausted", Attempts: 10, LastStatus: 503,
	}},
}

func (n notice) shape() eventTypeJSON {
	return eventTypeJSON{n.name, n.meaning, true, ledger.NoticeEvent{
		ID: pawl.NewID(exampleAt, 2).Text(pawl.PrefixEvent), Type: n.name, Timestamp: exampleAt, Sequence: 17, Data: n.data,
	}}
}

type eventTypeJSON struct {
	Type         string `json:"type"`
	Meaning      string `json:"meaning"`
	Installation bool   `json:"installation,omitempty" doc:"It is about the installation, and goes to its own endpoints alone."`
	Example      any    `json:"example" doc:"A body as it is sent; webhooks of this document describe each."`
}

// exampleData is the data of a type's example.
func exampleData(kind string) (data any, ok bool) {
	for _, t := range eventTypes {
		if t.name == kind {
			return t.example().Data, true
		}
	}
	for _, n := range notices {
		if n.name == kind {
			return n.data, true
		}
	}
	return nil, false
}

// exampleAt is the moment of all examples.
const exampleAt = pawl.Time(1_767_312_000_000_000)

func (t eventType) shape() eventTypeJSON { return eventTypeJSON{t.name, t.meaning, false, t.example()} }

func (t eventType) example() ledger.EventJSON {
	op := ledger.Operation{
		ID: pawl.NewID(exampleAt, 1), Version: 2, State: t.state, Upstream: "studio", Model: "kling-2", Adapter: "media-v2/1",
		Progress: -1, Money: ledger.Held, Currency: "USD", Reserved: 150_000_000, CreatedAt: exampleAt, UpdatedAt: exampleAt, DueAt: pawl.Never,
	}
	if t.state >= pawl.Running {
		op.Task = "job_example"
	}
	if t.name == pawl.TypeProgress {
		op.Progress = 4250
	}
	if t.state.Terminal() {
		op.Money, op.Settled, op.FinishedAt = ledger.Ended, true, exampleAt
	}
	if t.state == pawl.Succeeded {
		op.Charged = 120_000_000
	}
	if t.state == pawl.Failed {
		op.ErrorCode, op.ErrorMessage = pawl.FailGeneration, "the provider gave up"
	}
	data := op.View()
	if t.name == pawl.TypeArtifacts {
		data.Artifacts = []ledger.ArtifactJSON{ledger.Artifact{
			ID: pawl.NewID(exampleAt, 3), State: pawl.ArtifactCaptured, ContentType: "video/mp4", Filename: "clip.mp4", Size: 7_340_032, Attempts: 1, CapturedAt: exampleAt,
		}.View()}
	}
	return ledger.EventJSON{
		ID: pawl.NewID(exampleAt, 2).Text(pawl.PrefixEvent), Type: t.name, Timestamp: exampleAt, Sequence: 17, Data: data,
	}
}

func listEventTypes(c *call, _ none) (page[eventTypeJSON], error) {
	items := make([]eventTypeJSON, 0, len(eventTypes)+len(notices))
	for _, t := range eventTypes {
		items = append(items, t.shape())
	}
	for _, n := range notices {
		items = append(items, n.shape())
	}
	return page[eventTypeJSON]{Items: items}, nil
}

func eventTypesRoute() route {
	return route{
		method: http.MethodGet, path: "/v1/event-types", name: "listEventTypes", tag: "endpoints", scope: ledger.ScopeRead, status: http.StatusOK,
		summary: "The types of outbound events with example bodies",
	}
}

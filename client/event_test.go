package client_test

import (
	"testing"

	"github.com/pawlhq/pawl/client"
)

// An event of a generic source is about no operation, whatever its sender calls it.
func TestSourceTellsOfNoOperation(t *testing.T) {
	const data = `"data":{"id":"op_1","state":"succeeded"}}`
	for body, want := range map[string]bool{
		`{"id":"evt_1","type":"operation.succeeded",` + data:                       true,
		`{"id":"evt_1","type":"operation.succeeded","source":"payments",` + data:   false,
		`{"id":"evt_1","type":"payments.operation.succeeded","source":"p",` + data: false,
		`{"id":"evt_1","type":"invoice.paid",` + data:                              false,
	} {
		e, err := client.ParseEvent([]byte(body))
		if _, got := e.Operation(); err != nil || got != want {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
}

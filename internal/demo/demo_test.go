package demo_test

import (
	"bytes"
	"testing"

	"github.com/pawlhq/pawl/internal/demo"
)

// One operation goes through every room.
func TestOneOperation(t *testing.T) {
	var out bytes.Buffer
	if err := demo.Run(t.Context(), demo.Options{Operations: 1, Seed: 1, Out: &out, Progress: t.Output()}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log(out.String())
}

// The faults of a whole plan are met, and all books agree.
func TestManyOperations(t *testing.T) {
	var out bytes.Buffer
	if err := demo.Run(t.Context(), demo.Options{Operations: 60, Seed: 7, Out: &out, Progress: t.Output()}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
}

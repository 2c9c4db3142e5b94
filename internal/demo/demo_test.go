package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

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

// An incident concerns one provider and one receiver, and nothing else.
func TestIncident(t *testing.T) {
	stays := func(ctx context.Context, p demo.Place) error {
		for {
			unconfirmed, dead := ids(ctx, t, p, "/v1/operations?state=unconfirmed", "upstream"), ids(ctx, t, p, "/v1/deliveries?state=dead", "endpoint_id")
			if len(unconfirmed) == 0 || len(dead) == 0 {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			if len(unconfirmed) != 1 || unconfirmed[0] != "sim" || len(dead) != 1 {
				t.Errorf("unconfirmed at %v, dead at %v", unconfirmed, dead)
			}
			return nil
		}
	}
	if err := demo.Run(t.Context(), demo.Options{Operations: 3, Seed: 1, Progress: t.Output(), Incident: time.Hour, Stay: stays}); err != nil {
		t.Fatal(err)
	}
}

// ids are the different values of a member of a list's items.
func ids(ctx context.Context, t *testing.T, p demo.Place, path, member string) (all []string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.API+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.Key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var page struct{ Items []map[string]any }
	if err := json.NewDecoder(answer.Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	for _, item := range page.Items {
		if word := item[member].(string); !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}

// The faults of a whole plan are met, and all books agree.
func TestManyOperations(t *testing.T) {
	var out bytes.Buffer
	if err := demo.Run(t.Context(), demo.Options{Operations: 60, Seed: 7, Out: &out, Progress: t.Output()}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
}

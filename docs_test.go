package pawl_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
)

// The diagram of docs/states.md is the table in state.go, drawn.
func TestStateDiagramIsTheTable(t *testing.T) {
	causes := []struct {
		cause pawl.Cause
		word  string
	}{
		{pawl.BySubmit, "submit"}, {pawl.ByObservation, "observation"}, {pawl.ByCancel, "cancel"},
		{pawl.ByDeadline, "deadline"}, {pawl.ByOperator, "operator"}, {pawl.ByLease, "lease"},
	}
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> pending\n")
	for from := pawl.Pending; from <= pawl.Running; from++ {
		for to := pawl.Pending; to <= pawl.Expired; to++ {
			var by []string
			for _, c := range causes {
				if pawl.CanMove(from, to, c.cause) {
					by = append(by, c.word)
				}
			}
			if len(by) > 0 {
				fmt.Fprintf(&b, "    %s --> %s: %s\n", from, to, strings.Join(by, ", "))
			}
		}
	}
	b.WriteString("```\n")
	inFile(t, "docs/states.md", b.String())
}

// The table of docs/reviews.md is the one in review.go.
func TestReviewTableIsTheTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| reason | what it means | decisions |\n| --- | --- | --- |\n")
	for r := pawl.ReviewUnconfirmed; r <= pawl.ReviewBodyDiffers; r++ {
		rule := r.Rule()
		fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", rule.Word, rule.Meaning, strings.Join(rule.Decisions, "` · `"))
	}
	inFile(t, "docs/reviews.md", b.String())
}

func inFile(t *testing.T, path, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), want) {
		t.Errorf("%s does not hold what the code says; it must contain:\n%s", path, want)
	}
}

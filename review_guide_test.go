package pawl

import (
	"os"
	"strings"
	"testing"
)

// Whoever must decide is told of every reason what it means, what to look at and
// what each decision does, and the page says the same (1-product I2).
func TestEveryReasonIsExplained(t *testing.T) {
	text, err := os.ReadFile("docs/reviews.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for r := ReviewUnconfirmed; r <= ReviewBodyDiffers; r++ {
		g := r.Guide()
		if g.Meaning == "" || g.First == "" || g.Within <= 0 || len(g.Choices) != len(r.Rule().Decisions) {
			t.Errorf("%s: %+v", r, g)
		}
		_, section, found := strings.Cut(page, "\n### "+g.Reason+"\n")
		section, _, _ = strings.Cut(section, "\n### ")
		if !found || !strings.Contains(section, g.Meaning) || !strings.Contains(section, g.First) {
			t.Errorf("docs/reviews.md: the section %s lacks what the guide says", g.Reason)
		}
		for _, c := range g.Choices {
			if c.Effect == "" || !strings.Contains(section, "`"+c.Decision+"`") || !strings.Contains(section, c.Effect) {
				t.Errorf("docs/reviews.md: the section %s lacks %s: %s", g.Reason, c.Decision, c.Effect)
			}
		}
	}
	if g := Reason(99).Guide(); g.Reason != "" || g.Choices != nil {
		t.Errorf("an unknown reason has a guide: %+v", g)
	}
}

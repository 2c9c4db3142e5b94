package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
)

// FuzzParse: no text breaks the reader, every error is one of ours with a
// line inside the text, and what is accepted is valid by Validate too.
func FuzzParse(f *testing.F) {
	f.Add([]byte(contract))
	for _, r := range refusals {
		if len(r.text) < 4096 {
			f.Add([]byte(r.text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// Reading real files is not what is tested here.
		if strings.Contains(string(data), "file:") {
			return
		}
		c, err := config.Parse("pawl.yaml", data, environment)
		if err == nil {
			if err := c.Validate(); err != nil {
				t.Fatalf("accepted, but: %v", err)
			}
			return
		}
		var problems config.Problems
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("not Problems: %v", err)
		}
		lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + 1
		for _, p := range problems {
			if p.Line < 0 || p.Line > lines+1 || p.What == "" {
				t.Fatalf("line %d of %d: %v", p.Line, lines, p)
			}
		}
	})
}

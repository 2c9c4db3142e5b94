package exercise

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/pawlhq/pawl"
)

// receipt is execution-receipt.json (2-contracts §5).
type receipt struct {
	Tool       string    `json:"tool"`
	StartedAt  pawl.Time `json:"started_at"`
	FinishedAt pawl.Time `json:"finished_at"`
	Checks     []Check   `json:"checks"`
	SHA256     hashes    `json:"sha256"`
	// Paths is absent where no absolute path had to be replaced.
	Paths *normalization `json:"public_path_normalization,omitempty"`
}

type hashes struct {
	Binary  beforeAfter `json:"binary"`
	Fixture beforeAfter `json:"fixture"`
}

type beforeAfter struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

func (h beforeAfter) same() bool { return h.Before != "" && h.Before == h.After }

// normalization says what stands for absolute paths in the receipts. The paths
// themselves are not written.
type normalization struct {
	// OriginalReceipt is the SHA-256 of this receipt before the replacement and
	// without this member.
	OriginalReceipt string `json:"original_receipt_sha256"`
	// Replaced are the SHA-256 of the paths by what stands for them.
	Replaced map[string]string `json:"replaced_sha256"`
}

// failureReceipt is failure-receipt.json: what was refused and had to be, and
// what should have held and did not.
type failureReceipt struct {
	Tool             string            `json:"tool"`
	ExpectedRefusals []expectedRefusal `json:"expected_refusals"`
	Unexpected       []Check           `json:"unexpected_failures"`
}

type expectedRefusal struct {
	Check
	// Expected is always true: the refusal is what the check asks for.
	Expected bool `json:"expected"`
}

func (r receipt) failures() failureReceipt {
	f := failureReceipt{Tool: r.Tool, ExpectedRefusals: []expectedRefusal{}, Unexpected: []Check{}}
	for _, c := range r.Checks {
		if c.ExpectedRefusal {
			f.ExpectedRefusals = append(f.ExpectedRefusals, expectedRefusal{c, true})
		}
	}
	f.Unexpected = append(f.Unexpected, failedOf(r.Checks)...)
	return f
}

// hiddenPath is an absolute path and what stands for it in public.
type hiddenPath struct{ path, placeholder string }

// normalize replaces absolute paths in the evidence of the checks, the longest
// first.
func (r receipt) normalize(hidden []hiddenPath) (receipt, error) {
	original, err := encode(r)
	if err != nil {
		return r, err
	}
	hidden = slices.DeleteFunc(slices.Clone(hidden), func(h hiddenPath) bool { return len(h.path) < 2 })
	slices.SortStableFunc(hidden, func(a, b hiddenPath) int { return len(b.path) - len(a.path) })
	used := make(map[string]string)
	r.Checks = slices.Clone(r.Checks)
	for i, c := range r.Checks {
		for _, h := range hidden {
			if strings.Contains(c.Evidence, h.path) {
				c.Evidence = strings.ReplaceAll(c.Evidence, h.path, h.placeholder)
				used[h.placeholder] = sha256Hex([]byte(h.path))
			}
		}
		r.Checks[i] = c
	}
	if len(used) > 0 {
		r.Paths = &normalization{sha256Hex(original), used}
	}
	return r, nil
}

// encode is the one form of JSON in a folder of receipts.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.Bytes(), err
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// vector is one request with the answer that is expected, in the form of
// webhook/testdata/vectors.json.
type vector struct {
	ID       string            `json:"id"`
	Provider string            `json:"provider"`
	Secret   string            `json:"secret"`
	More     []string          `json:"additional_secrets"`
	Headers  map[string]string `json:"headers"`
	Body     []byte            `json:"body_base64"`
	Now      int64             `json:"now_unix"`
	URL      string            `json:"url"`
	TaskID   string            `json:"task_id"`
	Expect   string            `json:"expect"`
}

// vectors prints a line for each vector and a sum; it fails unless all agree.
func (c *verifyCmd) vectors(s *session) error {
	text, err := s.file(c.Vectors)
	if err != nil {
		return usage("--vectors: %w", err)
	}
	var file struct {
		Vectors []vector `json:"vectors"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return usage("--vectors: not a file of vectors: %w", err)
	}
	judged := []judgement{}
	passed, failed := 0, 0
	for _, v := range file.Vectors {
		if c.Provider != "" && v.Provider != c.Provider {
			continue
		}
		got := v.judge()
		if got == v.Expect {
			passed++
		} else {
			failed++
		}
		judged = append(judged, judgement{v.ID, v.Expect, got})
	}
	if err := s.judgements(judged, passed, failed); err != nil {
		return err
	}
	switch {
	case passed+failed == 0:
		return fmt.Errorf("no vector was checked: the file holds none of that provider")
	case failed > 0:
		return errShown
	}
	return nil
}

// judgement is what is told of one vector.
type judgement struct {
	ID       string `json:"id"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
}

func (s *session) judgements(judged []judgement, passed, failed int) error {
	if s.flags.JSON {
		text, err := encode(struct {
			Vectors []judgement `json:"vectors"`
			Passed  int         `json:"passed"`
			Failed  int         `json:"failed"`
		}{judged, passed, failed})
		if err != nil {
			return err
		}
		return s.printJSON(text)
	}
	var out strings.Builder
	for _, j := range judged {
		fmt.Fprintf(&out, "%s %s %s\n", plain(j.ID), plain(j.Expected), j.Got)
	}
	fmt.Fprintf(&out, "%d passed, %d failed\n", passed, failed)
	return s.print(out.String())
}

// judge is "valid", "invalid" or, for a provider whose scheme this version
// lacks, "unknown".
func (v vector) judge() string {
	scheme, ok := webhook.Lookup(v.Provider)
	if !ok {
		return "unknown"
	}
	h := http.Header{}
	for name, value := range v.Headers {
		h.Add(name, value)
	}
	r := webhook.Request{Header: h, Body: v.Body, URL: v.URL, TaskID: v.TaskID}
	// A provider's name covers both kinds of Standard Webhooks: the key says which
	// of them the vector is about.
	keys, err := parseKeys(scheme.ForSecret(v.Secret), append([]string{v.Secret}, v.More...))
	if err != nil {
		return "invalid"
	}
	if _, err := scheme.Verify(r, time.Unix(v.Now, 0), keys...); err != nil {
		return "invalid"
	}
	return "valid"
}

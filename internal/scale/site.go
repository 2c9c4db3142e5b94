package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"
)

// Site is a node over a filled ledger, seen from outside.
type Site struct {
	// API and Admin are the addresses of its listeners, Key is an admin key.
	API, Admin, Key string
	// Filled is when the ledger was filled, about.
	Filled time.Time

	client *http.Client
}

// Enter logs in to the console.
func (s *Site) Enter(ctx context.Context) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	s.client = &http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Admin+"/console/login", strings.NewReader(url.Values{"key": {s.Key}}.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	got, err := s.send(r)
	if err == nil && got.Status != http.StatusSeeOther {
		err = fmt.Errorf("the console's login answers %d", got.Status)
	}
	return err
}

// Answer is what came of a load.
type Answer struct {
	Status int
	Body   []byte
	// FirstByte is how long the first byte took.
	FirstByte time.Duration
}

// Load loads a page of the console or asks the API, by its path.
func (s *Site) Load(ctx context.Context, path string) (Answer, error) {
	base := s.Admin
	if strings.HasPrefix(path, "/v1/") {
		base = s.API
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return Answer{}, err
	}
	if base == s.API {
		r.Header.Set("Authorization", "Bearer "+s.Key)
	}
	return s.send(r)
}

func (s *Site) send(r *http.Request) (a Answer, err error) {
	began := time.Now()
	trace := &httptrace.ClientTrace{GotFirstResponseByte: func() { a.FirstByte = time.Since(began) }}
	res, err := s.client.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		return a, err
	}
	a.Status = res.StatusCode
	a.Body, err = io.ReadAll(res.Body)
	return a, errors.Join(err, res.Body.Close())
}

// get reads an answer of the API.
func (s *Site) get(ctx context.Context, path string, into any) error {
	a, err := s.Load(ctx, path)
	if err != nil {
		return err
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("%s answers %d: %.300s", path, a.Status, a.Body)
	}
	return json.Unmarshal(a.Body, into)
}

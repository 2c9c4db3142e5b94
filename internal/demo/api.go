package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// apiClient calls the node's API as an application would.
type apiClient struct {
	base, key string
	http      *http.Client
}

func newAPIClient(base, key string) *apiClient {
	return &apiClient{base, key, &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
}

// operation is what the demo looks at of an operation.
type operation struct {
	ID      string `json:"id"`
	State   string `json:"state"`
	Version int64  `json:"version"`
	Cost    struct {
		Amount  string `json:"amount"`
		Settled bool   `json:"settled"`
	} `json:"cost"`
}

func (c *apiClient) post(ctx context.Context, path, idempotencyKey string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, path, idempotencyKey, bytes.NewReader(text), into)
}

func (c *apiClient) call(ctx context.Context, method, path, idempotencyKey string, body io.Reader, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	if idempotencyKey != "" {
		req.Header.Set("Idempotency-Key", idempotencyKey)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, text)
	}
	return json.Unmarshal(text, into)
}

// pages walks a list to its end.
func pages[T any](ctx context.Context, c *apiClient, path string, query url.Values, visit func(T)) error {
	query.Set("page_size", "200")
	for {
		var page struct {
			Items []T    `json:"items"`
			Next  string `json:"next_page_token"`
		}
		if err := c.call(ctx, http.MethodGet, path+"?"+query.Encode(), "", nil, &page); err != nil {
			return err
		}
		for _, item := range page.Items {
			visit(item)
		}
		if page.Next == "" {
			return nil
		}
		query.Set("page_token", page.Next)
	}
}

func (c *apiClient) operations(ctx context.Context) (map[string]operation, error) {
	all := make(map[string]operation)
	err := pages(ctx, c, "/v1/operations", url.Values{}, func(op operation) { all[op.ID] = op })
	return all, err
}

func (c *apiClient) waitingDeliveries(ctx context.Context, endpoint string) (n int, err error) {
	for _, state := range [...]string{"pending", "delivering"} {
		query := url.Values{"endpoint": {endpoint}, "state": {state}}
		if err := pages(ctx, c, "/v1/deliveries", query, func(struct{}) { n++ }); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// inbound is one line of the node's metrics: how many events of a source came
// to a verdict, duplicates and refused ones included.
var inbound = regexp.MustCompile(`(?m)^pawl_inbound_events_total\{source="[^"]*",verdict="([a-z_]+)"\} ([0-9]+)$`)

// verdicts counts what the sources have sent by verdict.
func (c *apiClient) verdicts(ctx context.Context, admin string) (map[string]int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, admin+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	counts := make(map[string]int)
	for _, line := range inbound.FindAllStringSubmatch(string(text), -1) {
		n, _ := strconv.Atoi(line[2])
		counts[line[1]] += n
	}
	return counts, err
}

package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
)

// pageSize is how many rows are fetched at once.
const pageSize = 100

// list yields a list from its newest row on, page by page as it is consumed. An
// error is yielded once, and ends it.
func list[T any](ctx context.Context, c *Client, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		q := url.Values{"page_size": {strconv.Itoa(pageSize)}}
		for name, values := range query {
			q[name] = values
		}
		for {
			var page struct {
				Items []T    `json:"items"`
				Next  string `json:"next_page_token"`
			}
			if err := c.do(ctx, get(path, q), &page); err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			q.Set("page_token", page.Next)
		}
	}
}

// whole reads a list that comes in one piece.
func whole[T any](ctx context.Context, c *Client, path string) ([]T, error) {
	var page struct {
		Items []T `json:"items"`
	}
	err := c.do(ctx, get(path, nil), &page)
	return page.Items, err
}

// Collect gathers at most limit rows of a list; all if limit is 0.
func Collect[T any](rows iter.Seq2[T, error], limit int) ([]T, error) {
	var all []T
	for row, err := range rows {
		if err != nil {
			return all, err
		}
		if all = append(all, row); len(all) == limit {
			break
		}
	}
	return all, nil
}

// params gathers the parameters of a query that are not empty.
func params(pairs ...string) url.Values {
	q := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

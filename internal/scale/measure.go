package scale

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// Page is how quick the first byte of a page comes.
type Page struct {
	Path     string
	P50, P95 time.Duration
}

// Measure loads every page so many times, one after the other, and gives the
// slowest first. Each is loaded once more before it counts. Who waits is told on
// the writer.
func (s *Site) Measure(ctx context.Context, times int, progress io.Writer) ([]Page, error) {
	if err := s.Enter(ctx); err != nil {
		return nil, err
	}
	paths, err := s.Paths(ctx)
	if err != nil {
		return nil, err
	}
	pages := make([]Page, 0, len(paths))
	for i, path := range paths {
		took := make([]time.Duration, 0, times)
		for n := range times + 1 {
			a, err := s.Load(ctx, path)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			if a.Status >= http.StatusInternalServerError || a.Status == http.StatusBadRequest {
				return nil, fmt.Errorf("%s answers %d: %.300s", path, a.Status, a.Body)
			}
			if n > 0 {
				took = append(took, a.FirstByte)
			}
		}
		slices.Sort(took)
		page := Page{path, took[len(took)/2], took[len(took)*95/100]}
		pages = append(pages, page)
		fmt.Fprintf(progress, "%d/%d %s %s\n", i+1, len(paths), page.P95.Round(10*time.Microsecond), path)
	}
	slices.SortFunc(pages, func(a, b Page) int { return int(b.P95 - a.P95) })
	return pages, nil
}

package sim

import (
	"net/http"
	"strconv"
	"time"
)

// maxList is how many tasks a page of the list has at most.
const maxList = 100

// listed is a task as the list shows it; it was updated when it was made, or ended.
type listed struct {
	Task      string    `json:"task"`
	State     string    `json:"state"`
	UpdatedAt time.Time `json:"updated_at"`
}

// listNative lists the tasks in the order that they were made, limit a page, those
// behind the task that after names.
func (s *Server) listNative(w http.ResponseWriter, r *http.Request) {
	if !s.authorized(w, r, Native) {
		return
	}
	query := r.URL.Query()
	limit := maxList
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			s.refuse(w, Native, http.StatusBadRequest, "invalid_request", "limit must be a number above 0")
			return
		}
		limit = min(n, maxList)
	}
	tasks, more, ok := s.book.after(Native, query.Get("after"), limit)
	if !ok {
		s.refuse(w, Native, http.StatusBadRequest, "invalid_request", "after names no task")
		return
	}
	var answer struct {
		Items []listed `json:"items"`
		Next  *string  `json:"next"`
	}
	answer.Items = []listed{}
	now := time.Now()
	for _, t := range tasks {
		r := t.current(now)
		updated := r.made
		if !r.ended.IsZero() {
			updated = r.ended
		}
		answer.Items = append(answer.Items, listed{t.id, r.word, updated.UTC().Truncate(time.Second)})
	}
	if more {
		answer.Next = &tasks[len(tasks)-1].id
	}
	writeJSON(w, http.StatusOK, answer)
}

// after are a dialect's tasks behind the one of that id, or the first ones, and
// whether more follow. It is not ok if there is no such task.
func (b *taskBook) after(d Dialect, id string, limit int) (tasks []*task, more, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ok = id == ""
	for _, t := range b.order {
		switch {
		case t.script.Dialect != d:
		case ok && len(tasks) == limit:
			return tasks, true, true
		case ok:
			tasks = append(tasks, t)
		case t.id == id:
			ok = true
		}
	}
	return tasks, false, ok
}

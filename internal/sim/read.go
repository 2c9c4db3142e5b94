package sim

import (
	"net/http"
	"time"
)

// unknownTask is what the dialects say of an id that they do not know.
const unknownTask = "task not found"

func pathTask(r *http.Request) string  { return r.PathValue("task") }
func queryTask(r *http.Request) string { return r.URL.Query().Get("taskId") }

// reader is the handler of a dialect's status read.
func (s *Server) reader(d Dialect, id func(*http.Request) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.authorized(w, r, d) {
			return
		}
		t, ok := s.book.find(d, id(r))
		if !ok {
			s.refuse(w, d, http.StatusNotFound, "unknown_task", unknownTask)
			return
		}
		answer, fault := t.read(time.Now())
		switch fault {
		case ReadFailed:
			s.refuse(w, d, http.StatusInternalServerError, "internal", "something went wrong")
			return
		case ReadNotFound:
			s.refuse(w, d, http.StatusNotFound, "unknown_task", unknownTask)
			return
		}
		writeJSON(w, http.StatusOK, d.voice().state(answer, s.requestID()))
	}
}

func (s *Server) lookupNative(w http.ResponseWriter, r *http.Request) {
	if !s.authorized(w, r, Native) {
		return
	}
	t, ok := s.book.findRef(r.URL.Query().Get("client_ref"))
	if !ok {
		s.refuse(w, Native, http.StatusNotFound, "unknown_task", unknownTask)
		return
	}
	s.books.edit(t.script.N, func(p *page) { p.lookups++ })
	writeJSON(w, http.StatusOK, native{}.state(t.current(time.Now()), ""))
}

func (s *Server) cancelNative(w http.ResponseWriter, r *http.Request) {
	if !s.authorized(w, r, Native) {
		return
	}
	t, ok := s.book.find(Native, pathTask(r))
	if !ok {
		s.refuse(w, Native, http.StatusNotFound, "unknown_task", unknownTask)
		return
	}
	state, canceled, fault := t.cancel(time.Now())
	s.books.edit(t.script.N, func(p *page) { p.cancels++ })
	switch {
	case fault == CancelLost:
		panic(http.ErrAbortHandler)
	case fault == CancelFailed:
		s.refuse(w, Native, http.StatusServiceUnavailable, "upstream_unavailable", "try again later")
	case !canceled:
		s.refuse(w, Native, http.StatusConflict, "not_cancelable", "the task cannot be canceled")
	default:
		writeJSON(w, http.StatusAccepted, native{}.state(state, ""))
	}
}

package sim

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An outage is of one dialect: its calls are answered 500 and make nothing, the
// callbacks that fall due are lost, and a read afterwards tells what became of the
// task.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := NewServer(NewScripts(Options{}), Config{Keys: []string{"k"}, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nobody is there") }})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		call := func(method, path, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, path, strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer k")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w
		}
		create := `{"model":"m","input":{},"client_ref":"r","callback_url":"http://127.0.0.1:1/hook"}`
		made := call(http.MethodPost, "/generate", create)
		task := strings.Split(strings.SplitAfter(made.Body.String(), `"task":"`)[1], `"`)[0]
		s.Fail(Native)
		for _, path := range []string{"/status/" + task, "/lookup?client_ref=r"} {
			if w := call(http.MethodGet, path, ""); w.Code != http.StatusInternalServerError {
				t.Errorf("%s: %d during the outage", path, w.Code)
			}
		}
		if w := call(http.MethodPost, "/generate", strings.Replace(create, `"r"`, `"r2"`, 1)); w.Code != http.StatusInternalServerError {
			t.Errorf("a create: %d during the outage", w.Code)
		}
		if w := call(http.MethodPost, "/tasks", create); w.Code/100 != 2 {
			t.Errorf("another dialect: %d", w.Code)
		}
		time.Sleep(2 * time.Second) // Both callbacks fall due.
		synctest.Wait()
		s.Fail()
		time.Sleep(time.Minute)
		if w := call(http.MethodGet, "/status/"+task, ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "succeeded") {
			t.Errorf("after the outage: %d %s", w.Code, w.Body)
		}
		tasks := 0
		for _, op := range s.Snapshot().Operations {
			for _, made := range op.Tasks {
				if tasks++; made.ID != task {
					continue
				}
				for _, c := range op.Callbacks {
					if c.Fault != CallbackDropped {
						t.Errorf("a callback was sent: %+v", c)
					}
				}
				if len(op.Callbacks) != 2 {
					t.Errorf("%d callbacks fell due, want 2", len(op.Callbacks))
				}
			}
		}
		if tasks != 2 {
			t.Errorf("%d tasks, want one of each dialect", tasks)
		}
	})
}

package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/pawlhq/pawl"
)

// maxBody bounds what the server and the receiver read of one request.
const maxBody = 4 << 20

// createCall is a create in any dialect, once it is read.
type createCall struct {
	dialect        Dialect
	apiKey         string
	clientRef      string
	idempotencyKey string
	model          string
	input          json.RawMessage
	callbackURL    string
	base           string
}

// ref is what the client calls the operation.
func (c createCall) ref() string {
	if c.idempotencyKey != "" {
		return c.idempotencyKey
	}
	return c.clientRef
}

// fingerprint is what must not change under one idempotency key.
func (c createCall) fingerprint() string {
	var input bytes.Buffer
	if json.Compact(&input, c.input) != nil {
		input.Write(c.input)
	}
	return c.model + "\n" + c.callbackURL + "\n" + input.String()
}

// createBody has the fields of all three dialects' create bodies.
type createBody struct {
	Model        string          `json:"model"`
	Input        json.RawMessage `json:"input"`
	CallbackURL  string          `json:"callback_url"`
	CallbackURL2 string          `json:"callBackUrl"`
	ClientRef    string          `json:"client_ref"`
}

func (s *Server) createNative(w http.ResponseWriter, r *http.Request) {
	s.create(w, r, Native, func(c *createCall, b createBody) {
		c.callbackURL, c.clientRef = b.CallbackURL, b.ClientRef
	})
}

func (s *Server) createMediaV2(w http.ResponseWriter, r *http.Request) {
	s.create(w, r, MediaV2, func(c *createCall, b createBody) {
		c.callbackURL, c.idempotencyKey = b.CallbackURL2, r.Header.Get("Idempotency-Key")
	})
}

func (s *Server) createBodyTimestamp(w http.ResponseWriter, r *http.Request) {
	s.create(w, r, BodyTimestamp, func(c *createCall, b createBody) { c.callbackURL = b.CallbackURL })
}

// create reads the call, then plays the script's fault for it.
func (s *Server) create(w http.ResponseWriter, r *http.Request, d Dialect, fill func(*createCall, createBody)) {
	if !s.authorized(w, r, d) {
		return
	}
	c := createCall{dialect: d, apiKey: bearer(r), base: "http://" + r.Host}
	if message := c.read(r, fill); message != "" {
		s.refuse(w, d, http.StatusBadRequest, "invalid_request", message)
		return
	}
	script, message := s.scriptOf(c)
	if message != "" {
		s.refuse(w, d, http.StatusBadRequest, "invalid_request", message)
		return
	}
	fault := script.Create
	if s.book.countCreate(script.N) >= script.CreateTimes && fault != CreateRefused {
		fault = ""
	}
	record := Create{ClientRef: c.ref(), Fault: fault}
	if !fault.made() {
		s.refuseCreate(w, script, record)
		return
	}
	t, state := s.book.add(c, s.newTask(c, script), time.Now())
	if state == keySibling || state == keyMismatch {
		s.refuseKey(w, script.N, record, state)
		return
	}
	record.Task, record.Replayed = t.id, state == keyReplay
	if state == keyNew {
		s.books.edit(script.N, func(p *page) { p.tasks = append(p.tasks, t) })
		s.courier.schedule(r.Context(), t)
	}
	s.answerCreate(w, r, t, record)
}

// read fills the call from the request, or says what is wrong with it.
func (c *createCall) read(r *http.Request, fill func(*createCall, createBody)) string {
	raw, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return "the body could not be read"
	}
	var b createBody
	if len(raw) > 0 && json.Unmarshal(raw, &b) != nil {
		return "the body is not a JSON object of this call"
	}
	c.model, c.input = b.Model, b.Input
	fill(c, b)
	if c.callbackURL != "" {
		u, err := url.Parse(c.callbackURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "the callback address is not an absolute http URL"
		}
	}
	if c.dialect.Idempotent() && c.idempotencyKey == "" {
		return "the header Idempotency-Key is missing"
	}
	return ""
}

// scriptOf finds the script that the input's number names. An operation
// without a number gets one in which nothing goes wrong.
func (s *Server) scriptOf(c createCall) (Script, string) {
	var input struct {
		N *int `json:"n"`
	}
	if json.Unmarshal(c.input, &input) == nil && input.N != nil {
		if script, ok := s.plan.Script(*input.N); ok {
			if script.Dialect != c.dialect && !s.config.AnyDialect {
				return Script{}, fmt.Sprintf("operation %d of the plan belongs to the %s dialect", script.N, script.Dialect)
			}
			script.Dialect = c.dialect
			return script, ""
		}
	}
	price := s.plan.options.Price
	return Script{
		N: s.book.stranger(c.ref()), Dialect: c.dialect, Final: pawl.Succeeded, Price: price, Cost: price,
		Start: 200 * time.Millisecond, End: time.Second, Settle: time.Second,
		Callbacks: []Callback{
			{Event: "running", Kind: TellsRunning, At: 200 * time.Millisecond},
			{Event: "end", Kind: TellsEnd, At: time.Second},
		},
	}, ""
}

func (s *Server) newTask(c createCall, script Script) *task {
	return &task{
		model: c.model, clientRef: c.ref(), callbackURL: c.callbackURL, base: c.base,
		currency: s.plan.options.Currency, script: script, speed: s.config.Speed, bodies: map[string][]byte{},
	}
}

// refuseCreate answers a create that leaves no task.
func (s *Server) refuseCreate(w http.ResponseWriter, script Script, record Create) {
	code, message := "invalid_request", "the input is refused"
	switch record.Fault {
	case CreateLimited:
		record.Status, code, message = http.StatusTooManyRequests, "rate_limited", "too many requests"
		w.Header().Set("Retry-After", "1")
	case CreateFailedBefore:
		record.Status, code, message = http.StatusServiceUnavailable, "upstream_unavailable", "try again later"
	default:
		record.Status = http.StatusBadRequest
	}
	s.books.edit(script.N, func(p *page) { p.creates = append(p.creates, record) })
	s.refuse(w, script.Dialect, record.Status, code, message)
}

// refuseKey answers a create whose idempotency key means something else.
func (s *Server) refuseKey(w http.ResponseWriter, n int, record Create, state keyState) {
	record.Status = http.StatusConflict
	message := "the idempotency key is used by another API key"
	if state == keyMismatch {
		record.Status = http.StatusUnprocessableEntity
		message = "the idempotency key was used for another request"
	}
	s.books.edit(n, func(p *page) { p.creates = append(p.creates, record) })
	s.refuse(w, MediaV2, record.Status, "conflict", message)
}

// answerCreate tells the client of its task, or does not.
func (s *Server) answerCreate(w http.ResponseWriter, r *http.Request, t *task, record Create) {
	d := t.script.Dialect
	told := t.current(time.Now())
	if record.Fault == CreateOther {
		told.task += "-second"
	}
	status, body := d.voice().accepted(told, s.requestID())
	switch record.Fault {
	case CreateLost, CreateSlow:
		status = 0
	case CreateFailedAfter:
		status = http.StatusServiceUnavailable
		body = d.voice().refused(status, "upstream_unavailable", "try again later", s.requestID())
	}
	record.Status = status
	s.books.edit(t.script.N, func(p *page) { p.creates = append(p.creates, record) })
	if record.Fault == CreateSlow {
		s.hold(r)
	}
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	writeJSON(w, status, body)
}

// hold waits until the client has given up.
func (s *Server) hold(r *http.Request) {
	timer := time.NewTimer(s.config.Hold)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	case <-s.ctx.Done():
	}
}

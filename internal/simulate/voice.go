package simulate

import (
	"net/url"
	"strings"

	"github.com/pawlhq/pawl"
)

// voice is how a provider speaks: paths, words and bodies of its API.
type voice interface {
	// scheme is that of its signatures.
	scheme() string
	// route says what a request asks for: create, read, cancel or lookup, and of
	// which task or reference.
	route(c *call) (what, of string)
	// accepted and created are the answer to a create, refused that to any other
	// request that fails.
	accepted(report) any
	refused(status int, code string) any
	status(report) any
	event(id string, r report, kind tells) any
	words
}

// words are what a voice can say of a task.
type words interface {
	created() int
	word(pawl.State) string
	ends() []pawl.State
	// priced: it reports costs; settles: they may be final later; currencies: it
	// names the currency; typed: its events have types.
	priced() bool
	settles() bool
	currencies() bool
	typed() bool
}

type object map[string]any

func fraction(percent int) any {
	if percent < 0 {
		return nil
	}
	return float64(percent) / 100
}

// nativeVoice is that of the preset "sim".
type nativeVoice struct{}

func (nativeVoice) scheme() string { return "standard-webhooks" }

func (nativeVoice) route(c *call) (string, string) {
	switch {
	case c.method == "POST" && c.path == "/generate":
		return "create", ""
	case strings.HasPrefix(c.path, "/status/"):
		return "read", strings.TrimPrefix(c.path, "/status/")
	case strings.HasPrefix(c.path, "/cancel/"):
		return "cancel", strings.TrimPrefix(c.path, "/cancel/")
	case c.path == "/lookup":
		return "lookup", parameter(c.query, "client_ref")
	}
	return "", ""
}

func parameter(query, name string) string {
	values, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	return values.Get(name)
}

func (nativeVoice) accepted(r report) any {
	return object{"task": r.task, "state": "queued", "request_id": "req-" + r.task}
}
func (nativeVoice) created() int { return 202 }

func (nativeVoice) refused(_ int, code string) any {
	return object{"error": object{"code": code, "message": "no"}}
}

func (nativeVoice) status(r report) any {
	o := object{"task": r.task, "state": r.word, "cost": r.cost.String(), "currency": r.currency, "settled": r.settled, "progress": fraction(r.percent)}
	if r.result != "" {
		o["result"] = object{"url": r.result}
	}
	if r.code != "" {
		o["error"] = object{"code": r.code, "message": "it did not succeed"}
	}
	return o
}

func (v nativeVoice) event(_ string, r report, kind tells) any {
	o := v.status(r).(object)
	o["type"] = "task.updated"
	if kind == tellsProgress {
		o["type"] = "task.progress"
	}
	return o
}

func (nativeVoice) word(s pawl.State) string {
	switch s {
	case pawl.Pending:
		return "queued"
	case pawl.Running:
		return "processing"
	}
	return s.String()
}

func (nativeVoice) ends() []pawl.State {
	return []pawl.State{pawl.Succeeded, pawl.Succeeded, pawl.Succeeded, pawl.Succeeded, pawl.Failed, pawl.Canceled, pawl.Expired}
}
func (nativeVoice) priced() bool     { return true }
func (nativeVoice) settles() bool    { return true }
func (nativeVoice) currencies() bool { return true }
func (nativeVoice) typed() bool      { return true }

// mediaVoice is that of the preset "media-v2" (2-contracts §2).
type mediaVoice struct{}

func (mediaVoice) scheme() string { return "media-v2" }

func (mediaVoice) route(c *call) (string, string) {
	switch {
	case c.method == "POST" && c.path == "/api/v1/jobs/createTask":
		return "create", ""
	case c.path == "/api/v1/jobs/recordInfo":
		return "read", parameter(c.query, "taskId")
	}
	return "", ""
}

func mediaEnvelope(code int, data any, request string) object {
	return object{"code": code, "msg": "msg", "data": data, "request_id": request}
}

func (mediaVoice) accepted(r report) any {
	return mediaEnvelope(200, object{"taskId": r.task}, "req-"+r.task)
}
func (mediaVoice) created() int { return 200 }

func (mediaVoice) refused(status int, code string) any {
	return mediaEnvelope(status, object{"errorCode": code}, "req")
}

func (mediaVoice) status(r report) any { return mediaEnvelope(200, mediaData(r), "req-"+r.task) }

func mediaData(r report) object {
	o := object{"taskId": r.task, "model": "m", "state": r.word, "cost": r.cost.String(), "settled": r.settled}
	if r.result != "" {
		o["result"] = object{"url": r.result}
	}
	if r.code != "" {
		o["errorCode"], o["errorMessage"] = r.code, "it did not succeed"
	}
	return o
}

func (mediaVoice) event(id string, r report, _ tells) any {
	return mediaEnvelope(200, mediaData(r), id)
}

func (mediaVoice) word(s pawl.State) string { return nativeVoice{}.word(s) }

func (mediaVoice) ends() []pawl.State {
	return []pawl.State{pawl.Succeeded, pawl.Succeeded, pawl.Succeeded, pawl.Succeeded, pawl.Failed, pawl.Expired}
}
func (mediaVoice) priced() bool     { return true }
func (mediaVoice) settles() bool    { return true }
func (mediaVoice) currencies() bool { return false }
func (mediaVoice) typed() bool      { return false }

// versionVoice is that of the preset "body-timestamp" (2-contracts §3).
type versionVoice struct{}

func (versionVoice) scheme() string { return "body-timestamp" }

func (versionVoice) route(c *call) (string, string) {
	switch {
	case c.method == "POST" && c.path == "/tasks":
		return "create", ""
	case strings.HasPrefix(c.path, "/tasks/"):
		return "read", strings.TrimPrefix(c.path, "/tasks/")
	}
	return "", ""
}

func (versionVoice) accepted(r report) any { return object{"task_id": r.task, "status": "pending"} }
func (versionVoice) created() int          { return 202 }

func (versionVoice) refused(_ int, code string) any { return object{"error": code} }

func (versionVoice) status(r report) any {
	o := object{"task_id": r.task, "status": r.word, "version": r.version}
	if r.result != "" {
		o["result"] = object{"url": r.result}
	}
	return o
}

func (v versionVoice) event(id string, r report, kind tells) any {
	o := object{"id": id, "type": "ai.task.updated", "data": v.status(r)}
	switch {
	case kind == tellsProgress:
		o["type"] = "ai.task.progress"
	case r.state.Terminal():
		o["type"] = "ai.task.completed"
	}
	return o
}

func (versionVoice) word(s pawl.State) string { return s.String() }

func (versionVoice) ends() []pawl.State {
	return []pawl.State{pawl.Succeeded, pawl.Succeeded, pawl.Succeeded, pawl.Succeeded, pawl.Failed, pawl.Canceled}
}
func (versionVoice) priced() bool     { return false }
func (versionVoice) settles() bool    { return false }
func (versionVoice) currencies() bool { return false }
func (versionVoice) typed() bool      { return true }

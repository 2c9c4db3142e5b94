package console

import (
	"net/http"

	"github.com/pawlhq/pawl"
)

// madeSecret is the answer of a call that makes secrets: it is the only one that
// shows them.
type madeSecret struct {
	ID            string     `json:"id"`
	Secret        string     `json:"secret"`
	WebhookSecret string     `json:"webhook_secret"`
	FormerUntil   *pawl.Time `json:"former_secret_until"`
}

// secretView shows a secret once.
type secretView struct {
	Title string
	madeSecret
}

// makeSecret makes a call that makes secrets, and shows them. The API cannot repeat
// such an answer, and a page that was loaded again would make another secret, so
// that a form is good for one.
func (v *visit) makeSecret(title string, cl call) error {
	once := v.r.URL.Path + " " + v.r.PostForm.Get("once")
	if !v.sessions.spend(v.token, once) {
		return errSent
	}
	var made madeSecret
	if err := v.do(cl, &made); err != nil {
		v.sessions.refund(v.token, once)
		return err
	}
	return v.show(http.StatusOK, "secret", title, secretView{title, made})
}

var errSent = &problem{Status: http.StatusConflict, Title: "The form was sent before", Detail: "What it made stands, and its secret was shown by the first answer alone. Where that is lost, open the page anew and make another."}

// rotations are the calls that give something a new secret, by the path of the
// console.
var rotations = map[string]struct{ to, title string }{
	"/console/endpoints/{id}/rotate":           {"/v1/endpoints/{id}/rotate-secret", "New signing secret"},
	"/console/keys/{id}/rotate":                {"/v1/keys/{id}/rotate", "New secret of the API key"},
	"/console/keys/{id}/rotate-webhook-secret": {"/v1/keys/{id}/rotate-webhook-secret", "New webhook secret of the API key"},
}

// rotate gives one of them a new secret and shows it. The former one goes on
// beside it for as long as the form says.
func (v *visit) rotate(to, title string) error {
	why, err := v.reason()
	if err != nil {
		return err
	}
	body := make(map[string]string)
	if overlap := v.r.PostForm.Get("overlap"); overlap != "" {
		body["overlap"] = overlap
	}
	return v.makeSecret(title, call{method: http.MethodPost, path: v.fill(to), body: body, why: why})
}

package console

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/api"
)

type loginView struct {
	Next, Fault string
}

func (v *visit) loginPage() error {
	next := local(v.r.URL.Query().Get("next"))
	if v.session != nil {
		return v.redirect(next)
	}
	return v.show(http.StatusOK, "login", "Log in", loginView{Next: next})
}

// login begins a session for whoever shows the secret of an API key.
func (v *visit) login() error {
	next, secret := local(v.r.PostFormValue("next")), strings.TrimSpace(v.r.PostFormValue("key"))
	refuse := func(status int, fault string) error {
		return v.show(status, "login", "Log in", loginView{next, fault})
	}
	if !v.logins.take(remote(v.r), time.Now()) {
		v.w.Header().Set("Retry-After", "6")
		return refuse(http.StatusTooManyRequests, "Too many attempts from your address. Wait a few seconds and try again.")
	}
	visitor, ok, err := v.o.API.Enter(v.r.Context(), secret, "console.login")
	var person api.Person
	if err == nil && ok {
		person, ok, err = v.o.API.Person(v.r.Context(), visitor)
	}
	if err != nil {
		return err
	}
	if !ok {
		return refuse(http.StatusUnauthorized, "This API key is unknown, revoked or expired.")
	}
	if v.session != nil {
		v.sessions.end(v.token)
	}
	setCookie(v.w, v.r, v.sessions.begin(visitor, person.Key, time.Now()), lifetime)
	return v.redirect(next)
}

func (v *visit) logout() error {
	if v.session != nil {
		v.sessions.end(v.token)
		if _, err := v.o.API.Note(v.r.Context(), v.session.visitor, "console.logout"); err != nil {
			return err
		}
	}
	setCookie(v.w, v.r, "", -time.Second)
	return v.redirect("/console/login")
}

// local is a path of the console, whatever was asked for: a login never leads
// elsewhere.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || path.Clean(u.Path) != u.Path || u.Path != home && !strings.HasPrefix(u.Path, home+"/") || u.Path == home+"/login" {
		return home
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}

// Path is what everything here begins with; it is the overview itself.
const Path = "/console"

const home = Path

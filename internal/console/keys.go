package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/pawlhq/pawl"
)

// scopeWords are the scopes that a key may have.
var scopeWords = []string{"submit", "read", "operate", "payloads", "admin"}

// keyItem is an API key without its secrets.
type keyItem struct {
	ID                 string     `json:"id"`
	Tenant             string     `json:"tenant"`
	Name               string     `json:"name"`
	Scopes             []string   `json:"scopes"`
	CreatedAt          pawl.Time  `json:"created_at"`
	ExpiresAt          *pawl.Time `json:"expires_at"`
	RevokedAt          *pawl.Time `json:"revoked_at"`
	LastUsedAt         *pawl.Time `json:"last_used_at"`
	FormerUntil        *pawl.Time `json:"former_secret_until"`
	FormerWebhookUntil *pawl.Time `json:"former_webhook_secret_until"`
	Limits             struct {
		Rate *struct {
			PerSecond float64 `json:"per_second"`
			Burst     int32   `json:"burst"`
		} `json:"rate"`
		Budget *struct {
			Amount   string `json:"amount"`
			Currency string `json:"currency"`
			Used     string `json:"used"`
		} `json:"budget"`
		Upstreams []string `json:"upstreams"`
	} `json:"limits"`
}

// keysView is the list of API keys.
type keysView struct {
	Items  []keyItem
	Next   string
	Scopes []string
}

func (v *visit) keys() error {
	var found list[keyItem]
	if err := v.get("/v1/keys", v.filters(), &found); err != nil {
		return err
	}
	return v.show(http.StatusOK, "keys", "Keys", keysView{found.Items, found.link(v.r), scopeWords})
}

// keyView is one API key with what was done with it last.
type keyView struct {
	Key   keyItem
	Audit []auditItem
}

func (v *visit) key() error {
	id := v.r.PathValue("id")
	var out keyView
	if err := v.get("/v1/keys/"+url.PathEscape(id), nil, &out.Key); err != nil {
		return err
	}
	var acts list[auditItem]
	if err := v.get("/v1/audit", url.Values{"actor": {id}, "page_size": {"20"}}, &acts); err != nil {
		return err
	}
	out.Audit = acts.Items
	return v.show(http.StatusOK, "key", "Key "+short(id), out)
}

// addKey makes an API key and shows its secrets.
func (v *visit) addKey() error {
	why, err := v.reason()
	if err != nil {
		return err
	}
	body := map[string]any{"scopes": v.r.PostForm["scope"]}
	for _, name := range [...]string{"tenant", "name", "expires_at"} {
		if text := strings.TrimSpace(v.r.PostForm.Get(name)); text != "" {
			body[name] = text
		}
	}
	return v.makeSecret("The new API key", call{method: http.MethodPost, path: "/v1/keys", body: body, why: why})
}

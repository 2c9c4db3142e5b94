package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/pawlhq/pawl"
)

// endpointItem is an endpoint as the API shows it.
type endpointItem struct {
	ID             string     `json:"id"`
	Tenant         string     `json:"tenant"`
	Kind           string     `json:"kind"`
	URL            string     `json:"url"`
	Types          []string   `json:"types"`
	Scheme         string     `json:"scheme"`
	Description    string     `json:"description"`
	Owner          string     `json:"owner"`
	Content        string     `json:"content"`
	CompleteWithin string     `json:"complete_within"`
	Disabled       bool       `json:"disabled"`
	DisabledReason string     `json:"disabled_reason"`
	CreatedAt      pawl.Time  `json:"created_at"`
	UpdatedAt      pawl.Time  `json:"updated_at"`
	FormerUntil    *pawl.Time `json:"former_secret_until"`
	PublicKey      string     `json:"public_key"`
}

// endpointsView is the list of endpoints.
type endpointsView struct {
	Query url.Values
	Items []endpointItem
	Next  string
	// Kinds are what may be asked for.
	Kinds []string
}

func (v *visit) endpoints() error {
	query := v.filters("kind")
	var found list[endpointItem]
	if err := v.get("/v1/endpoints", query, &found); err != nil {
		return err
	}
	return v.showLive(http.StatusOK, "endpoints", "Endpoints", newest(query), endpointsView{v.r.URL.Query(), found.Items, found.link(v.r), []string{"webhook", "callback"}})
}

// endpointView is one endpoint with what was sent to it last.
type endpointView struct {
	Endpoint   endpointItem
	Deliveries []deliveryItem
	// Dead are all its dead letters, empty for none; Waiting are those of its
	// latest deliveries.
	Dead    string
	Waiting int
	More    string
}

func (v *visit) endpoint() error {
	id := v.r.PathValue("id")
	var out endpointView
	if err := v.get("/v1/endpoints/"+url.PathEscape(id), nil, &out.Endpoint); err != nil {
		return err
	}
	var sent list[deliveryItem]
	if err := v.get("/v1/deliveries", url.Values{"endpoint": {id}, "page_size": {"20"}}, &sent); err != nil {
		return err
	}
	out.Deliveries = sent.Items
	for _, d := range sent.Items {
		if d.State == "pending" || d.State == "delivering" {
			out.Waiting++
		}
	}
	var dead list[deliveryItem]
	if err := v.get("/v1/deliveries", url.Values{"endpoint": {id}, "state": {"dead"}, "page_size": {"200"}}, &dead); err != nil {
		return err
	}
	if n := len(dead.Items); n > 0 {
		out.Dead = atMost(n, dead.Next != "")
	}
	if sent.Next != "" {
		out.More = "/console/deliveries?endpoint=" + url.QueryEscape(id)
	}
	return v.showLive(http.StatusOK, "endpoint", "Endpoint "+short(id), livePath, out)
}

// addEndpoint makes an endpoint and shows its secret.
func (v *visit) addEndpoint() error {
	why, err := v.reason()
	if err != nil {
		return err
	}
	form := v.r.PostForm
	body := map[string]any{"url": strings.TrimSpace(form.Get("url"))}
	for _, name := range [...]string{"description", "owner"} {
		if text := strings.TrimSpace(form.Get(name)); text != "" {
			body[name] = text
		}
	}
	if types := strings.FieldsFunc(form.Get("types"), func(r rune) bool { return r == ',' || r == ' ' }); len(types) > 0 {
		body["types"] = types
	}
	return v.makeSecret("Signing secret of the new endpoint", call{method: http.MethodPost, path: "/v1/endpoints", query: v.forTenant(), body: body, why: why})
}

// forTenant asks for a tenant other than the key's own, where the form names one.
func (v *visit) forTenant() url.Values {
	if tenant := strings.TrimSpace(v.r.PostForm.Get("tenant")); tenant != "" {
		return url.Values{"tenant": {tenant}}
	}
	return nil
}

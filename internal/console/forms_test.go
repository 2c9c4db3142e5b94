package console

import (
	"encoding/json"
	"io/fs"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// TestFormsAreSentOnce holds that each form whose call the API can repeat without
// harm sends the key for it, so that a double click is one act.
func TestFormsAreSentOnce(t *testing.T) {
	s := newStory(t)
	var api struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name string `json:"name"`
				Ref  string `json:"$ref"`
			} `json:"parameters"`
		} `json:"paths"`
	}
	w := httptest.NewRecorder()
	s.public.ServeHTTP(w, httptest.NewRequest("GET", "/v1/openapi.json", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &api); err != nil {
		t.Fatal(err)
	}
	keyed := 0
	for _, a := range acts {
		for _, p := range api.Paths[strings.Replace(a.to, "{name}", "{id}", 1)]["post"].Parameters {
			if a.method == "" && strings.Contains(strings.ToLower(p.Name+p.Ref), "idempotency") {
				keyed++
				if !a.once {
					t.Errorf("%s sends no key", a.path)
				}
			}
		}
	}
	if keyed < 8 {
		t.Errorf("%d acts take a key", keyed)
	}
	wanted := map[string]bool{"/console/keys": true, "/console/endpoints": true, "/console/replays": true}
	for path := range rotations {
		wanted[path] = true
	}
	for _, a := range acts {
		wanted[a.path] = a.once
	}
	forms := regexp.MustCompile(`(?s)<form method="post" action="([^"]*(?:{{[^}]*}}[^"]*)*)".*?</form>`)
	place := regexp.MustCompile(`{{[^}]*\.Name}}|{{[^}]*}}`)
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := templateFiles.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range forms.FindAllStringSubmatch(string(text), -1) {
			path := place.ReplaceAllString(form[1], "{id}")
			if wanted[path] && !strings.Contains(form[0], `name="once"`) {
				t.Errorf("%s: the form of %s sends no key", name, path)
			}
		}
	}
	v := s.as("admin")
	for range 2 {
		v.post("/console/reviews/"+s.orphan+"/note", url.Values{"once": {"n1"}, "reason": {"asked the provider"}}).want(303)
	}
	_, notes, _ := strings.Cut(v.get("/console/reviews/"+s.orphan).want(200).body, `id="notes"`)
	notes, _, _ = strings.Cut(notes, "</ol>")
	if n := strings.Count(notes, "asked the provider"); n != 1 {
		t.Errorf("the note of a double click is there %d times", n)
	}
}

// TestFormsOfSecretsAreGoodForOne holds that a double click, or the page of the
// answer loaded again, makes no second secret: it would put the former one out of
// force.
func TestFormsOfSecretsAreGoodForOne(t *testing.T) {
	s := newStory(t)
	v := s.as("admin")
	for path, form := range map[string]url.Values{
		"/console/endpoints":                             {"url": {"https://hooks.example.com/second"}, "tenant": {"acme"}},
		"/console/endpoints/" + s.endpoint + "/rotate":   {"overlap": {"1h"}},
		"/console/keys":                                  {"tenant": {"acme"}, "scope": {"read"}},
		"/console/keys/" + s.keyID("reader") + "/rotate": {"overlap": {"1h"}},
	} {
		form.Set("once", "f1")
		v.post(path, form).want(400) // A refusal uses nothing up.
		form.Set("reason", "because")
		v.post(path, form).want(200).shows("shown now and never again")
		v.post(path, form).want(409).shows("The form was sent before").hides("pawl_sk_", "whsec_")
		form.Set("once", "f2")
		v.post(path, form).want(200)
	}
}

package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

type verifyCmd struct {
	signing
	Header  []string `help:"A header that was received; may be repeated." placeholder:"'NAME: VALUE'" sep:"none"`
	Now     int64    `help:"Judge the timestamp at this moment, in Unix seconds; else now." placeholder:"UNIX"`
	Vectors string   `help:"Check every vector of this file instead." placeholder:"FILE"`
	// Provider narrows Vectors.
	Provider string `help:"With --vectors: only those of this provider." placeholder:"NAME"`
	JWKS     string `name:"jwks" help:"A set of public keys, for schemes that use one; no scheme of this version does." placeholder:"FILE"`
	// PublicKey is for the two Standard Webhooks schemes, whose lists may hold
	// signatures of both.
	PublicKey []string `help:"A public key (whpk_…) that verifies v1a signatures; may be repeated." placeholder:"KEY" sep:"none"`
}

// signing is what verifying and signing have in common.
type signing struct {
	Scheme string   `help:"How it is signed: ${schemes}." placeholder:"NAME"`
	Secret []string `help:"The secret; repeat it while rotating." placeholder:"SECRET" sep:"none"`
	URL    string   `name:"url" help:"The address that was called, for schemes that sign it." placeholder:"URL"`
	TaskID string   `name:"task-id" help:"The task that the body must name, for schemes that sign it." placeholder:"ID"`
	Body   string   `help:"The raw body: a file, or - for standard input." default:"-" placeholder:"FILE"`
}

// Help teaches by example.
func (verifyCmd) Help() string {
	return `Exit status 0 if the signature is good and fresh, 1 if not, with the reason. Keep the body as it was received: one changed byte makes it another one.

` + examples(
		`pawl verify --scheme standard-webhooks --secret whsec_… --header 'webhook-id: msg_1' --header 'webhook-timestamp: 1780000000' --header 'webhook-signature: v1,…' --body request.json`,
		`pawl verify --scheme standard-webhooks-v1a --public-key whpk_… --header 'webhook-id: msg_1' --header 'webhook-timestamp: 1780000000' --header 'webhook-signature: v1a,…' --body request.json`,
		`pawl verify --vectors webhook/testdata/vectors.json --provider media-v2`)
}

func (c *verifyCmd) Run(s *session) error {
	if c.Vectors != "" {
		return c.vectors(s)
	}
	if c.Provider != "" {
		return usage("--provider narrows --vectors; a single request is verified by --scheme")
	}
	if c.JWKS != "" {
		return usage("--jwks is for schemes with sets of public keys, and this version has none (%s)", strings.Join(webhook.Names(), ", "))
	}
	scheme, err := c.scheme(len(c.PublicKey) > 0)
	if err != nil {
		return err
	}
	if len(c.PublicKey) > 0 && !scheme.Beside(scheme.ForSecret("whpk_")) {
		return usage("--public-key is for standard-webhooks and standard-webhooks-v1a; give --secret")
	}
	header, err := parseHeaders(c.Header)
	if err != nil {
		return err
	}
	body, err := s.file(c.Body)
	if err != nil {
		return usage("--body: %w", err)
	}
	now := s.Now()
	if c.Now != 0 {
		now = time.Unix(c.Now, 0)
	}
	request := webhook.Request{Header: header, Body: body, URL: c.URL, TaskID: c.TaskID}
	keys, err := c.keys(scheme)
	if err != nil {
		return s.verdict(webhook.Verified{}, err)
	}
	verified, err := scheme.Verify(request, now, keys...)
	return s.verdict(verified, err)
}

// keys are those of the secrets and then the public ones.
func (c *verifyCmd) keys(scheme webhook.Scheme) ([]webhook.Key, error) {
	keys, err := parseKeys(scheme, c.Secret)
	for _, text := range c.PublicKey {
		if err != nil {
			return nil, err
		}
		var key webhook.Key
		if key, err = scheme.ForSecret("whpk_").ParseKey(text); key.CanSign() {
			return nil, usage("--public-key was given a secret key, which should be on no command line; its public half begins with whpk_")
		}
		keys = append(keys, key)
	}
	return keys, err
}

// scheme is the one that was named.
func (c signing) scheme(otherKeys bool) (webhook.Scheme, error) {
	scheme, ok := webhook.Lookup(c.Scheme)
	switch {
	case c.Scheme == "":
		return scheme, usage("--scheme is missing; this version has %s", strings.Join(webhook.Names(), ", "))
	case !ok:
		return scheme, usage("no scheme has the name given to --scheme; this version has %s", strings.Join(webhook.Names(), ", "))
	case len(c.Secret) == 0 && !otherKeys:
		return scheme, usage("--secret is missing")
	}
	return scheme, nil
}

func parseHeaders(given []string) (http.Header, error) {
	h := http.Header{}
	for _, line := range given {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, usage("--header must look like 'Name: value'")
		}
		h.Add(name, strings.Trim(value, " \t"))
	}
	return h, nil
}

// parseKeys reads secrets of which the first must be one of the scheme itself;
// the others may be of the other Standard Webhooks scheme.
func parseKeys(scheme webhook.Scheme, secrets []string) ([]webhook.Key, error) {
	keys := make([]webhook.Key, len(secrets))
	var err error
	for i, secret := range secrets {
		of := scheme
		if i > 0 {
			of = scheme.ForSecret(secret)
		}
		if keys[i], err = of.ParseKey(secret); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// verdict prints what was found out.
func (s *session) verdict(v webhook.Verified, invalid error) error {
	reason, detail := "", ""
	if refused := (*webhook.Error)(nil); errors.As(invalid, &refused) {
		reason, detail = string(refused.Reason), refused.Error()
	} else if invalid != nil {
		return invalid
	}
	text := fmt.Sprintf("invalid: %s\n", plain(detail))
	if invalid == nil {
		at := ""
		if !v.Timestamp.IsZero() { // Some schemes sign none.
			at = v.Timestamp.UTC().Format(time.RFC3339)
		}
		text = "valid" + named("id", v.ID) + named("task", v.TaskID) + named("timestamp", at) + fmt.Sprintf(" secret %d\n", v.Key+1)
	}
	if s.flags.JSON {
		out, err := encode(map[string]any{"valid": invalid == nil, "reason": reason, "detail": detail})
		if err != nil {
			return err
		}
		text = string(out) + "\n"
	}
	if err := s.print(text); err != nil {
		return err
	}
	if invalid != nil {
		return errShown
	}
	return nil
}

func named(name, value string) string {
	if value == "" {
		return ""
	}
	return " " + name + " " + plain(value)
}

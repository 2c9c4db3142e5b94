package cli

import "net/http"

// keyCmd are the commands about API keys.
type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make an API key; its secrets are shown once."`
	List   keyListCmd   `cmd:"" help:"List API keys."`
	Get    keyGetCmd    `cmd:"" help:"Show an API key with its limits and what it has used of them."`
	Update keyUpdateCmd `cmd:"" help:"Change an API key's name, expiry or limits."`
	Rotate keyRotateCmd `cmd:"" help:"Give an API key a new secret, shown once; the former one is valid too for a while."`
	Revoke keyRevokeCmd `cmd:"" help:"End an API key."`

	RotateWebhookSecret keyRotateWebhookCmd `cmd:"" name:"rotate-webhook-secret" help:"Give an API key a new secret for its callbacks, shown once; the former one signs too for a while."`
	Wrapping            keyWrappingCmd      `cmd:"" help:"Draw a new wrapping key for the configuration's secrets and print it."`
	Rewrap              keyRewrapCmd        `cmd:"" help:"Seal the secrets of a ledger with another wrapping key."`
}

const keys = "/v1/keys"

type keyCreateCmd struct {
	keyLimitFlags
	Name    string   `arg:"" help:"What it is for."`
	Tenant  string   `help:"For this tenant." placeholder:"NAME"`
	Scopes  []string `help:"What it may do: submit, read, operate, payloads, admin." default:"submit,read" enum:"submit,read,operate,payloads,admin"`
	Expires string   `help:"When it ends: after a while such as 720h, or at a time (RFC 3339)." placeholder:"TIME"`
}

// Help teaches by example.
func (keyCreateCmd) Help() string {
	return examples(`pawl key create ci --scopes submit,read`, `pawl key create ops --tenant acme --scopes read,operate --json`,
		`pawl key create partner --expires 2160h --budget 50:USD --rate 10 --upstream studio`)
}

func (c *keyCreateCmd) Run(s *session) error {
	body := struct {
		Tenant    string     `json:"tenant,omitempty"`
		Name      string     `json:"name"`
		Scopes    []string   `json:"scopes"`
		ExpiresAt string     `json:"expires_at,omitempty"`
		Limits    *keyLimits `json:"limits,omitempty"`
	}{Tenant: c.Tenant, Name: c.Name, Scopes: c.Scopes}
	var err error
	if body.ExpiresAt, err = parseMoment("--expires", c.Expires, s.Now()); err != nil {
		return err
	}
	if c.given() {
		body.Limits = new(keyLimits)
		if err := c.change(body.Limits); err != nil {
			return err
		}
	}
	return s.send(http.MethodPost, keys, body)
}

type keyListCmd struct{ listing }

func (c *keyListCmd) Run(s *session) error {
	return s.list(keys, c.query(), "id", "tenant", "name", "scopes", "limits", "created_at", "last_used_at", "expires_at", "revoked_at")
}

type keyRevokeCmd struct {
	ID string `arg:"" help:"The key, key_…."`
}

func (c *keyRevokeCmd) Run(s *session) error {
	return s.send(http.MethodDelete, keys+"/"+id(c.ID), nil)
}

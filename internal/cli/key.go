package cli

import "net/http"

// keyCmd are the commands about API keys.
type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make an API key; its secrets are shown once."`
	List   keyListCmd   `cmd:"" help:"List API keys."`
	Revoke keyRevokeCmd `cmd:"" help:"End an API key."`
	Rewrap keyRewrapCmd `cmd:"" help:"Seal the secrets of a ledger with another wrapping key."`
}

const keys = "/v1/keys"

type keyCreateCmd struct {
	Name   string   `arg:"" help:"What it is for."`
	Tenant string   `help:"For this tenant." placeholder:"NAME"`
	Scopes []string `help:"What it may do: submit, read, operate, payloads, admin." default:"submit,read" enum:"submit,read,operate,payloads,admin"`
}

// Help teaches by example.
func (keyCreateCmd) Help() string {
	return examples(`pawl key create ci --scopes submit,read`, `pawl key create ops --tenant acme --scopes read,operate --json`)
}

func (c *keyCreateCmd) Run(s *session) error {
	return s.send(http.MethodPost, keys, struct {
		Tenant string   `json:"tenant,omitempty"`
		Name   string   `json:"name"`
		Scopes []string `json:"scopes"`
	}{c.Tenant, c.Name, c.Scopes})
}

type keyListCmd struct{ listing }

func (c *keyListCmd) Run(s *session) error {
	return s.list(keys, c.query(), "id", "tenant", "name", "scopes", "created_at", "expires_at", "revoked_at")
}

type keyRevokeCmd struct {
	ID string `arg:"" help:"The key, key_…."`
}

func (c *keyRevokeCmd) Run(s *session) error {
	return s.send(http.MethodDelete, keys+"/"+id(c.ID), nil)
}

package api

import (
	"crypto/subtle"
	"errors"
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/vault"
)

// seal makes of a secret what the ledger keeps in the row of that id.
func (c *call) seal(owner pawl.ID, secret string) (ledger.Sealed, error) {
	return c.opts.Vault.Seal(c.ctx, owner, secret)
}

// sealNew is [call.seal], but for a secret that is what the row holds already:
// that stays as it is, so that nothing is seen to change.
func (c *call) sealNew(owner pawl.ID, secret string, held ledger.Sealed) (ledger.Sealed, error) {
	present, err := c.opts.Vault.Open(c.ctx, owner, held)
	if err == nil && subtle.ConstantTimeCompare([]byte(present), []byte(secret)) == 1 {
		return held, nil
	}
	// What cannot be opened is replaced: that is the remedy.
	return c.seal(owner, secret)
}

func (a *api) secretRoutes() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/secrets/rewrap", name: "rewrapSecrets", tag: "secrets", scope: ledger.ScopeAdmin, status: http.StatusOK,
		summary: "Seal some secrets anew with the present wrapping key; call it with next until it is done",
	}, rewrapSecrets)
}

// rewrapRequest asks for one step.
type rewrapRequest struct {
	After string `json:"after,omitempty" doc:"The next of the step before; left out for the first one."`
}

// rewrapJSON is what a step has done.
type rewrapJSON struct {
	WrappingKey string   `json:"wrapping_key" doc:"Names the key that secrets are sealed with now."`
	Seen        int      `json:"seen" doc:"Rows looked at in this step."`
	Resealed    int      `json:"resealed" doc:"Rows sealed anew in this step."`
	Unreadable  []string `json:"unreadable" doc:"Endpoints and API keys of which a secret cannot be opened: rotate it."`
	Next        string   `json:"next,omitempty" doc:"Where to go on; empty to begin again, as something changed meanwhile."`
	Done        bool     `json:"done" doc:"Nothing is left that is sealed with another key."`
	Retired     []string `json:"retired" doc:"Keys that are of no use any more."`
}

func rewrapSecrets(c *call, in rewrapRequest) (rewrapJSON, error) {
	s, err := c.opts.Rewrap.Step(c.ctx, c.by.ID.Text(pawl.PrefixKey), in.After)
	if errors.Is(err, vault.ErrPlace) {
		var f faults
		f.add("/after", err.Error())
		return rewrapJSON{}, f.err()
	}
	return rewrapJSON{
		WrappingKey: c.opts.Vault.Key(), Seen: s.Seen, Resealed: s.Resealed, Unreadable: append([]string{}, s.Unreadable...),
		Next: s.Next, Done: s.Done, Retired: append([]string{}, s.Retired...),
	}, err
}

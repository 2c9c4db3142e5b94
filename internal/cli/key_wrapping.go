package cli

import (
	"strings"

	"github.com/pawlhq/pawl/internal/vault"
)

type keyWrappingCmd struct{}

// Help says where it goes.
func (keyWrappingCmd) Help() string {
	return `The wrapping key seals the secrets in the ledger. Nodes that share a PostgreSQL database must all be given the same one; keep it apart from backups of the database, and for as long as those. 32 random bytes in base64 are printed, nothing is stored: put them into an environment variable or a file, and write secrets: base64key://${PAWL_SECRETS_KEY} or secrets: base64key://${file:PATH} into the configuration.

` + examples(`pawl key wrapping > /etc/pawl/secrets.key`)
}

func (keyWrappingCmd) Run(s *session) error {
	_, key, _ := strings.Cut(vault.URL(vault.NewKey()).Reveal(), "://")
	if !s.flags.JSON {
		return s.print(key + "\n")
	}
	text, err := encode(struct {
		Key string `json:"key"`
	}{key})
	if err != nil {
		return err
	}
	return s.printJSON(text)
}

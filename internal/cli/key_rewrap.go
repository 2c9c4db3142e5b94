package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/sqlite"
	"github.com/pawlhq/pawl/internal/vault"
)

type keyRewrapCmd struct {
	Data   string `help:"Data folder of a stopped server; without it and without --config, the running server is asked." placeholder:"DIR"`
	Config string `help:"Configuration file of a stopped server, for its keys and its data folder." placeholder:"FILE"`
}

// Help teaches the whole procedure.
func (keyRewrapCmd) Help() string {
	return `The ledger keeps secrets (of endpoints, and of API keys for callbacks) sealed with the wrapping key. This command seals them all anew with another one; nobody outside notices, and callback addresses stay as they are. It may be interrupted and run again at any moment.

Where the key is in secret.key of the data folder (no "secrets" in the configuration): stop the server, run "pawl key rewrap --data DIR", start it. A new key is drawn, and the former one is taken out of the file at the end.

Where the configuration gives the key:
 1. Put the new key into "secrets" and the former one into "former_secrets"; "pawl key wrapping" draws one.
 2. Restart the server. It opens secrets with both keys and seals with the new one.
 3. Run "pawl key rewrap", with an API key of scope admin. (With the server stopped: "pawl key rewrap --config FILE" in place of 2 and 3.)
 4. When it says that the former key is retired, remove "former_secrets" and restart.

To move the key from secret.key into the configuration, give the file as the former one: former_secrets: ["base64key://${file:DIR/secret.key}"]. Afterwards make a new backup: older ones open with the former key only.

` + examples(`pawl key rewrap --data /var/lib/pawl`, `pawl key rewrap`, `pawl key rewrap --config pawl.yaml --json`)
}

func (c *keyRewrapCmd) Run(s *session) error {
	if c.Data == "" && c.Config == "" {
		return c.running(s)
	}
	return c.stopped(s)
}

// rewrapAnswer is a step as the API tells it, and the whole as --json does.
type rewrapAnswer struct {
	WrappingKey string   `json:"wrapping_key"`
	Seen        int      `json:"seen"`
	Resealed    int      `json:"resealed"`
	Unreadable  []string `json:"unreadable"`
	Next        string   `json:"next,omitempty"`
	Done        bool     `json:"done"`
	Retired     []string `json:"retired"`
}

// running has the server do it, step by step.
func (c *keyRewrapCmd) running(s *session) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	key := ""
	return s.rewrap(&key, func(ctx context.Context, after string) (vault.Step, error) {
		body, err := encode(struct {
			After string `json:"after,omitempty"`
		}{after})
		if err != nil {
			return vault.Step{}, err
		}
		a, err := client.call(ctx, http.MethodPost, "/v1/secrets/rewrap", nil, body)
		if err != nil {
			return vault.Step{}, err
		}
		var got rewrapAnswer
		if err := decode(a.body, &got); err != nil {
			return vault.Step{}, err
		}
		key = got.WrappingKey
		return vault.Step{
			Seen: got.Seen, Resealed: got.Resealed, Unreadable: got.Unreadable, Next: got.Next, Done: got.Done, Retired: got.Retired,
		}, nil
	})
}

// stopped does it in the ledger itself.
func (c *keyRewrapCmd) stopped(s *session) (err error) {
	cfg, err := config.Load(c.Config, s.LookupEnv)
	if err != nil {
		return err
	}
	if c.Data != "" {
		cfg.Data = c.Data
	}
	// Opening would make a new ledger.
	if _, err := os.Stat(filepath.Join(cfg.Data, "pawl.db")); !cfg.Shared() && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no ledger in %s: name the data folder with --data", cfg.Data)
	}
	driver, err := server.OpenLedger(s.ctx, cfg, nil)
	if locked := (*sqlite.LockedError)(nil); errors.As(err, &locked) {
		return fmt.Errorf("%w; or leave --data and --config out to ask the running one", err)
	}
	if err != nil {
		return err
	}
	committer := store.NewCommitter(driver, store.Options{})
	defer func() { err = errors.Join(err, committer.Close(), driver.Close()) }()
	keys := server.WrappingKeys(cfg)
	keys.Renew = true
	unlocked, err := vault.Unlock(s.ctx, committer, driver, keys)
	if err != nil {
		return server.SettingProblem(cfg, err)
	}
	key := unlocked.Vault.Key()
	return s.rewrap(&key, func(ctx context.Context, after string) (vault.Step, error) {
		return unlocked.Rewrapper.Step(ctx, "", after)
	})
}

// rewrap follows the steps, shows how far they are, and prints what they came
// to. The name of the key is known after the first step at the latest.
func (s *session) rewrap(key *string, step func(context.Context, string) (vault.Step, error)) error {
	shown := false
	clear := func() {
		if shown {
			fmt.Fprint(s.Stderr, "\r\x1b[K")
			shown = false
		}
	}
	total, err := vault.Total(s.ctx, step, func(t vault.Step) {
		if s.watched() {
			fmt.Fprintf(s.Stderr, "\r\x1b[K%d rows looked at, %d sealed anew", t.Seen, t.Resealed)
			shown = true
		}
	})
	clear()
	if err != nil {
		return fmt.Errorf("%w; %d rows were sealed anew until then: run the same command again, it goes on from there", err, total.Resealed)
	}
	if err := s.printRewrap(*key, total); err != nil {
		return err
	}
	if len(total.Unreadable) > 0 {
		s.say("a secret of each of these cannot be opened under any key; rotate it: %s", plain(strings.Join(total.Unreadable, ", ")))
		return errShown
	}
	return nil
}

func (s *session) printRewrap(key string, t vault.Step) error {
	if s.flags.JSON {
		text, err := encode(rewrapAnswer{
			WrappingKey: key, Seen: t.Seen, Resealed: t.Resealed, Unreadable: append([]string{}, t.Unreadable...),
			Done: t.Done, Retired: append([]string{}, t.Retired...),
		})
		if err != nil {
			return err
		}
		return s.printJSON(text)
	}
	text := fmt.Sprintf("%d rows looked at, %d sealed anew; everything is sealed with the wrapping key %s\n", t.Seen, t.Resealed, plain(key))
	switch {
	case len(t.Retired) > 0:
		text += fmt.Sprintf("retired, of no use any more: %s\n", plain(strings.Join(t.Retired, ", ")))
	case t.Resealed == 0:
		text += "nothing was to be done; \"pawl key rewrap --help\" says how the key is changed\n"
	}
	return s.print(text)
}

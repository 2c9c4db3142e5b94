package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listening is what a listener keeps for its next run, in private files of the
// server's, the API key's and the endpoint's own.
type listening struct {
	Endpoint string `json:"endpoint"`
	Secret   string `json:"secret"`
	// From is where it began; the place it has come to is in a file beside, which is
	// written for every event.
	From int64 `json:"from"`

	path string
}

// listening reads what was kept.
func (s *session) listening(c *client, cmd *listenCmd) (listening, error) {
	m, err := s.memory()
	if err != nil {
		return listening{}, err
	}
	name, err := fingerprint(c, []any{"listen", cmd.Endpoint, cmd.Types})
	if err != nil {
		return listening{}, err
	}
	k := listening{path: filepath.Join(filepath.Dir(m.dir), "listen", name+".json")}
	text, err := os.ReadFile(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil && json.Unmarshal(text, &k) != nil {
		err = errors.New("it is damaged: remove it to begin anew")
	}
	if err != nil {
		return k, fmt.Errorf("what the last run kept in %s cannot be read: %w", k.path, err)
	}
	return k, nil
}

func (k listening) save() error {
	if err := writeState(k.path, k, true); err != nil {
		return fmt.Errorf("the place to go on from cannot be kept (set PAWL_STATE_DIR to a folder that can be written): %w", err)
	}
	return nil
}

func (k listening) cursor() string { return strings.TrimSuffix(k.path, ".json") + ".cursor" }

// place is the sequence of the last event that was done with. A power cut may take
// it back: events are posted twice then, never left out.
func (k listening) place() int64 {
	text, err := os.ReadFile(k.cursor())
	if err != nil {
		return k.From
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return k.From
	}
	return n
}

// reach keeps the place: whole or not at all, but for a power cut.
func (k listening) reach(sequence int64) error {
	tmp := k.cursor() + ".new"
	err := os.WriteFile(tmp, []byte(strconv.FormatInt(sequence, 10)+"\n"), 0o600)
	if err == nil {
		err = os.Rename(tmp, k.cursor())
	}
	if err != nil {
		return fmt.Errorf("the place to go on from cannot be kept: %w", err)
	}
	return nil
}

func (k listening) forget() { _ = os.Remove(k.cursor()) } // Where it stays, the next event replaces it.

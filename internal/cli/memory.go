package cli

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// memory keeps the idempotency keys of commands whose answer was not printed
// yet, one small private file each, so that the same command after a timeout
// or an interruption is the same job (7-rules R48, O-010). The file's name is
// a digest of server, API key and arguments; neither can be read from it.
type memory struct {
	dir string
	now func() time.Time
}

// recall is what is remembered of a command.
type recall struct {
	Key     string    `json:"key"`
	Started time.Time `json:"started"`
	// Again says that an earlier run was never answered.
	Again bool `json:"-"`

	path string
}

// keyLife is how long servers remember a key unless they are told otherwise
// (1-product A2).
const keyLife = 24 * time.Hour

// memory is in PAWL_STATE_DIR, else in the user's cache folder.
func (s *session) memory() (memory, error) {
	dir := s.getenv("PAWL_STATE_DIR")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return memory{}, fmt.Errorf("no folder to remember the idempotency key in: set PAWL_STATE_DIR, or give --idempotency-key: %w", err)
		}
		dir = filepath.Join(cache, "pawl")
	}
	return memory{dir: filepath.Join(dir, "unanswered"), now: s.Now}, nil
}

// recall gives the key of an unanswered earlier run of the command, or makes
// one and writes it down before anything is sent. anew forgets the former.
func (m memory) recall(c *client, arguments any, anew bool) (recall, error) {
	name, err := fingerprint(c, arguments)
	if err != nil {
		return recall{}, err
	}
	path := filepath.Join(m.dir, name)
	for {
		if !anew {
			r, err := m.read(path)
			if !errors.Is(err, fs.ErrNotExist) {
				return r, err
			}
		}
		r := recall{Key: newKey(), Started: m.now().UTC(), path: path}
		err := writeState(path, r, anew)
		if err == nil {
			return r, nil
		}
		if anew || !errors.Is(err, fs.ErrExist) { // Else the same command runs beside us: its key is ours.
			return recall{}, unusable(err)
		}
	}
}

func unusable(err error) error {
	return fmt.Errorf("the idempotency key cannot be remembered (set PAWL_STATE_DIR to a folder that can be written, or give --idempotency-key): %w", err)
}

func (m memory) read(path string) (recall, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return recall{}, unusable(err)
	}
	r := recall{path: path, Again: true}
	if err := json.Unmarshal(text, &r); err != nil || r.Key == "" {
		return recall{}, fmt.Errorf("the remembered idempotency key in %s is damaged: an earlier run of this command was not answered; see \"pawl op list\", then repeat it with --new", path)
	}
	if age := m.now().Sub(r.Started); age > keyLife {
		return recall{}, fmt.Errorf("an earlier run of this command was not answered, %s ago, and the server may have forgotten its key: see \"pawl op list\", then repeat it with --new", age.Round(time.Minute))
	}
	return r, nil
}

// forget is called once the answer was printed. A newer key in the same place,
// by --new, is left alone.
func (r recall) forget() error {
	var kept recall
	text, err := os.ReadFile(r.path)
	if err != nil || json.Unmarshal(text, &kept) == nil && kept.Key != r.Key {
		return nil
	}
	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the answered command cannot be forgotten; use --new next time: %w", err)
	}
	return nil
}

// fingerprint is what makes two command lines the same.
func fingerprint(c *client, arguments any) (string, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, part := range [...][]byte{[]byte(c.server), []byte(c.key), text} {
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func newKey() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // Never fails (crypto/rand).
	return "cli-" + hex.EncodeToString(raw[:])
}

// writeState writes a private file that is there after a crash, whole or not
// at all. Unless it may replace another one, that one is fs.ErrExist.
func writeState(path string, v any, replace bool) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".new-*") // Made with mode 0600.
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if !replace {
		// Some file systems have no links; there, the last of two equal commands
		// that start in the same moment is remembered.
		if err := os.Link(tmp.Name(), path); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.Rename(tmp.Name(), path)
}

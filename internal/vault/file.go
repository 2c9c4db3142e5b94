package vault

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxKeyFile is how many keys a key file holds at most: more are no change of
// the key under way, but a mistake.
const maxKeyFile = 16

// readKeyFile reads the keys of a file: base64, one a line, the current one
// first. Those behind it are there while secrets are being re-sealed.
func readKeyFile(path string) ([][keySize]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var keys [][keySize]byte
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, ok := decodeKey(line)
		if !ok || len(keys) == maxKeyFile {
			return nil, damagedFile(path)
		}
		keys = append(keys, [keySize]byte(key))
	}
	if len(keys) == 0 {
		return nil, damagedFile(path)
	}
	return keys, nil
}

func damagedFile(path string) error {
	return fmt.Errorf("the wrapping key in %s is damaged: put back the file that belongs to this ledger", path)
}

func writeKeyFile(path string, keys ...[keySize]byte) error {
	var text strings.Builder
	for _, key := range keys {
		text.WriteString(base64.StdEncoding.EncodeToString(key[:]) + "\n")
	}
	if err := WriteFile(path, text.String()); err != nil {
		return fmt.Errorf("the wrapping key could not be written: %w", err)
	}
	return nil
}

// WriteFile writes a file that only its owner can read, whole or not at all.
// Once it returns, the file is there after a crash too.
func WriteFile(path, text string) error {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(text)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

package vault

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// FuzzDecodeKey: a key is 32 bytes, and one of the four usual spellings of it is
// what was given, but for padding.
func FuzzDecodeKey(f *testing.F) {
	key := NewKey()
	for _, seed := range []string{
		base64.StdEncoding.EncodeToString(key[:]), base64.RawURLEncoding.EncodeToString(key[:]), strings.Repeat("A", 43), strings.Repeat("A", 43) + "=",
		strings.Repeat("A", 42) + "B=", strings.Repeat("A", 40) + "\nAAA=", strings.Repeat("A", 44), "", "=", strings.Repeat("-_+/", 10) + "AAA=",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, ok := decodeKey(text)
		if !ok {
			return
		}
		plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
		if len(key) != keySize || base64.RawStdEncoding.EncodeToString(key) != plain {
			t.Fatalf("a text of %d characters gives %d bytes, another key", len(text), len(key))
		}
	})
}

// FuzzKeyFile: the keys of a file are its lines, at most 16, or the file is
// refused without repeating any of it.
func FuzzKeyFile(f *testing.F) {
	key := NewKey()
	line := base64.StdEncoding.EncodeToString(key[:])
	for _, seed := range []string{line, line + "\n\n" + line + "\r\n", "", "\n", line + "x", strings.Repeat(line+"\n", 17), "S3KRIT" + line} {
		f.Add([]byte(seed))
	}
	path := filepath.Join(f.TempDir(), "keys")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := readKeyFile(path)
		if err != nil {
			if len(text) > 12 && strings.Contains(err.Error(), strings.TrimSpace(string(text))) && strings.TrimSpace(string(text)) != "" {
				t.Fatalf("the error repeats the file: %v", err)
			}
			return
		}
		if len(keys) == 0 || len(keys) > maxKeyFile {
			t.Fatalf("%d keys", len(keys))
		}
		if err := writeKeyFile(path, keys...); err != nil {
			t.Fatal(err)
		}
		again, err := readKeyFile(path)
		if err != nil || len(again) != len(keys) {
			t.Fatalf("%d keys are read as %d, %v", len(keys), len(again), err)
		}
		for i := range keys {
			if !bytes.Equal(keys[i][:], again[i][:]) {
				t.Fatalf("key %d is another one", i)
			}
		}
	})
}

// FuzzOpen: nothing opens but what was sealed, for the row that it was sealed
// for.
func FuzzOpen(f *testing.F) {
	v, err := New(f.Context(), URL([keySize]byte{1}))
	if err != nil {
		f.Fatal(err)
	}
	owner := pawl.ID{1}
	sealed, err := v.Seal(f.Context(), owner, "secret")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(sealed), owner[:])
	f.Add(string(sealed), make([]byte, 16))
	f.Add(string(sealed)+"A", owner[:])
	f.Add("sealed:1:"+v.Key()+":", owner[:])
	f.Add("secret", owner[:])
	f.Fuzz(func(t *testing.T, text string, id []byte) {
		var of pawl.ID
		copy(of[:], id)
		got, err := v.Open(t.Context(), of, ledger.Sealed(text))
		// Each process of a fuzz run has sealed the secret for itself.
		mine := text == string(sealed) && of == owner
		if mine && err != nil || err == nil && text != "" && (got != "secret" || of != owner) || err != nil && got != "" {
			t.Fatalf("%q of %v opens: %v", text, of, err)
		}
		box, err := v.Seal(t.Context(), of, text)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := v.Open(t.Context(), of, box); err != nil || back != text {
			t.Fatalf("%q came back as %q, %v", text, back, err)
		}
	})
}

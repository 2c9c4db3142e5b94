package canary_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An exercise is made to be handed on: its receipts and its output hold nothing
// of the process's environment, no address of the machine's folders, no secret
// of the run and no header that could carry one.
func TestExercise(t *testing.T) {
	w := newWatch(t)
	cmd := child(t, []string{"PAWL_ADMIN_KEY=" + theAdminKey, "PAWL_KEY=" + theAdminKey, "PROVIDER_KEY=" + theProviderKey, "TMPDIR=" + t.TempDir()}, "exercise", "--out", "receipts")
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	w.look(stderr, string(text))
	files := 0
	err = filepath.WalkDir(filepath.Join(cmd.Dir, "receipts"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files++
		w.look(receipts, string(text))
		for _, header := range []string{"webhook-signature", "authorization", "x-webhook-signature"} {
			onWire := filepath.Base(filepath.Dir(path)) == "wire"
			if onWire && strings.Contains(strings.ToLower(string(text)), `"`+header+`"`) {
				t.Errorf("%s holds the header %s", filepath.Base(path), header)
			}
		}
		return err
	})
	if err != nil || files < 6 {
		t.Fatalf("%d files, %v", files, err)
	}
	w.add(configured, cmd.Dir, filepath.Dir(cmd.Dir))
	w.runSecrets(filepath.Join(cmd.Dir, "receipts", "ledger.json"))
	w.judge(nil)
}

// runSecrets makes the secrets of the run again, from the number that the
// receipts name for that purpose.
func (w *watch) runSecrets(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		w.Fatal(err)
	}
	var ledger struct{ Run string }
	if err := json.Unmarshal(text, &ledger); err != nil {
		w.Fatal(err)
	}
	run, err := hex.DecodeString(ledger.Run)
	if err != nil || len(run) == 0 {
		w.Fatalf("no run in %s: %v", filepath.Base(file), err)
	}
	for _, purpose := range []string{"source", "endpoint", "provider", "tokens"} {
		mac := hmac.New(sha256.New, run)
		mac.Write([]byte("pawl exercise\x00" + purpose))
		sum := mac.Sum(nil)
		w.add(configured, base64.StdEncoding.EncodeToString(sum), hex.EncodeToString(sum), string(sum))
	}
}

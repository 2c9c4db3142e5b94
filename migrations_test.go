package pawl_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// releasedMigrations is the digest of the migrations of the first release, as this
// test prints it; empty until there is a release. What was released never changes:
// a ledger that has applied it would never see the change. A later release adds a
// migration and gets a line of its own here.
const releasedMigrations = ""

// released is how many migrations of each driver the digest covers.
const released = 2

// TestReleasedMigrations: the drivers have the same steps, numbered without gaps,
// and those that were released are what they were.
func TestReleasedMigrations(t *testing.T) {
	var names [2][]string
	sum := sha256.New()
	for i, driver := range [...]string{"sqlite", "postgres"} {
		files, err := filepath.Glob(filepath.Join("internal/store", driver, "migrations/*.sql"))
		if err != nil || len(files) < released {
			t.Fatalf("%s: %d migrations, %v", driver, len(files), err)
		}
		for n, file := range files {
			name := filepath.Base(file)
			names[i] = append(names[i], name)
			if want := []byte{'0', '0', byte('0' + (n+1)/10), byte('0' + (n+1)%10), '_'}; name[:5] != string(want) {
				t.Errorf("%s is not number %d", name, n+1)
			}
			if n < released {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				sum.Write(text)
			}
		}
	}
	if !slices.Equal(names[0], names[1]) {
		t.Errorf("the drivers have different steps: %v and %v", names[0], names[1])
	}
	got := hex.EncodeToString(sum.Sum(nil))
	if releasedMigrations != "" && got != releasedMigrations {
		t.Errorf("a released migration was changed: undo that, and add a new one; the digest is %s", got)
	}
	t.Logf("the digest of the first %d migrations is %s", released, got)
}

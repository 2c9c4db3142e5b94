package config_test

import (
	"os"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]config.Size{
		"0B": 0, "1B": 1, "1KiB": 1024, "512MiB": 536_870_912, "2GiB": 2_147_483_648, "1000B": 1000,
		"8589934591GiB": 9_223_372_035_781_033_984,
	} {
		c, err := config.Parse("pawl.yaml", []byte("disk: {min_free: "+text+"}"), os.LookupEnv)
		if err != nil || c.Disk.MinFree != want || c.Disk.MinFree.String() != text {
			t.Errorf("%s: %d %s, want %d (%v)", text, c.Disk.MinFree, c.Disk.MinFree, want, err)
		}
	}
}

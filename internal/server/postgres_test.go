package server

import (
	"os"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// wrapping is 32 bytes in base64.
const wrapping = "base64key://MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// onPostgres puts the world's ledger into a database of its own.
func onPostgres(t *testing.T) settings {
	t.Helper()
	return on(t, pgtest.Database(t))
}

func on(t *testing.T, url string) settings {
	t.Helper()
	return func(c *config.Config, _ *config.Upstream) {
		c.Database, c.Secrets = secretOf(t, url), secretOf(t, wrapping)
	}
}

package postgres

import (
	"os"
	"testing"

	"github.com/pawlhq/pawl/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

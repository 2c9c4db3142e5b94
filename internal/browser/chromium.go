package browser

import (
	"context"

	"github.com/pawlhq/pawl/internal/apt"
)

// chromium finds the browser, by what it is called where it is installed.
func chromium(ctx context.Context) (string, error) {
	return apt.Program(ctx, "chromium", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
}

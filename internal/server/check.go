package server

import "github.com/pawlhq/pawl/internal/config"

// Check finds in a configuration what [Start] would refuse without touching
// anything: presets, schemes and secrets that do not fit. The error is a
// config.Problems.
func Check(cfg config.Config) error {
	_, _, err := prepared(cfg)
	return err
}

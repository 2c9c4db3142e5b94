package cli

import (
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/upstream"
)

// configCmd are the commands about configuration files.
type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Read a configuration file as serve would, and stop."`
}

type configCheckCmd struct {
	File string `arg:"" help:"The configuration file."`
}

// Help teaches by example.
func (configCheckCmd) Help() string { return examples(`pawl config check pawl.yaml`) }

func (c *configCheckCmd) Run(s *session) error {
	cfg, err := config.Load(c.File, s.LookupEnv)
	if err != nil {
		return err
	}
	if _, err := upstream.Build(cfg); err != nil {
		return err
	}
	s.say("%s is good", plain(c.File))
	return nil
}

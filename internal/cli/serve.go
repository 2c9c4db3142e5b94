package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/systemd"
	"github.com/pawlhq/pawl/internal/telemetry"
)

type serveCmd struct {
	Config      string `help:"Configuration file; without one, the defaults." placeholder:"FILE"`
	Data        string `help:"Folder of the ledger and the keys; ${data} unless the configuration says otherwise." placeholder:"DIR"`
	Database    string `help:"Where the ledger is: a postgres:// URL, or sqlite for the data folder, which is meant without it." placeholder:"URL"`
	Listen      string `help:"Address of the API and the inbound hooks; port 0 takes a free one." placeholder:"ADDR"`
	AdminListen string `help:"Address of metrics and health." placeholder:"ADDR"`
	LogLevel    string `help:"Least level of the log on standard error: debug, info, warn, error." enum:"debug,info,warn,error" default:"info"`
}

// Help teaches by example.
func (serveCmd) Help() string {
	return `When the node is ready, one JSON line is printed: {"ready":true,"api":"http://…","admin":"http://…"}. Logs go to standard error. The very first start writes an admin key to admin.key in the data folder; PAWL_ADMIN_KEY (pawl_sk_ and at least 32 more visible characters), if set, wins at every start. Flags win over the configuration. SIGINT or SIGTERM stops it after what is under way; a second one stops it at once.

SIGHUP reads the configuration anew, secrets from files included, and puts it in force without a pause; a file with a fault changes nothing and is told in the log. The environment of a running process does not change: secrets that are rotated belong into files (${file:PATH}).

` + examples(`pawl serve`, `pawl serve --config pawl.yaml --log-level warn`, `pawl serve --data /tmp/try --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0`)
}

func (c *serveCmd) Run(s *session) error {
	// From the first moment: a SIGHUP would end the process.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	cfg, err := c.config(s)
	if err != nil {
		return err
	}
	if s.getenv("GOGC") == "" {
		// Live memory is small, so collecting seldom costs little of it.
		debug.SetGCPercent(400)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return usage("--log-level: %w", err)
	}
	log := telemetry.NewLogger(s.Stderr, level)
	traces, flush := telemetry.StartTraces(s.ctx, version().Version, s.getenv, log)
	defer flush()
	node, err := server.Start(s.ctx, cfg, server.Options{
		Version: version().Version, Log: log, Traces: traces, Systemd: systemd.FromEnvironment(log),
		AdminKey: s.getenv("PAWL_ADMIN_KEY"),
		Notice:   func(text string) { s.say("%s", text) },
	})
	if err != nil {
		return sentence(err)
	}
	// The listeners take connections from here on, so this is the truth.
	if err := s.ready(node.APIURL(), node.AdminURL()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	go c.reloads(ctx, s, node, hangups)
	return sentence(node.Run(ctx))
}

// reloads reads the configuration anew at each SIGHUP until the context ends;
// several that come meanwhile count as one.
func (c *serveCmd) reloads(ctx context.Context, s *session, node *server.Node, hangups <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			_ = node.Reload(ctx, func() (config.Config, error) { return c.config(s) }) // The log tells.
		}
	}
}

func (s *session) ready(api, admin string) error {
	text, err := encode(struct {
		Ready bool   `json:"ready"`
		API   string `json:"api"`
		Admin string `json:"admin"`
	}{true, api, admin})
	if err != nil {
		return err
	}
	_, err = io.WriteString(s.Stdout, string(text)+"\n")
	return err
}

// config is the file's, with the flags over it, checked again as a whole.
func (c *serveCmd) config(s *session) (config.Config, error) {
	cfg, err := config.Load(c.Config, s.LookupEnv)
	if problems := config.Problems(nil); errors.As(err, &problems) {
		// What can be judged beside the faults is told with them.
		var more config.Problems
		_ = errors.As(server.Check(cfg), &more)
		return cfg, problems.With(more)
	} else if err != nil {
		return cfg, err
	}
	if c.Database != "" {
		if cfg.Database, err = config.NewSecret(c.Database); err != nil {
			return cfg, usage("--database: %w", err)
		}
	}
	for _, over := range [...]struct {
		flag string
		into *string
	}{{c.Data, &cfg.Data}, {c.Listen, &cfg.Listen}, {c.AdminListen, &cfg.AdminListen}} {
		if over.flag != "" {
			*over.into = over.flag
		}
	}
	return cfg, cfg.Validate()
}

// sentence puts an error of several parts on one line; problems of the
// configuration keep one each.
func sentence(err error) error {
	if err == nil || errors.As(err, new(config.Problems)) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped before it was ready")
	}
	return fmt.Errorf("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
}

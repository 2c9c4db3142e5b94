package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/demo"
	"github.com/pawlhq/pawl/internal/sim"
)

type simCmd struct {
	Listen     string  `default:"127.0.0.1:8090" help:"Address of the provider; port 0 takes a free one." placeholder:"ADDR"`
	Operations int     `default:"1000" help:"How many jobs the plan has a script for; further ones go well."`
	Seed       uint64  `default:"1" help:"Draws the faults: the same seed plans the same ones."`
	Speed      float64 `default:"1" help:"How much quicker than in real time the scripts are played."`
	Calm       bool    `help:"Without any fault."`
	Unsigned   bool    `help:"Callbacks of the dialect sim are not signed, so that a node takes them as hints."`
	Config     string  `help:"Write the upstreams, as a node's configuration, to this file." placeholder:"FILE"`
}

// Help teaches by example.
func (simCmd) Help() string {
	return `A provider in three dialects (sim, media-v2, body-timestamp) that loses answers, repeats, reorders, delays, corrupts and forgets callbacks, by a plan that the seed draws. Which script a job meets is chosen by the number in its input, {"n": 17}. GET /books shows what the provider knows. When it is ready, one JSON line is printed.

` + examples(`pawl sim --config sim.yaml`, `pawl serve --config sim.yaml`, `pawl op submit --upstream sim --model any --input '{"n":17}' --wait`)
}

func (c *simCmd) Run(s *session) error {
	if c.Operations < 0 || c.Speed <= 0 {
		return usage("--operations must not be negative and --speed must be above 0")
	}
	options := sim.Options{}
	if c.Calm {
		options.Without = sim.Faults()
	}
	provider, err := sim.NewServer(sim.NewPlan(c.Seed, c.Operations, options), sim.Config{Speed: c.Speed, AnyDialect: true, Unsigned: c.Unsigned})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return errors.Join(errors.New("the provider cannot listen; choose another address with --listen"), err, provider.Close())
	}
	url := "http://" + l.Addr().String()
	if c.Config != "" {
		if err := writeSimConfig(c.Config, demo.Upstreams(url, provider)); err != nil {
			return errors.Join(err, l.Close(), provider.Close())
		}
	}
	server := &http.Server{Handler: provider, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-s.ctx.Done()
		limit, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), time.Second)
		defer cancel()
		if server.Shutdown(limit) != nil {
			_ = server.Close()
		}
	}()
	line, err := encode(struct {
		Ready bool   `json:"ready"`
		URL   string `json:"url"`
	}{true, url})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s.Stdout, string(line)+"\n"); err != nil {
		return err
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, provider.Close())
	}
	return provider.Close()
}

// simMark begins the files that may be written anew: no other is overwritten.
const simMark = "# Written by pawl sim, which may write it anew.\n"

func writeSimConfig(path, text string) error {
	switch old, err := os.ReadFile(path); {
	case err == nil && !strings.HasPrefix(string(old), simMark):
		return fmt.Errorf("%s exists and was not written by pawl sim; name another file with --config", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return os.WriteFile(path, []byte(simMark+strings.TrimRight(text, "\n")+"\n"), 0o600)
}

package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/pawlhq/pawl/internal/exercise"
)

// exerciseCmd are the offline exercise and the check of its receipts.
type exerciseCmd struct {
	Run     exerciseRunCmd     `cmd:"" default:"withargs" help:"Run the exercise; \"run\" may be left out."`
	Verify  exerciseVerifyCmd  `cmd:"" help:"Check a folder of receipts without trusting it."`
	Capture exerciseCaptureCmd `cmd:"" help:"Make a fixture of an operation that happened."`
}

// Help teaches by example.
func (exerciseCmd) Help() string {
	return `The real receiver, store and rules on a temporary ledger, a played provider, and a process that is killed at the worst moments: nothing but 127.0.0.1 is dialled and no key is needed. --out names a folder that must not exist; it gets the receipts of every check. "pawl exercise run --help" lists the flags.

` + examples(`pawl exercise --out receipts`, `pawl exercise --out receipts --fixture mine.json`, `pawl exercise verify receipts`)
}

type exerciseRunCmd struct {
	Out     string `required:"" help:"Folder for the receipts; it must not exist." placeholder:"DIR"`
	Fixture string `help:"Play these events instead of the built-in ones." placeholder:"FILE"`
}

func (c *exerciseRunCmd) Run(s *session) error {
	err := exercise.Run(s.ctx, exercise.Options{
		Out: c.Out, Fixture: c.Fixture, Log: s.lines(), Tool: "pawl " + version().Version,
	})
	if errors.Is(err, exercise.ErrExists) || errors.Is(err, exercise.ErrFixture) {
		return usage("%w", err) // Nothing was touched.
	}
	if text, readErr := os.ReadFile(filepath.Join(c.Out, "execution-receipt.json")); readErr == nil && s.flags.JSON {
		return errors.Join(err, s.printJSON(text))
	}
	return err
}

// lines takes what a command says while it works: with --json, standard output
// is for the one document at its end.
func (s *session) lines() io.Writer {
	if s.flags.JSON {
		return s.Stderr
	}
	return s.Stdout
}

type exerciseVerifyCmd struct {
	Dir string `arg:"" help:"The folder of receipts."`
}

func (c *exerciseVerifyCmd) Run(s *session) error {
	err := exercise.Verify(s.ctx, c.Dir, s.lines())
	if !s.flags.JSON {
		return err
	}
	text, encodeErr := encode(struct {
		OK bool `json:"ok"`
	}{err == nil})
	return errors.Join(err, encodeErr, s.printJSON(text))
}

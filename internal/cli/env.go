package cli

import (
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/pawlhq/pawl/internal/telemetry"
)

// Env is the outside world of a command. Tests hand in their own.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// LookupEnv answers for environment variables.
	LookupEnv func(string) (string, bool)
	// Now is the clock that deadlines and signatures are judged by.
	Now func() time.Time
	// Signals asks to stop: the first one politely, the second one at once. Nil
	// never asks.
	Signals <-chan os.Signal
}

// System is the process's own environment. It takes over SIGINT and SIGTERM,
// and the standard logger, to which libraries may write what nobody must see.
func System() Env {
	log.SetFlags(0)
	log.SetOutput(telemetry.LibraryLog(telemetry.NewLogger(os.Stderr, slog.LevelWarn)))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		LookupEnv: os.LookupEnv, Now: time.Now, Signals: signals,
	}
}

// getenv is the variable's value, "" where it is not set.
func (e Env) getenv(name string) string {
	v, _ := e.LookupEnv(name)
	return v
}

// watched reports whether a person looks at standard error right now.
func (e Env) watched() bool {
	f, ok := e.Stderr.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

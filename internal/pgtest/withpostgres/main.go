// Command withpostgres runs a command with a PostgreSQL for its tests, whose
// URL is in PAWL_TEST_POSTGRES, and ends with the command's own exit code. A
// server that the environment names already is used as it is.
//
//	go run ./internal/pgtest/withpostgres go test ./...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/pawlhq/pawl/internal/pgtest"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withpostgres COMMAND [ARGUMENT…]")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	env := os.Environ()
	if os.Getenv(pgtest.Variable) == "" {
		s, err := pgtest.Start(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, "withpostgres:", err)
			return 1
		}
		defer func() {
			if err := s.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, "withpostgres:", err)
			}
		}()
		env = append(env, pgtest.Variable+"="+s.URL())
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	// An interrupt of the terminal reaches the command by itself; what it
	// needs to end in order is time.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "withpostgres:", err)
	return 1
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/pawlhq/pawl/internal/exercise"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/webhook"
)

// The exit statuses (2-contracts §6).
const (
	// ExitDone: what was asked for is done.
	ExitDone = 0
	// ExitFailed: it was refused, or it failed.
	ExitFailed = 1
	// ExitUsage: the command line makes no sense; nothing was touched.
	ExitUsage = 2
	// ExitUnreachable: the server did not answer.
	ExitUnreachable = 3
)

// Main runs one command and returns its exit status. Arguments do not include
// the program's name. The first signal of env ends the command's context; the
// second one makes Main return [ExitFailed] at once, whatever is under way. In a
// process that an exercise has started to be killed, Main is that child and
// looks at nothing else.
func Main(ctx context.Context, args []string, env Env) int {
	if exercise.IsChild() {
		return exercise.Child(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, env) }()
	for asked := false; ; asked = true {
		select {
		case status := <-done:
			return status
		case <-env.Signals:
			if asked {
				return ExitFailed
			}
			cancel()
		}
	}
}

// session is what a command works with.
type session struct {
	Env
	ctx   context.Context
	flags connection
	// csv says that a list is wanted as CSV.
	csv bool
}

func run(ctx context.Context, args []string, env Env) int {
	var cmds commands
	answered := -1
	parser, err := newParser(&cmds, env, kong.Exit(func(status int) { answered = status }))
	if err != nil {
		return env.report(err)
	}
	bare := len(args) == 0
	if bare { // Nothing was asked for: the help, as a usage error.
		parser.Stdout = env.Stderr
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	switch {
	case bare:
		return ExitUsage
	case answered >= 0: // --help was answered, whatever else was wrong.
		return answered
	case err != nil:
		// It quotes the arguments: a key in the wrong place must not reach the logs
		// of whatever ran the command.
		said := telemetry.Redact(flagValue.ReplaceAllString(err.Error(), "$1"))
		node := meant(err, parser)
		switch names := strings.Join(subcommands(node), ", "); {
		case names == "":
		case strings.HasPrefix(said, "unexpected argument "):
			said += ": " + node.FullPath() + " has " + names
		case strings.HasPrefix(said, "expected one of "):
			said = "expected one of " + names // All, and not the first five.
		}
		return env.report(usage("%s\nRun %q for help.", said, node.FullPath()+" --help"))
	}
	s := &session{Env: env, ctx: ctx, flags: cmds.connection}
	for _, f := range parsed.Flags() {
		s.csv = s.csv || f.Name == "csv" && f.Target.Bool()
	}
	if s.csv && s.flags.JSON {
		return env.report(usage("--csv and --json exclude each other"))
	}
	return env.report(parsed.Run(s))
}

// newParser makes the command line's grammar.
func newParser(cmds *commands, env Env, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(cmds, append(options,
		kong.Name("pawl"),
		kong.Description(description),
		kong.Vars{"server": defaultServer, "keyfile": defaultKeyFile, "data": defaultData, "schemes": strings.Join(webhook.Names(), ", ")},
		kong.Groups{"run": "Run Pawl:", "api": "Talk to a server:", "local": "Without a server:", "flags": "Connection:"},
		kong.Writers(env.Stdout, env.Stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	)...)
}

// flagValue finds flags with a value or its placeholder, of which a usage error
// needs the names only.
var flagValue = regexp.MustCompile(`(--[a-z][a-z-]*)=[^\s,]+`)

// meant is the command that an error is about.
func meant(err error, parser *kong.Kong) *kong.Node {
	if bad := (*kong.ParseError)(nil); errors.As(err, &bad) && bad.Context != nil {
		if node := bad.Context.Selected(); node != nil {
			return node
		}
	}
	return parser.Model.Node
}

// subcommands are the names of a command's own commands, as its help has them;
// the program's own are too many for a line.
func subcommands(node *kong.Node) (names []string) {
	if node.Parent == nil {
		return nil
	}
	for _, child := range node.Children {
		if !child.Hidden {
			names = append(names, child.Name)
		}
	}
	return names
}

// report prints an error and gives the exit status that it means.
func (e Env) report(err error) int {
	if err == nil {
		return ExitDone
	}
	if !errors.Is(err, errShown) {
		fmt.Fprintf(e.Stderr, "pawl: %s\n", lines(err.Error()))
	}
	switch {
	case errors.As(err, new(*usageError)):
		return ExitUsage
	case errors.As(err, new(*unreachableError)):
		return ExitUnreachable
	}
	return ExitFailed
}

// say tells a person something on standard error.
func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.Stderr, "pawl: "+format+"\n", args...)
}

// errShown ends a command whose answer was itself the bad news.
var errShown = errors.New("already shown")

// usageError is a command line that makes no sense.
type usageError struct{ err error }

func usage(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// Error is the cause's text.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap is the cause.
func (e *usageError) Unwrap() error { return e.err }

// lines makes text harmless for a terminal and keeps its line breaks.
func lines(text string) string {
	parts := strings.Split(text, "\n")
	for i := range parts {
		parts[i] = plain(parts[i])
	}
	return strings.Join(parts, "\n")
}

// print writes a command's answer.
func (s *session) print(text string) error {
	_, err := io.WriteString(s.Stdout, text)
	return err
}

package cli

import "strings"

// examples is the end of a command's help.
func examples(commands ...string) string {
	return "Examples:\n\n    " + strings.Join(commands, "\n    ")
}

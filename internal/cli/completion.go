package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help says where the script goes.
func (completionCmd) Help() string {
	return `The script asks pawl itself what may come next, so that it never has to be renewed.

` + examples(`source <(pawl completion bash)                                   # in ~/.bashrc`,
		`source <(pawl completion zsh)                                    # in ~/.zshrc, after compinit`,
		`pawl completion fish > ~/.config/fish/completions/pawl.fish`)
}

// completionScripts hand the words so far, the one that is being typed last,
// to "pawl __complete", which prints candidates with a tab and a description
// behind. Where there is none, the shells complete file names.
var completionScripts = map[string]string{
	"bash": `_pawl() {
  local IFS=$'\n' line
  COMPREPLY=()
  for line in $(pawl __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
    COMPREPLY+=("${line%%$'\t'*}")
  done
}
complete -o bashdefault -o default -F _pawl pawl
`,
	"zsh": `#compdef pawl
_pawl() {
  local -a found
  local line
  for line in ${(f)"$(pawl __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
    found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#found )); then _describe pawl found; else _files; fi
}
if [[ $funcstack[1] == _pawl ]]; then _pawl "$@"; else compdef _pawl pawl; fi
`,
	"fish": `function __pawl_complete
    set -l words (commandline -opc) (commandline -ct)
    pawl __complete -- $words[2..-1] 2>/dev/null
end
complete -c pawl -n 'test (count (__pawl_complete)) -gt 0' -f -a '(__pawl_complete)'
`,
}

func (c *completionCmd) Run(s *session) error { return s.print(completionScripts[c.Shell]) }

// completeCmd answers the scripts.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints one candidate a line. Words that make no sense have none.
func (c *completeCmd) Run(s *session, k *kong.Kong) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, found := range candidates(k.Model.Node, words) {
		if err := s.print(found.word + "\t" + found.help + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// completion is a word that may come next.
type completion struct{ word, help string }

// candidates are what may stand for the last of the words, which may be empty.
func candidates(root *kong.Node, words []string) (found []completion) {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	node, positional, value := walk(root, words[:len(words)-1])
	switch {
	case node == nil:
	case value != nil:
		found = choices(value.Value)
	case strings.HasPrefix(last, "-"):
		found = flagsOf(node)
	case len(node.Children) > 0:
		for _, child := range node.Children {
			if !child.Hidden {
				found = append(found, completion{child.Name, child.Help})
			}
		}
	case positional < len(node.Positional):
		found = choices(node.Positional[positional])
	}
	return slices.DeleteFunc(found, func(c completion) bool { return !strings.HasPrefix(c.word, last) })
}

// walk follows the words to the command they name, how many of its arguments
// were given, and the flag that still wants its value.
func walk(node *kong.Node, words []string) (at *kong.Node, positional int, value *kong.Flag) {
	for _, word := range words {
		switch {
		case value != nil:
			value = nil
		case strings.HasPrefix(word, "-") && len(word) > 1:
			if f := flagNamed(node, word); f != nil && !f.IsBool() && !strings.Contains(word, "=") {
				value = f
			}
		case len(node.Children) > 0:
			i := slices.IndexFunc(node.Children, func(c *kong.Node) bool { return c.Name == word })
			if i < 0 {
				return nil, 0, nil
			}
			node = node.Children[i]
		default:
			positional++
		}
	}
	return node, positional, value
}

func flagNamed(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if f.Name == name {
				return f
			}
		}
	}
	return nil
}

func flagsOf(node *kong.Node) (found []completion) {
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			found = append(found, completion{"--" + f.Name, f.Help})
		}
	}
	return found
}

// choices are the words that a value is chosen from; most values are free.
func choices(v *kong.Value) (found []completion) {
	for _, word := range v.EnumSlice() {
		if word != "" {
			found = append(found, completion{word, fmt.Sprintf("one of %s", v.Enum)})
		}
	}
	return found
}

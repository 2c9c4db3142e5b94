package cli

type whoamiCmd struct{}

// Help teaches by example.
func (whoamiCmd) Help() string {
	return "Shows the API key that commands would use here: its tenant, scopes and limits. It also tells whether the server answers.\n\n" +
		examples(`pawl whoami`, `pawl whoami --server https://pawl.example.com --json`)
}

func (whoamiCmd) Run(s *session) error { return s.show("/v1/whoami") }

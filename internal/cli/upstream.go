package cli

// upstreamCmd are the commands about upstreams.
type upstreamCmd struct {
	List upstreamListCmd `cmd:"" help:"List the configured upstreams."`
}

type upstreamListCmd struct{}

func (upstreamListCmd) Run(s *session) error {
	return s.list("/v1/upstreams", nil, "name", "adapter", "models", "currency", "deadline", "owner", "paused")
}

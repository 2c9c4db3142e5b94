package cli

import (
	"net/http"
	"net/url"
)

// upstreamCmd are the commands about upstreams.
type upstreamCmd struct {
	List   upstreamListCmd   `cmd:"" help:"List the configured upstreams."`
	Pause  upstreamPauseCmd  `cmd:"" help:"Stop creates at an upstream, of all tenants, until it is resumed."`
	Resume upstreamResumeCmd `cmd:"" help:"End every pause of an upstream."`
	Check  upstreamCheckCmd  `cmd:"" help:"Try a description of your own, without a server."`
}

type upstreamListCmd struct{ exporting }

func (upstreamListCmd) Run(s *session) error {
	return s.list("/v1/upstreams", nil, "name", "adapter", "models", "currency", "deadline", "owner", "paused")
}

// upstreamArg names an upstream.
type upstreamArg struct {
	Name string `arg:"" help:"The upstream, by its name in the configuration."`
}

func (a upstreamArg) path() string { return "/v1/upstreams/" + url.PathEscape(a.Name) }

type upstreamPauseCmd struct {
	upstreamArg
	Reason string `help:"Why; shown to whoever asks for the upstream." placeholder:"TEXT"`
}

// Help teaches by example.
func (upstreamPauseCmd) Help() string {
	return `Operations are taken and wait; reads, callbacks and cancels go on. The pause survives a restart.

` + examples(`pawl upstream pause studio --reason "quota talks with the provider"`)
}

func (c *upstreamPauseCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path()+"/pause", struct {
		Reason string `json:"reason,omitempty"`
	}{c.Reason})
}

type upstreamResumeCmd struct{ upstreamArg }

// Help teaches by example.
func (upstreamResumeCmd) Help() string {
	return `Pauses by hand end, and those after a refused credential too, so that a new one is tried at once.

` + examples(`pawl upstream resume studio`)
}

func (c *upstreamResumeCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path()+"/resume", nil)
}

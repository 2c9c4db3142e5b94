package cli

import (
	"fmt"
	"runtime/debug"
)

// build is what the linker knows of this program.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	// Modified says that the commit alone does not give this program.
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
}

func version() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build{Version: "unknown"}
	}
	b := build{Version: info.Main.Version, Go: info.GoVersion}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

type versionCmd struct{}

func (versionCmd) Run(s *session) error {
	b := version()
	if s.flags.JSON {
		text, err := encode(b)
		if err != nil {
			return err
		}
		return s.printJSON(text)
	}
	text := "pawl " + b.Version
	if b.Commit != "" {
		text += " " + b.Commit[:min(len(b.Commit), 12)]
	}
	if b.Modified {
		text += " (modified)"
	}
	return s.print(fmt.Sprintf("%s %s\n", text, b.Go))
}

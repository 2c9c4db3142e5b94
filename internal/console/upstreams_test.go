package console

import "testing"

// TestUpstreamsSayWhatTheyCan: what an upstream can do does not depend on what was
// called in the last hour, which here is nothing.
func TestUpstreamsSayWhatTheyCan(t *testing.T) {
	newStory(t).as("admin").get("/console/upstreams").want(200).
		shows("<dt>Reads</dt><dd>10/s</dd>", "In the last hour 0 creates; 0 reads;").
		hides("<dt>Reads</dt><dd>no</dd>")
}

package scale

import "fmt"

// Settings are the part of a configuration that a node over a filled ledger
// needs: its upstreams, which nobody answers for and which nothing is asked, and
// its generic source. They follow on the line "upstreams:" of a configuration
// without sources.
func Settings() string {
	text := ""
	for _, name := range []string{Studio, Lab, Closed} {
		text += fmt.Sprintf("  %s: {preset: sim, base_url: \"http://127.0.0.1:9\", key: k, webhook_keys: [\"whsec_c2NhbGVzY2FsZXNjYWxlc2NhbGVzY2FsZXNj\"], currency: USD, read: {first: 1h, max: 1h}}\n", name)
	}
	return text + fmt.Sprintf("sources:\n  %s: {scheme: standard-webhooks, secrets: [\"whsec_c2NhbGVzY2FsZXNjYWxlc2NhbGVzY2FsZXNj\"], tenant: default}\n", Shop)
}

package outbox

import "testing"

// TestTarget: nothing of an address but scheme and host is kept, and what tells
// two addresses apart. The digests are from sha256sum.
func TestTarget(t *testing.T) {
	cases := []struct{ address, shown, digest string }{
		{"https://hooks.example.com/s3cr3t/in?x=1", "https://hooks.example.com", "8d759abe8b33cc73"},
		{"http://user:pass@127.0.0.1:9000/s3cr3t", "http://127.0.0.1:9000", "844ae2582dc165c2"},
		{"https://[::1]:8443", "https://[::1]:8443", "2ef9851e16db15bf"},
		{"%zz", "", "6fca9bb6789bd085"},
	}
	for _, c := range cases {
		if shown, digest := target(c.address); shown != c.shown || digest != c.digest {
			t.Errorf("target(%s) = %q, %q, want %q, %q", c.address, shown, digest, c.shown, c.digest)
		}
	}
}

package outbox

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
)

// target is what an attempt keeps of where it went (1-product H5): scheme and
// host, and the first 16 digits of the SHA-256 of the whole URL, by which two
// attempts, or an attempt and an endpoint, can be compared. No part of the path
// is kept: many receivers have their secret in it, some as its first segment.
func target(address string) (shown, digest string) {
	sum := sha256.Sum256([]byte(address))
	digest = hex.EncodeToString(sum[:8])
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		shown = u.Scheme + "://" + u.Host
	}
	return shown, digest
}

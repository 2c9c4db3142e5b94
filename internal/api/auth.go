package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// KeyPrefix begins every API key, so that scanners for leaked secrets know
// one.
const KeyPrefix = "pawl_sk_"

// A key of an operator's own (PAWL_ADMIN_KEY) may be shorter than ours and
// hold any visible characters (2-contracts §6).
const (
	minSecret = len(KeyPrefix) + 32
	maxSecret = 512
)

// NewKeySecret draws the secret of an API key: KeyPrefix and 43 characters that
// hold 256 random bits. The error is always nil with today's crypto/rand.
func NewKeySecret() (string, error) {
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return KeyPrefix + base64.RawURLEncoding.EncodeToString(b[:]), nil
}

// hashKey is what is stored of an API key's secret.
func hashKey(secret string) ledger.Digest { return sha256.Sum256([]byte(secret)) }

// scopeWords are the scopes in the order of their bits.
var scopeWords = []string{"submit", "read", "operate", "payloads", "admin"}

// scopeWord is the word of one scope.
func scopeWord(s ledger.Scopes) string { return strings.Join(wordsOf(s), " or ") }

func wordsOf(s ledger.Scopes) []string {
	words := []string{}
	for i, word := range scopeWords {
		if s&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return words
}

// parseScopes reads a list of words; false for an unknown or repeated one, or
// an empty list.
func parseScopes(words []string) (s ledger.Scopes, ok bool) {
	for _, word := range words {
		found := false
		for i, known := range scopeWords {
			if bit := ledger.Scopes(1 << i); word == known && s&bit == 0 {
				s, found = s|bit, true
			}
		}
		if !found {
			return 0, false
		}
	}
	return s, s != 0
}

// authenticate gives the API key of a request. What is wrong with a credential
// is not told.
func (a *api) authenticate(ctx context.Context, lines []string) (ledger.APIKey, error) {
	if len(lines) == 0 {
		return ledger.APIKey{}, unauthenticated("send an API key as Authorization: Bearer "+KeyPrefix+"…", `Bearer realm="pawl"`)
	}
	invalid := unauthenticated("the API key is unknown, revoked or expired", `Bearer realm="pawl", error="invalid_token"`)
	secret, ok := bearer(lines)
	if !ok {
		return ledger.APIKey{}, invalid
	}
	key, found, err := a.keyOf(ctx, hashKey(secret))
	if err == nil && !found {
		err = invalid
	}
	return key, err
}

// keyOf gives the API key whose secret has a hash, if it may call now, and counts
// that as a use.
func (a *api) keyOf(ctx context.Context, hash ledger.Digest) (ledger.APIKey, bool, error) {
	key, found, err := a.keys.find(ctx, a.opts.Reader, hash)
	former := key.Hash != hash && pawl.TimeOf(time.Now()) >= key.FormerHashUntil
	if err != nil || !found || former || !alive(key) {
		return ledger.APIKey{}, false, err
	}
	a.used(key)
	return key, true, nil
}

// alive reports whether a key may call now.
func alive(key ledger.APIKey) bool {
	return key.RevokedAt == 0 && (!key.ExpiresAt.IsSet() || pawl.TimeOf(time.Now()) < key.ExpiresAt)
}

func unauthenticated(detail, challenge string) *problem {
	return refuse(http.StatusUnauthorized, "unauthenticated", detail).with("WWW-Authenticate", challenge)
}

func bearer(lines []string) (string, bool) {
	scheme, secret, ok := strings.Cut(lines[0], " ")
	secret = strings.TrimLeft(secret, " ")
	if !ok || len(lines) > 1 || !strings.EqualFold(scheme, "Bearer") || !strings.HasPrefix(secret, KeyPrefix) {
		return "", false
	}
	visible := !strings.ContainsFunc(secret, func(r rune) bool { return r < 0x21 || r > 0x7e })
	return secret, visible && len(secret) >= minSecret && len(secret) <= maxSecret
}

// The bounds of the cache of API keys. A key that another node revoked is
// known here for keyFresh at most.
const (
	keyFresh = 2 * time.Second
	keyLimit = 4096
)

// keyCache remembers API keys for a moment, by the hash of their secret.
type keyCache struct {
	mu   sync.Mutex
	keys map[ledger.Digest]cachedKey
	// changes counts forgets, so that a lookup that began before one does not
	// bring back what it read.
	changes int64
}

type cachedKey struct {
	key   ledger.APIKey
	until time.Time
}

func newKeyCache() *keyCache { return &keyCache{keys: make(map[ledger.Digest]cachedKey)} }

func (k *keyCache) find(ctx context.Context, reader store.Reader, hash ledger.Digest) (ledger.APIKey, bool, error) {
	k.mu.Lock()
	entry, ok := k.keys[hash]
	changes := k.changes
	k.mu.Unlock()
	now := time.Now()
	if ok && now.Before(entry.until) {
		return entry.key, true, nil
	}
	rows, err := reader.APIKeys(ctx, store.APIKeyFilter{Hash: hash}, store.Page{Limit: 1})
	if err != nil || len(rows) == 0 {
		return ledger.APIKey{}, false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if changes == k.changes {
		if len(k.keys) >= keyLimit {
			clear(k.keys)
		}
		k.keys[hash] = cachedKey{rows[0], now.Add(keyFresh)}
	}
	return rows[0], true, nil
}

// forget makes the next requests look a key up again, by whatever secret.
func (k *keyCache) forget(hashes ...ledger.Digest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, hash := range hashes {
		delete(k.keys, hash)
	}
	k.changes++
}

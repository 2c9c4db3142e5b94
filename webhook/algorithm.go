package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strings"
)

// algorithm makes and checks signatures over a text given in pieces.
type algorithm struct {
	sign func(key []byte, text [][]byte) []byte
	// match reports whether one of the candidates is key's signature of text. It
	// takes them together so that a MAC is computed once for a whole list.
	match func(key []byte, text, candidates [][]byte) bool
	// most bounds the candidates where each costs a look at the whole text;
	// zero: nothing beyond the bound of a list.
	most int
	// public gives the half of the key that verifies; nil for symmetric keys.
	public func(key []byte) []byte
}

var (
	hmacSHA256 = hmacBy(sha256.New)
	hmacSHA384 = hmacBy(sha512.New384)
	hmacSHA512 = hmacBy(sha512.New)
)

func hmacBy(digest func() hash.Hash) algorithm {
	sign := func(key []byte, text [][]byte) []byte {
		mac := hmac.New(digest, key)
		for _, piece := range text {
			mac.Write(piece)
		}
		return mac.Sum(nil)
	}
	return algorithm{sign: sign, match: func(key []byte, text, candidates [][]byte) bool {
		return matchMAC(sign(key, text), candidates)
	}}
}

func matchMAC(want []byte, candidates [][]byte) bool {
	for _, got := range candidates {
		if hmac.Equal(got, want) {
			return true
		}
	}
	return false
}

// encoding is how a signature is written in a header. Decoding accepts exactly
// what encoding writes, so a signature has one spelling.
type encoding struct {
	encode func([]byte) string
	decode func(string) ([]byte, bool)
}

var (
	base64Strict = encoding{encode: base64.StdEncoding.EncodeToString, decode: decodeBase64}
	hexLower     = encoding{encode: hex.EncodeToString, decode: decodeHexLower}
)

// decodeBase64 refuses what package base64 ignores: line breaks, and bits left
// over in the last character (SW-31).
func decodeBase64(s string) ([]byte, bool) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, false
	}
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	return b, err == nil
}

func decodeHexLower(s string) ([]byte, bool) {
	if strings.ContainsAny(s, "ABCDEF") {
		return nil, false
	}
	b, err := hex.DecodeString(s)
	return b, err == nil
}

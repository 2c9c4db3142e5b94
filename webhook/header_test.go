package webhook

import (
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The design is held by a provider that is not built in: GitHub signs the body
// alone. Secret, body and signature are the example of GitHub's documentation.
func TestSchemeIsData(t *testing.T) {
	github := Scheme{
		name:      "github",
		signature: signatureRule{header: "X-Hub-Signature-256"},
		token:     tokenRule{prefix: "sha256=", encoding: hexLower, algorithm: hmacSHA256},
		text:      []part{{kind: partBody}},
	}
	const want = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	k, err := github.ParseKey("It's a Secret to Everybody")
	if err != nil {
		t.Fatal(err)
	}
	body := []byte("Hello, World!")
	h, err := github.Sign(Message{Body: body}, k)
	if err != nil || len(h) != 1 || h.Get("x-hub-signature-256") != want {
		t.Errorf("signed %v, %v", h, err)
	}
	if _, err := github.Verify(Request{Header: h, Body: body}, time.Unix(0, 0), k); err != nil {
		t.Error(err)
	}
}

func FuzzTimestamp(f *testing.F) {
	for _, seed := range []string{"1790000000", "+1", "01", "", " 1", "99999999999", "100000000000", "1e9", "१", "-0", "1790000000000"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, problem := parseTimestamp(s)
		n, isNumber := new(big.Int).SetString(s, 10)
		wellFormed := isNumber && n.String() == s && n.Sign() > 0 && n.Cmp(big.NewInt(99_999_999_999)) <= 0
		if (problem == "") != wellFormed {
			t.Fatalf("%q: problem %q", s, problem)
		}
		if wellFormed && at.Unix() != n.Int64() {
			t.Fatalf("%q: %v", s, at)
		}
	})
}

// FuzzVerifyHeaders knows no key, so whatever the headers hold must be refused,
// and a list must yield only what is written in it.
func FuzzVerifyHeaders(f *testing.F) {
	f.Add("evt_1", "1790000000", "v1,AAAA v1a,x v1,", "2", "x")
	f.Add("", "", "", "", "")
	f.Add("a.b", "+1", "sha256=00", "1", "{}")
	f.Add("a", "1790000000", strings.Repeat("v1, ", 40), "2", `{"data":{"taskId":"j"}}`)
	keys := make(map[string]Key)
	for _, s := range schemes {
		secret, err := s.NewSecret(nil)
		if err != nil {
			f.Fatal(err)
		}
		if keys[s.name], err = s.ParseKey(secret); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, id, timestamp, signature, version, body string) {
		for _, s := range schemes {
			k := keys[s.name]
			h := http.Header{}
			if s.id != "" {
				h.Set(s.id, id)
			}
			h.Set(s.timestamp.header, timestamp)
			h.Set(s.signature.header, signature)
			h.Set("X-Webhook-Payload-Version", version)
			if v, err := s.Verify(Request{Header: h, Body: []byte(body)}, time.Unix(1790000000, 0), k); err == nil || v != (Verified{}) {
				t.Fatalf("%s: accepted", s.name)
			}
			tokens, err := s.signature.tokens(h)
			if err == nil && (len(tokens) > maxSignatures || strings.Join(tokens, s.signature.separator) != signature) {
				t.Fatalf("%s: %d tokens of %q", s.name, len(tokens), signature)
			}
			found, ok := s.token.candidates(tokens)
			if ok && s.token.algorithm.most > 0 && len(found) > s.token.algorithm.most {
				t.Fatalf("%s: %d candidates", s.name, len(found))
			}
			for _, c := range found {
				if !strings.Contains(signature, s.token.prefix+s.token.encoding.encode(c)) {
					t.Fatalf("%s: candidate %x is not in %q", s.name, c, signature)
				}
			}
		}
	})
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		"", " ", "key", "whsec_", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "whsk_AA==", "whpk_AA==", "a\n", "whsec_AA-_",
		"whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=", "whpk_" + strings.Repeat("A", 43) + "=",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, secret string) {
		for _, s := range schemes {
			k, err := s.ParseKey(secret)
			if err != nil {
				if k.secret != nil {
					t.Fatal("a refused secret gives a key")
				}
				continue
			}
			if s.key.ed25519 || s.key.both && asymmetric(secret) {
				continue // FuzzParseSigningKey
			}
			// Only one text, but for the optional prefix, may give the same key.
			written := string(k.secret())
			if s.key.base64 {
				written = base64.StdEncoding.EncodeToString(k.secret())
			}
			if written != secret && s.key.prefix+written != secret {
				t.Fatalf("%s: %q is read as %s", s.name, secret, strconv.Quote(hex.EncodeToString(k.secret())))
			}
		}
	})
}

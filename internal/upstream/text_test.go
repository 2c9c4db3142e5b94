package upstream

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
)

// What a provider says repeats no credential of ours in any encoding, not the token
// of the operation's callback address, and no link, with a scheme or without.
func TestMessagesHoldNoCredential(t *testing.T) {
	u := testUpstream(t, "sim", "https://up.example.com")
	body := strings.TrimPrefix(testKeys["sim"], "whsec_")
	raw, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		t.Fatal(err)
	}
	c := NewCallbacks("https://pawl.example.com", []byte("the ledger's key"))
	token := c.Token("up", pawl.ID{15: 7})
	mac := token[26:]
	other := c.Token("up", pawl.ID{15: 9})
	u = u.Hiding(token)
	b64 := base64.StdEncoding.EncodeToString
	for text, want := range map[string]string{
		"bad auth Basic " + b64([]byte("me:sk-test")) + "!": "bad auth Basic [key]!",
		"key " + b64([]byte("sk-test")):                     "key [key]",
		"key " + hex.EncodeToString([]byte("sk-test")):      "key [key]",
		"key sk%2Dtest":                          "key [key]",
		"key %73%6b-test":                        "key [key]",
		"signed with " + testKeys["sim"]:         "signed with [key]",
		"signed with " + body + ", no":           "signed with [key], no",
		"signed with " + hex.EncodeToString(raw): "signed with [key]",
		"signed with " + url.QueryEscape(body):   "signed with [key]",
		"no answer at " + token:                  "no answer at " + token[:26] + "[key]",
		"and at " + other:                        "and at " + other[:26] + "[key]",
		"mac " + mac + "; " + b64([]byte(mac)):   "mac [key]; [key]",
		"see //files.example.com/a?sig=1 now":    "see [link] now",
		`see "\/\/files.example.com\/a?sig=1"`:   `see "[link]"`,
		"see files.example.com/a.mp4?sig=1 now":  "see [link] now",
		"no such task, is it old? ask again":     "no such task, is it old? ask again",
		"op_" + token[:26] + " is not known":     "op_" + token[:26] + " is not known",
	} {
		if got := u.message(text); got != want {
			t.Errorf("message(%q) = %q, want %q", text, got, want)
		}
		if got := u.word(text, 200); got != want {
			t.Errorf("word(%q) = %q, want %q", text, got, want)
		}
	}
}

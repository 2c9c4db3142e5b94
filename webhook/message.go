package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// HTTP Message Signatures (RFC 9421) over a digest of the body (RFC 9530). Unlike
// the other schemes, what is signed is named by the request itself, so the
// receiver decides what must be named (MS-01, MS-03).

const (
	signatureInput = "Signature-Input"
	contentDigest  = "Content-Digest"
	contentType    = "Content-Type"
	// maxComponents bounds what one signature covers, and its parameters.
	maxComponents = 32
	// maxLists bounds the text of each of the two headers with signatures.
	maxLists = 8 << 10
	// messageTag says what the signature is for, so that one of another
	// application cannot be passed off as a webhook (RFC 9421 §7.2.2).
	messageTag  = "webhook"
	jsonContent = "application/json"
)

// required are the components that a signature must cover, beside the address.
// They are also, with the whole address, those of our own signatures.
var required = []string{"@method", "content-digest", "content-type", "webhook-id"}

// deprecatedDigests are refused beside a good one too (RFC 9530 §5).
var deprecatedDigests = []string{"md5", "sha", "unixsum", "unixcksum", "adler", "crc32c"}

// target is where a message goes, in the parts that can be covered.
type target struct{ uri, authority, path, query string }

// parseTarget reads an absolute address as a receiver sees it (RFC 9421 §2.2).
func parseTarget(text string) (target, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "" {
		return target{}, false
	}
	t := target{authority: strings.ToLower(u.Host), path: u.EscapedPath(), query: "?" + u.RawQuery}
	if port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; strings.HasSuffix(t.authority, port) {
		t.authority = strings.TrimSuffix(t.authority, port)
	}
	if t.path == "" {
		t.path = "/"
	}
	t.uri = u.Scheme + "://" + t.authority + t.path
	if u.RawQuery != "" || u.ForceQuery {
		t.uri += t.query
	}
	return t, true
}

// message is a request in the parts that a signature can cover.
type message struct {
	target
	method string
	header http.Header
}

// component gives the value of a component; false for one that the message does
// not have, or that this package does not know.
func (m message) component(c sfItem) (string, bool) {
	name, ok := c.value.(string)
	if !ok || len(c.params) > 0 {
		return "", false
	}
	switch name {
	case "@method":
		return m.method, true
	case "@target-uri":
		return m.uri, true
	case "@authority":
		return m.authority, true
	case "@path":
		return m.path, true
	case "@query":
		return m.query, true
	}
	if strings.HasPrefix(name, "@") || strings.ToLower(name) != name {
		return "", false
	}
	values := fieldLines(m.header, name)
	for i, v := range values {
		values[i] = strings.Trim(v, " \t")
	}
	joined := strings.Join(values, ", ")
	return joined, len(values) > 0 && !strings.ContainsAny(joined, "\r\n")
}

// fieldLines are all lines of a header, whatever the case of its name.
func fieldLines(h http.Header, name string) (lines []string) {
	for key, all := range h {
		if strings.EqualFold(key, name) {
			lines = append(lines, all...)
		}
	}
	return lines
}

// base is the text that is signed (RFC 9421 §2.5).
func (m message) base(input sfItem) ([]byte, bool) {
	components, ok := input.value.([]sfItem)
	if !ok {
		return nil, false
	}
	var b strings.Builder
	seen := map[string]bool{}
	for _, c := range components {
		name := c.text()
		value, ok := m.component(c)
		if !ok || seen[name] {
			return nil, false
		}
		seen[name] = true
		b.WriteString(name + ": " + value + "\n")
	}
	b.WriteString(`"@signature-params": ` + input.text())
	return []byte(b.String()), true
}

// covers reports whether a signature covers everything that must be.
func covers(input sfItem, hasQuery bool) bool {
	components, _ := input.value.([]sfItem)
	has := func(name string) bool {
		return slices.ContainsFunc(components, func(c sfItem) bool { return c.value == any(name) && len(c.params) == 0 })
	}
	address := has("@target-uri") || has("@authority") && has("@path") && (has("@query") || !hasQuery)
	return address && !slices.ContainsFunc(required, func(name string) bool { return !has(name) })
}

func (k Key) messageAlgorithm() string {
	if k.token.algorithm.public != nil {
		return "ed25519"
	}
	return "hmac-sha256"
}

// messageKeyID names a key without telling it: a receiver may hold two.
func (k Key) messageKeyID() string {
	var sum []byte
	if public := k.token.algorithm.public; public != nil {
		all := sha256.Sum256(public(k.secret()))
		sum = all[:]
	} else {
		sum = hmacSHA256.sign(k.secret(), [][]byte{[]byte("keyid")})
	}
	return hex.EncodeToString(sum[:8])
}

func digestField(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=" + sfItem{value: sum[:]}.text()
}

// signMessage gives the headers of a message, with a signature for each key.
func (s Scheme) signMessage(m Message, v values, keys []Key) (http.Header, error) {
	to, ok := parseTarget(m.URL)
	if !ok {
		return nil, refuse(ReasonMalformedMessage, "the scheme signs the address, and the URL is not absolute")
	}
	kind := m.ContentType
	if kind == "" {
		kind = jsonContent
	}
	if strings.Trim(kind, " \t") != kind || strings.ContainsAny(kind, "\r\n") {
		return nil, refuse(ReasonMalformedMessage, "the content type has white space around it or a line break in it")
	}
	h := http.Header{s.id: {v.id}, contentType: {kind}, contentDigest: {digestField(m.Body)}}
	components := []sfItem{{value: "@method"}, {value: "@target-uri"}}
	for _, name := range required[1:] {
		components = append(components, sfItem{value: name})
	}
	var inputs, signatures []string
	for i, k := range keys {
		input := sfItem{value: components, params: []sfParam{
			{"created", m.Timestamp}, {"expires", m.Timestamp + int64(s.timestamp.window/time.Second)},
			{"keyid", k.messageKeyID()}, {"alg", k.messageAlgorithm()}, {"tag", messageTag},
		}}
		base, _ := message{to, http.MethodPost, h}.base(input)
		label := "sig" + strconv.Itoa(i+1) + "="
		inputs = append(inputs, label+input.text())
		signatures = append(signatures, label+sfItem{value: k.token.algorithm.sign(k.secret(), [][]byte{base})}.text())
	}
	h.Set(signatureInput, strings.Join(inputs, ", "))
	h.Set(s.signature.header, strings.Join(signatures, ", "))
	return h, nil
}

// candidate is a signature that could be the sender's.
type candidate struct {
	at        time.Time
	algorithm string // empty: not stated
	base      []byte
	signature []byte
}

// verifyMessage is [Scheme.Verify] for message signatures.
func (s Scheme) verifyMessage(r Request, now time.Time, keys []Key) (Verified, error) {
	to, ok := parseTarget(r.URL)
	if !ok {
		return Verified{}, refuse(ReasonNoURL, "the scheme signs the address: give the absolute URL that was called")
	}
	id, err := s.receivedID(r.Header)
	if err != nil {
		return Verified{}, err
	}
	for _, name := range [...]string{contentType, contentDigest} {
		if _, err := header(r.Header, name); err != nil {
			return Verified{}, err
		}
	}
	found, err := s.candidates(message{to, http.MethodPost, r.Header}, now)
	if err != nil {
		return Verified{}, err
	}
	if err := checkDigest(r.Header, r.Body); err != nil {
		return Verified{}, err
	}
	for i, k := range keys {
		for _, c := range found {
			if (c.algorithm == "" || c.algorithm == k.messageAlgorithm()) && k.token.algorithm.match(k.secret(), [][]byte{c.base}, [][]byte{c.signature}) {
				return Verified{ID: id, Timestamp: c.at, Key: i}, nil
			}
		}
	}
	return Verified{}, refuseHeader(ReasonNoMatch, s.signature.header, "no signature matches")
}

// candidates are the signatures that cover what they must and are fresh. Others
// in the same headers may be somebody else's business (MS-07); if there is none,
// the error says what the last of them lacks.
func (s Scheme) candidates(m message, now time.Time) (found []candidate, err error) {
	inputs, err := dictionary(m.header, signatureInput)
	if err != nil {
		return nil, err
	}
	signatures, err := dictionary(m.header, s.signature.header)
	if err != nil {
		return nil, err
	}
	last := refuseHeader(ReasonMalformedHeader, signatureInput, "no signature is described")
	for _, in := range inputs {
		c, refused := s.candidate(m, in.sfItem, now)
		if refused != nil {
			last = refused
			continue
		}
		for _, sig := range signatures {
			if b, ok := sig.value.([]byte); ok && sig.key == in.key {
				c.signature = b
				found = append(found, c)
			}
		}
	}
	if len(found) > maxEd25519 {
		return nil, refuseHeader(ReasonMalformedHeader, signatureInput, "more than "+strconv.Itoa(maxEd25519)+" signatures cover the request")
	}
	if len(found) == 0 {
		return nil, last
	}
	return found, nil
}

func (s Scheme) candidate(m message, input sfItem, now time.Time) (c candidate, err error) {
	bad := func(detail string) (candidate, error) {
		return candidate{}, refuseHeader(ReasonMalformedHeader, signatureInput, detail)
	}
	if !covers(input, m.query != "?") {
		return bad("the signature must cover @method, @target-uri (or @authority, @path and @query), content-digest, content-type and webhook-id")
	}
	created, ok := input.param("created").(int64)
	if !ok || created < 1 || created > maxTimestamp {
		return candidate{}, refuseHeader(ReasonMalformedTimestamp, signatureInput, "created must be there, in whole Unix seconds")
	}
	c.at = time.Unix(created, 0)
	if err := s.timestamp.fresh(signatureInput, c.at, now); err != nil {
		return candidate{}, err
	}
	if e := input.param("expires"); e != nil {
		expires, ok := e.(int64)
		if !ok {
			return bad("expires must be in whole Unix seconds")
		}
		if now.After(time.Unix(expires, 0)) {
			return candidate{}, refuseHeader(ReasonStaleTimestamp, signatureInput, "expires has passed")
		}
	}
	if alg := input.param("alg"); alg != nil {
		if c.algorithm, ok = alg.(string); !ok || c.algorithm == "" {
			return bad("alg must be a string")
		}
	}
	if c.base, ok = m.base(input); !ok {
		return bad("the signature covers something that the request does not have, that is covered twice, or that is not supported")
	}
	return c, nil
}

// dictionary reads all lines of a header as one dictionary (RFC 9651 §4.2).
func dictionary(h http.Header, name string) ([]sfMember, error) {
	lines := fieldLines(h, name)
	if len(lines) == 0 {
		return nil, refuseHeader(ReasonMissingHeader, name, "the header is absent")
	}
	text := strings.Join(lines, ", ")
	members, ok := parseDictionary(text)
	if !ok || len(text) > maxLists {
		return nil, refuseHeader(ReasonMalformedHeader, name, "not a dictionary of structured fields with at most "+strconv.Itoa(maxSignatures)+" different keys")
	}
	return members, nil
}

// checkDigest holds the body against its digest, which the signature covers.
func checkDigest(h http.Header, body []byte) error {
	members, err := dictionary(h, contentDigest)
	if err != nil {
		return err
	}
	var want []byte
	for _, m := range members {
		if slices.Contains(deprecatedDigests, m.key) {
			return refuseHeader(ReasonMalformedHeader, contentDigest, "a deprecated algorithm is among them; send sha-256 alone")
		}
		if b, ok := m.value.([]byte); ok && m.key == "sha-256" {
			want = b
		}
	}
	if want == nil {
		return refuseHeader(ReasonMalformedHeader, contentDigest, "sha-256 is needed")
	}
	if sum := sha256.Sum256(body); !hmac.Equal(sum[:], want) {
		return refuseHeader(ReasonNoMatch, contentDigest, "the body has another digest")
	}
	return nil
}

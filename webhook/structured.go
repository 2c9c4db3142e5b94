package webhook

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// This is as much of Structured Fields (RFC 9651) as message signatures need:
// dictionaries of byte sequences and of inner lists, with parameters. What they
// do not use (decimals, dates, display strings) is refused, and so is a key that
// occurs twice, which readers could understand differently.

// sfToken is a bare item of that kind; the others are string, int64, bool and
// []byte.
type sfToken string

type sfParam struct {
	key   string
	value any
}

// sfItem is a bare item, or an inner list of items, with parameters.
type sfItem struct {
	value  any // []sfItem for an inner list
	params []sfParam
}

type sfMember struct {
	key string
	sfItem
}

// parseDictionary reads a whole field value (RFC 9651 §4.2.2).
func parseDictionary(text string) ([]sfMember, bool) {
	p := sfReader{strings.Trim(text, " ")}
	var all []sfMember
	for {
		m, ok := p.member()
		if !ok || len(all) == maxSignatures || slices.ContainsFunc(all, func(o sfMember) bool { return o.key == m.key }) {
			return nil, false
		}
		all = append(all, m)
		p.space(" \t")
		if p.rest == "" {
			return all, true
		}
		if !p.take(',') {
			return nil, false
		}
		p.space(" \t")
	}
}

// sfReader takes one thing after the other from the front of a text.
type sfReader struct{ rest string }

func (p *sfReader) space(of string) { p.rest = strings.TrimLeft(p.rest, of) }

func (p *sfReader) take(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// while takes the longest beginning of such characters.
func (p *sfReader) while(of string) string {
	rest := strings.TrimLeft(p.rest, of)
	taken := p.rest[:len(p.rest)-len(rest)]
	p.rest = rest
	return taken
}

const (
	sfDigits = "0123456789"
	sfLower  = "abcdefghijklmnopqrstuvwxyz"
	sfAlpha  = sfLower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

func (p *sfReader) key() (string, bool) {
	key := p.while(sfLower + sfDigits + "_-.*")
	return key, key != "" && strings.IndexByte(sfLower+"*", key[0]) >= 0
}

func (p *sfReader) member() (m sfMember, ok bool) {
	if m.key, ok = p.key(); !ok {
		return m, false
	}
	if !p.take('=') {
		m.value = true
	} else if m.value, ok = p.listOrItem(); !ok {
		return m, false
	}
	m.params, ok = p.parameters()
	return m, ok
}

func (p *sfReader) listOrItem() (any, bool) {
	if !p.take('(') {
		return p.bareItem()
	}
	items := []sfItem{}
	for {
		p.space(" ")
		if p.take(')') {
			return items, true
		}
		value, ok := p.bareItem()
		if !ok || len(items) == maxComponents {
			return nil, false
		}
		params, ok := p.parameters()
		if !ok || p.rest == "" || p.rest[0] != ' ' && p.rest[0] != ')' {
			return nil, false
		}
		items = append(items, sfItem{value, params})
	}
}

func (p *sfReader) parameters() (all []sfParam, ok bool) {
	for p.take(';') {
		p.space(" ")
		one := sfParam{value: true}
		if one.key, ok = p.key(); !ok || len(all) == maxComponents || slices.ContainsFunc(all, func(o sfParam) bool { return o.key == one.key }) {
			return nil, false
		}
		if p.take('=') {
			if one.value, ok = p.bareItem(); !ok {
				return nil, false
			}
		}
		all = append(all, one)
	}
	return all, true
}

func (p *sfReader) bareItem() (any, bool) {
	if p.rest == "" {
		return nil, false
	}
	switch c := p.rest[0]; {
	case c == '"':
		return p.quoted()
	case c == ':':
		inner, rest, ok := strings.Cut(p.rest[1:], ":")
		p.rest = rest
		b, exact := decodeBase64(inner)
		return b, ok && exact
	case c == '?':
		p.rest = p.rest[1:]
		one := p.take('1')
		return one, one || p.take('0')
	case c == '-' || c >= '0' && c <= '9':
		return p.integer()
	case c == '*' || strings.IndexByte(sfAlpha, c) >= 0:
		return sfToken(p.while(sfAlpha + sfDigits + "!#$%&'*+-.^_`|~:/")), true
	}
	return nil, false
}

func (p *sfReader) quoted() (any, bool) {
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return b.String(), true
		case c == '\\':
			if i++; i == len(p.rest) || p.rest[i] != '"' && p.rest[i] != '\\' {
				return nil, false
			}
		case c < ' ' || c > '~':
			return nil, false
		}
		b.WriteByte(p.rest[i])
	}
	return nil, false
}

// integer accepts the one spelling of each number that has no leading zero.
func (p *sfReader) integer() (any, bool) {
	sign := ""
	if p.take('-') {
		sign = "-"
	}
	text := sign + p.while(sfDigits)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && len(text) <= 15+len(sign) && strconv.FormatInt(n, 10) == text && !strings.HasPrefix(p.rest, ".")
}

// writeItem writes an item as RFC 9651 §4.1 does, which is what is signed.
func writeItem(b *strings.Builder, it sfItem) {
	switch v := it.value.(type) {
	case []sfItem:
		b.WriteByte('(')
		for i, inner := range v {
			if i > 0 {
				b.WriteByte(' ')
			}
			writeItem(b, inner)
		}
		b.WriteByte(')')
	case string:
		b.WriteByte('"')
		b.WriteString(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v))
		b.WriteByte('"')
	case sfToken:
		b.WriteString(string(v))
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case []byte:
		b.WriteString(":" + base64.StdEncoding.EncodeToString(v) + ":")
	case bool:
		b.WriteString(map[bool]string{true: "?1", false: "?0"}[v])
	}
	for _, param := range it.params {
		b.WriteString(";" + param.key)
		if param.value != true {
			b.WriteByte('=')
			writeItem(b, sfItem{value: param.value})
		}
	}
}

// text is the item as it is written.
func (it sfItem) text() string {
	var b strings.Builder
	writeItem(&b, it)
	return b.String()
}

// param gives a parameter, nil if there is none of that name.
func (it sfItem) param(key string) any {
	for _, p := range it.params {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

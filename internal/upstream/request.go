package upstream

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/internal/strict"
)

// values are what a request is made of.
type values struct {
	model, callbackURL, clientRef, task string
	input                               []byte
}

func (v values) text(s Source) string {
	switch s {
	case FromModel:
		return v.model
	case FromCallbackURL:
		return v.callbackURL
	case FromClientRef:
		return v.clientRef
	case FromTask:
		return v.task
	}
	return ""
}

// request builds a request without GetBody, which Go's transport would use to
// send it a second time by itself (O-008).
func (u Upstream) request(ctx context.Context, c Call, v values, body []byte) (*http.Request, error) {
	address := u.base + strings.ReplaceAll(c.Path, "{task}", url.PathEscape(v.task))
	query := url.Values{}
	for name, source := range c.Query {
		if text := v.text(source); text != "" {
			query.Set(name, text)
		}
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, address, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("upstream: request: the address cannot be built")
	}
	req.GetBody = nil
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	for _, h := range u.spec.Headers {
		req.Header.Set(h.Name, h.Value)
	}
	if !u.key.IsZero() {
		req.Header.Set(u.spec.Auth.Header, strings.Replace(u.spec.Auth.Format, "{key}", u.key.Reveal(), 1))
	}
	return req, nil
}

// The errors of an input that the body cannot be made of.
var (
	errInput     = errors.New("the input is not valid JSON, or not an object where its members are sent")
	errCollision = errors.New("the input has a member that the request sets itself")
)

// createBody writes the body by hand: the input goes out as the bytes that
// came in, so numbers keep their spelling (1-product A2).
func (u Upstream) createBody(v values) ([]byte, error) {
	if strict.Check(v.input) != nil {
		return nil, errInput
	}
	b := bodyWriter{out: []byte{'{'}}
	for _, m := range u.spec.Create.Body {
		raw, err := m.raw(v)
		if err != nil {
			return nil, err
		}
		switch {
		case raw == nil:
		case m.Name != "":
			b.member(m.Name, raw)
		default:
			if err := b.spread(raw); err != nil {
				return nil, err
			}
		}
	}
	body := append(b.out, '}')
	// Twice the same name means that the input tried to replace our own members,
	// such as the callback address.
	if strict.Check(body) != nil {
		return nil, errCollision
	}
	return body, nil
}

// raw is the member's JSON text, nil where there is nothing to send.
func (m Member) raw(v values) ([]byte, error) {
	switch m.From {
	case FromValue:
		return []byte(m.Value), nil
	case FromInput:
		part, err := strict.Extract(v.input, m.Pointer)
		if err != nil {
			return nil, errInput
		}
		return part[0].Raw, nil
	}
	text := v.text(m.From)
	if text == "" {
		return nil, nil
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return nil, errInput
	}
	return quoted, nil
}

type bodyWriter struct{ out []byte }

func (b *bodyWriter) comma() {
	if len(b.out) > 1 {
		b.out = append(b.out, ',')
	}
}

func (b *bodyWriter) member(name string, raw []byte) {
	b.comma()
	b.out, _ = jsontext.AppendQuote(b.out, name)
	b.out = append(append(b.out, ':'), raw...)
}

// spread writes the inside of an object.
func (b *bodyWriter) spread(raw []byte) error {
	if raw[0] != '{' {
		return errInput
	}
	inside := bytes.Trim(raw[1:len(raw)-1], " \t\r\n")
	if len(inside) > 0 {
		b.comma()
		b.out = append(b.out, inside...)
	}
	return nil
}

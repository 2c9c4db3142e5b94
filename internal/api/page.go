package api

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

// The sizes of pages (PG-01).
const (
	defaultPage = 50
	maxPage     = 200
	// lookMost is how many rows one page is looked for among at most, where a
	// filter is one that no index knows: the list goes on with the next page.
	lookMost = 2_500
)

// page is one page of a list, newest first. The end is where no token is: a page
// may have fewer items than were asked for, even none, and others follow.
type page[T any] struct {
	Items         []T    `json:"items"`
	NextPageToken string `json:"next_page_token,omitempty" doc:"Give it as page_token for the next page. Absent at the end of the list, and only there: a page may have fewer items than asked for, even none, where what is looked for is rare."`
}

// sealer makes page tokens: sealed, so that they are opaque, and bound to
// route, tenant and filters, so that they fit no other list (PG-03).
type sealer struct{ aead cipher.AEAD }

func newSealer(secret []byte) sealer {
	if len(secret) == 0 {
		secret = make([]byte, 32)
		_, _ = rand.Read(secret) // Never fails (crypto/rand).
	}
	key := sha256.Sum256(append([]byte("pawl page tokens\x00"), secret...))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // Only the length of a key can be wrong, and that is a type.
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the block size that GCM needs.
	}
	return sealer{aead}
}

func (s sealer) seal(position []byte, bound string) string {
	nonce := make([]byte, s.aead.NonceSize(), 64)
	_, _ = rand.Read(nonce) // Never fails (crypto/rand).
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, position, []byte(bound)))
}

func (s sealer) open(token, bound string) ([]byte, bool) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	n := s.aead.NonceSize()
	if err != nil || len(sealed) < n {
		return nil, false
	}
	position, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(bound))
	return position, err == nil
}

// bound is what a page token of this call is bound to: everything that decides
// which rows the list has.
func (c *call) bound() string {
	query := c.filters()
	query.Del("page_size")
	return c.r.URL.Path + "\n" + c.tenant + "\n" + query.Encode()
}

// pageSize reads page_size.
func (c *call) pageSize() (int, error) {
	text := c.query.Get("page_size")
	if text == "" {
		return defaultPage, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	switch {
	case err != nil || n < 0:
		return 0, refuse(http.StatusBadRequest, "invalid_query", "page_size must be a number that is not negative")
	case n == 0:
		return defaultPage, nil
	}
	return int(min(n, maxPage)), nil
}

// position is where the list goes on; nil at its beginning.
func (c *call) position() ([]byte, error) {
	token := c.query.Get("page_token")
	if token == "" {
		return nil, nil
	}
	position, ok := c.pages.open(token, c.bound())
	if !ok {
		return nil, refuse(http.StatusBadRequest, "invalid_page_token", "the page token is damaged, old, or of a list with other filters; begin again without it")
	}
	return position, nil
}

// more makes the token of the next page and links to it (PG-05).
func (c *call) more(position []byte) string {
	token := c.pages.seal(position, c.bound())
	query := c.filters()
	query.Set("page_token", token)
	c.header.Set("Link", "<"+c.r.URL.Path+"?"+query.Encode()+`>; rel="next"`)
	return token
}

// listed reads one page by id and shows its rows.
func listed[Row, T any](c *call, read func(store.Page) ([]Row, error), id func(Row) pawl.ID, show func([]Row) ([]T, error)) (page[T], error) {
	size, err := c.pageSize()
	if err != nil {
		return page[T]{}, err
	}
	position, err := c.position()
	if err != nil {
		return page[T]{}, err
	}
	p := store.Page{Limit: size + 1, Look: &store.Look{Most: lookMost}}
	copy(p.After[:], position)
	rows, err := read(p)
	if err != nil {
		return page[T]{}, err
	}
	var next string
	if stop := p.Stop(len(rows)); !stop.IsZero() {
		next = c.more(stop[:])
	}
	if len(rows) > size {
		rows = rows[:size]
		last := id(rows[size-1])
		next = c.more(last[:])
	}
	items, err := show(rows)
	return page[T]{items, next}, err
}

// each shows rows one by one.
func each[Row, T any](show func(Row) T) func([]Row) ([]T, error) {
	return func(rows []Row) ([]T, error) {
		items := make([]T, len(rows))
		for i, row := range rows {
			items[i] = show(row)
		}
		return items, nil
	}
}

// filters are the query without the page token.
func (c *call) filters() url.Values {
	query := maps.Clone(c.query)
	query.Del("page_token")
	return query
}

// paged is one page of a list that is all in memory, in the order of its
// names.
func paged[T any](c *call, items []T, name func(T) string) (page[T], error) {
	size, err := c.pageSize()
	if err != nil {
		return page[T]{}, err
	}
	position, err := c.position()
	if err != nil {
		return page[T]{}, err
	}
	out := page[T]{Items: []T{}}
	for _, item := range items {
		switch {
		case position != nil && name(item) <= string(position):
		case len(out.Items) == size:
			out.NextPageToken = c.more([]byte(name(out.Items[size-1])))
			return out, nil
		default:
			out.Items = append(out.Items, item)
		}
	}
	return out, nil
}

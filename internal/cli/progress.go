package cli

import (
	"fmt"
	"strings"
)

// progressBar is the line that shows a person how far something has come.
type progressBar struct {
	s     *session
	shown bool
}

// show draws the line; a total of 0 is not known yet.
func (b *progressBar) show(done, total int) {
	if !b.s.watched() {
		return
	}
	const width = 30
	full := width
	if total > 0 {
		full = min(width, width*done/total)
	}
	fmt.Fprintf(b.s.Stderr, "\r\x1b[K[%s%s] %d of %d", strings.Repeat("#", full), strings.Repeat(".", width-full), done, max(total, done))
	b.shown = true
}

// clear takes the line away again.
func (b *progressBar) clear() {
	if b.shown {
		fmt.Fprint(b.s.Stderr, "\r\x1b[K")
		b.shown = false
	}
}

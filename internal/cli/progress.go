package cli

import (
	"fmt"
	"strings"
)

// stepLine is the line on a terminal that shows how far something is.
type stepLine struct {
	s     *session
	shown bool
}

// show draws a bar where the total is known.
func (l *stepLine) show(step string, done, total int64) {
	if !l.s.watched() {
		return
	}
	const width = 30
	fmt.Fprint(l.s.Stderr, "\r\x1b[K")
	if total > 0 {
		full := int(min(width, width*done/total))
		fmt.Fprintf(l.s.Stderr, "[%s%s] %d %% ", strings.Repeat("#", full), strings.Repeat(".", width-full), min(100, 100*done/total))
	}
	fmt.Fprint(l.s.Stderr, step)
	if total > 0 {
		fmt.Fprintf(l.s.Stderr, ": %d of %d", done, total)
	}
	l.shown = true
}

func (l *stepLine) clear() {
	if l.shown {
		fmt.Fprint(l.s.Stderr, "\r\x1b[K")
		l.shown = false
	}
}

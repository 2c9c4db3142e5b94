package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that must be mended in the configuration. What says how.
type Problem struct {
	// File is the name of the configuration file; empty for values set in code.
	File string
	// Line counts from 1; 0 where no line is known.
	Line int
	// Key is the full path, such as "upstreams.studio.deadline"; empty for the
	// file as a whole.
	Key string
	// What is wrong and what to write instead, never the value itself.
	What string
}

// Error is "FILE:LINE: KEY: WHAT".
func (p Problem) Error() string {
	place := p.File
	if place == "" {
		place = "config"
	}
	if p.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, p.Line)
	}
	if p.Key == "" {
		return place + ": " + p.What
	}
	return place + ": " + p.Key + ": " + p.What
}

// Problems is everything that was found at once, in the order of the file.
type Problems []Problem

// Error gives one problem a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// With joins what a later check has found in the same configuration, in the
// order of the file. Findings about keys that already have a problem, or are part
// of one, are left out: they judge a value that was never read.
func (ps Problems) With(later Problems) Problems {
	all := slices.Clone(ps)
	for _, p := range later {
		if !slices.ContainsFunc(ps, func(q Problem) bool { return q.spoils(p.Key) }) {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return a.Line - b.Line })
	return all
}

// spoils reports whether the value of a key cannot be judged with this problem in
// it or around it: it is the key's own, that of a mapping which the key is in, or
// of the secret in an entry with dates.
func (p Problem) spoils(key string) bool {
	return p.Key == key || strings.HasPrefix(key, p.Key+".") || strings.HasSuffix(key, "]") && p.Key == key+".key"
}

// Unwrap makes each problem visible to errors.As.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// origin remembers where the values came from.
type origin struct {
	file  string
	lines map[string]int
}

// has reports whether the file gives the key.
func (o *origin) has(key string) bool {
	if o == nil {
		return false
	}
	_, ok := o.lines[key]
	return ok
}

// line is that of the key or of the nearest key around it.
func (o *origin) line(key string) int {
	for {
		if n, ok := o.lines[key]; ok {
			return n
		}
		cut := strings.LastIndexAny(key, ".[")
		if cut < 0 {
			return 0
		}
		key = key[:cut]
	}
}

// Problem places a finding about the key in the file that the configuration
// was read from, for checks that only a later room can make, such as whether a
// preset or a scheme exists.
func (c Config) Problem(key, what string) Problem {
	if c.origin == nil {
		return Problem{Key: key, What: what}
	}
	return Problem{File: c.origin.file, Line: c.origin.line(key), Key: key, What: what}
}

package store

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl"
)

// Migration is one step of a ledger's schema.
type Migration struct {
	// Version numbers the steps from 1; Name is the step's file, empty where this
	// program does not know the step.
	Version int64
	Name    string
	// AppliedAt is when the ledger took it, zero for one that is pending.
	AppliedAt pawl.Time
}

// Migrations are the steps that a program has in its files, with those that a
// ledger has taken; some of them may be of a newer program.
func Migrations(files []string, applied map[int64]pawl.Time) []Migration {
	byVersion := make(map[int64]Migration)
	for _, file := range files {
		name := path.Base(file)
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			panic("store: the migration " + name + " has no number") // A file of our own.
		}
		byVersion[version] = Migration{Version: version, Name: name}
	}
	for version, at := range applied {
		if version > 0 { // 0 stands for the empty schema.
			byVersion[version] = Migration{version, byVersion[version].Name, at}
		}
	}
	var all []Migration
	for _, m := range byVersion {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Migration) int { return int(a.Version - b.Version) })
	return all
}

// Begun reports whether there is a ledger at all: it has taken a step.
func Begun(all []Migration) bool {
	return slices.ContainsFunc(all, func(m Migration) bool { return m.AppliedAt != 0 })
}

// CheckVersion refuses a schema that is not exactly the one that a program
// reads: a ledger that is only read is not migrated.
func CheckVersion(all []Migration) error {
	var has, want int64
	for _, m := range all {
		if m.AppliedAt != 0 {
			has = m.Version
		}
		if m.Name != "" {
			want = m.Version
		}
	}
	switch {
	case has > want:
		return NewerSchema(has, want)
	case has < want:
		return fmt.Errorf("the ledger has the older schema %d, this program reads %d: bring it up with \"pawl migrate up\", or start the server once", has, want)
	}
	return nil
}

// NewerSchema is the [ErrNewerSchema] that says what to do.
func NewerSchema(has, want int64) error {
	return fmt.Errorf("%w: it has %d, this one knows %d: run the version of Pawl that brought it there, or a newer one; there is no way back but a backup from before", ErrNewerSchema, has, want)
}

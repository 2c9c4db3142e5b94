package exercise

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store/memory"
	"github.com/pawlhq/pawl/internal/upstream"
)

// playable leaves out of a captured fixture what comes to something else when it
// is played: what an operation was told of beside its events, such as the word of
// its create or all that a read's answer said, is in no ledger. Of the words that
// the operation may have begun with it takes the one that leaves the most steps.
func (f Fixture) playable(ctx context.Context) (Fixture, error) {
	best := f
	best.Steps = nil
	for _, word := range wordsOf(f.spec, pawl.Running) {
		one := f
		one.Operations = []FixtureOperation{{Task: f.Operations[0].Task, Word: word}}
		for again := true; again; {
			var err error
			if one.Steps, again, err = one.trial(ctx); err != nil {
				return f, err
			}
		}
		if len(one.Steps) > len(best.Steps) {
			best = one
		}
		if len(best.Steps) == len(f.Steps) {
			break
		}
	}
	return best, nil
}

// trial plays the steps on a ledger in memory and gives those that hold. After
// one that does not and has changed the operation the rest is unplayed, and the
// trial must be made again.
func (f Fixture) trial(ctx context.Context) (kept []Step, again bool, err error) {
	s, err := openStage(f, newKeyring(), memory.New(memory.Options{}), &dialer{}, &wire{})
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.bindAll(ctx); err != nil {
		return nil, false, err
	}
	crash, _ := f.crashEvent()
	ended := false
	for i, step := range f.Steps {
		p, failed := s.play(ctx, step)
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		ended = ended || step.Check == crash.Check
		// The crash is tried with the end alone, and must come to the same version.
		if failed == nil && p.judge().Pass && (ended || sameVersions(p)) {
			kept = append(kept, step)
			continue
		}
		if failed != nil || !maps.Equal(p.before, p.after) {
			return append(kept, f.Steps[i+1:]...), true, nil
		}
	}
	return kept, false, nil
}

func sameVersions(p played) bool {
	return maps.EqualFunc(p.before, p.after, func(a, b standing) bool { return a.Version == b.Version })
}

// wordsOf are the provider's words for a state, sorted.
func wordsOf(spec upstream.Spec, state pawl.State) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(spec.States)), func(word string) bool { return spec.States[word] != state })
}

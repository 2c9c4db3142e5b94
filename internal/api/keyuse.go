package api

import (
	"context"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Bounds of noting the use of API keys.
const (
	// noteEvery is how exactly the last use is known.
	noteEvery = time.Minute
	// notesAtOnce is how many uses are being noted at once; a further one is
	// noted by the key's next call.
	notesAtOnce = 4
	noteWithin  = 10 * time.Second
)

// keyUses notes that API keys are used, once a minute each, beside the requests
// that use them.
type keyUses struct {
	mu    sync.Mutex
	noted map[pawl.ID]time.Time
	slots chan struct{}
}

func newKeyUses() *keyUses {
	return &keyUses{noted: make(map[pawl.ID]time.Time), slots: make(chan struct{}, notesAtOnce)}
}

// take reports whether a key's use is to be noted now; then done must be called.
func (u *keyUses) take(key ledger.APIKey, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if pawl.TimeOf(now).Sub(key.LastUsedAt) < noteEvery || now.Sub(u.noted[key.ID]) < noteEvery {
		return false
	}
	select {
	case u.slots <- struct{}{}:
	default:
		return false
	}
	if len(u.noted) >= keyLimit {
		clear(u.noted)
	}
	u.noted[key.ID] = now
	return true
}

// used notes the use of a key. A note that is lost is made up for by a later one.
func (a *api) used(key ledger.APIKey) {
	if !a.uses.take(key, time.Now()) {
		return
	}
	go func() {
		defer func() { <-a.uses.slots }()
		ctx, cancel := context.WithTimeout(context.Background(), noteWithin)
		defer cancel()
		_, _ = a.do(ctx, ledger.UseKey{Header: store.NewHeader(""), ID: key.ID})
	}()
}

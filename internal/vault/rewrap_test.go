package vault_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/vault"
)

func step(r *vault.Rewrapper) func(context.Context, string) (vault.Step, error) {
	return func(ctx context.Context, after string) (vault.Step, error) { return r.Step(ctx, "", after) }
}

// Everything is sealed anew, wherever the work is cut off and by what, and what
// was done is not done again. 450 rows of each kind are three pages.
func TestRewrapGoesOnWhereItWasCutOff(t *testing.T) {
	b := newBooks(t)
	one, two := vault.URL(vault.NewKey()), vault.URL(vault.NewKey())
	all := b.fill(450, b.sealing(b.mustUnlock(vault.Keys{Current: one}).Vault))
	both := vault.Keys{Current: two, Former: []config.Secret{one}}
	resealed, cuts := 0, 0
	for done := false; !done; cuts++ {
		ctx, cancel := context.WithCancel(t.Context())
		u := b.mustUnlock(both)
		var saves atomic.Int64
		gone := cuts%2 == 1
		fault := func() error {
			switch n := saves.Add(1); {
			case !gone && n == 20:
				cancel() // the caller
			case gone && n >= 20:
				return errors.New("the disk is gone")
			}
			return nil
		}
		b.fault.Store(&fault)
		total, err := vault.Total(ctx, step(u.Rewrapper), nil)
		b.fault.Store(nil)
		cancel()
		resealed += total.Resealed
		done = err == nil
		if done != total.Done || cuts > 100 {
			t.Fatalf("after %d cuts: %+v, %v", cuts, total, err)
		}
		// Nothing is lost meanwhile.
		held := b.held()
		for id, texts := range all {
			if got, err := u.Vault.Open(t.Context(), id, held[id].Current); err != nil || got != texts[0] {
				t.Fatalf("%s: %q, %v", id, got, err)
			}
		}
	}
	if cuts < 4 {
		t.Errorf("%d cuts prove little", cuts)
	}
	// A batch that was committed when its caller had gone is not counted.
	if resealed > len(all) || resealed < len(all)/2 {
		t.Errorf("%d rows were sealed anew, of %d", resealed, len(all))
	}
	b.opens(b.mustUnlock(vault.Keys{Current: two}).Vault, all)
	u := b.mustUnlock(vault.Keys{Current: two})
	if total, err := vault.Total(t.Context(), step(u.Rewrapper), nil); err != nil || total.Resealed != 0 || !total.Done || total.Seen != len(all) {
		t.Errorf("once more: %+v, %v", total, err)
	}
}

// The file gets a new key in front, and loses the former one at the end. A
// second run goes on with the same new key if the first was cut off.
func TestRenewedFile(t *testing.T) {
	b := newBooks(t)
	first := b.mustUnlock()
	was, all := strings.TrimSpace(b.inFile()), b.fill(5, b.sealing(first.Vault))
	renew := vault.Keys{Renew: true}
	second := b.mustUnlock(renew)
	both := b.inFile()
	if lines := strings.Fields(both); len(lines) != 2 || lines[1] != was || second.Vault.Key() == first.Vault.Key() {
		t.Fatalf("%d keys in the file", len(lines))
	}
	third := b.mustUnlock(renew)
	if b.inFile() != both || third.Vault.Key() != second.Vault.Key() {
		t.Error("the change that is under way was begun anew")
	}
	// A node may run meanwhile.
	if u := b.mustUnlock(); u.Vault.Key() != second.Vault.Key() {
		t.Error("a node seals with another key")
	}
	total, err := vault.Total(t.Context(), step(third.Rewrapper), nil)
	if err != nil || total.Resealed != len(all) || !slices.Equal(total.Retired, []string{first.Vault.Key()}) {
		t.Errorf("%+v, %v", total, err)
	}
	if lines := strings.Fields(b.inFile()); len(lines) != 1 || lines[0] == was {
		t.Errorf("%d keys in the file, or the former one", len(lines))
	}
	now := b.mustUnlock()
	b.opens(now.Vault, all)
	if string(now.Root) != string(first.Root) {
		t.Error("another root")
	}
	if b.mustUnlock(renew).Vault.Key() == now.Vault.Key() {
		t.Error("the key is not renewed again")
	}
}

// racing changes a row between its being read and its being written.
type racing struct {
	store.Commands
	race func()
}

func (r *racing) DoAll(ctx context.Context, commands ...ledger.Command) []store.Result {
	r.race()
	return r.Commands.DoAll(ctx, commands...)
}

// A secret that is rotated while it is sealed anew stays rotated; what it was
// before is sealed anew too.
func TestRotationMeanwhile(t *testing.T) {
	b := newBooks(t)
	one, two := vault.URL(vault.NewKey()), vault.URL(vault.NewKey())
	old := b.mustUnlock(vault.Keys{Current: one}).Vault
	all := b.fill(1, b.sealing(old))
	u := b.mustUnlock(vault.Keys{Current: two, Former: []config.Secret{one}})
	races := 0
	u.Rewrapper.Commands = &racing{b.commit, func() {
		if races++; races > 2 {
			return
		}
		for id, texts := range all {
			endpoints, _ := b.driver.Endpoints(t.Context(), store.EndpointFilter{}, store.Page{Limit: 9})
			if endpoints[0].ID != id {
				continue
			}
			// The node of before, which knows the former key only, is the worst case.
			secret := fmt.Sprint("rotated ", races)
			b.do(ledger.ChangeEndpoint{Header: store.NewHeader(""), ID: id, Action: "rotate_secret", Change: ledger.EndpointChange{
				Secret: b.sealing(old)(id, secret), FormerUntil: pawl.Never,
			}})
			all[id] = [2]string{secret, texts[0]}
		}
	}}
	total, err := vault.Total(t.Context(), step(u.Rewrapper), nil)
	if err != nil || !total.Done || races < 3 {
		t.Fatalf("%+v, %v, %d races", total, err, races)
	}
	b.opens(u.Vault, all)
}

// A secret that no key opens is reported and left, and does not keep the
// former key in use.
func TestUnreadable(t *testing.T) {
	b := newBooks(t)
	one, two := vault.URL(vault.NewKey()), vault.URL(vault.NewKey())
	old := b.mustUnlock(vault.Keys{Current: one}).Vault
	good := b.fill(2, b.sealing(old))
	bad := map[string]ledger.Sealed{
		"plain": "whsec_plain", "damaged": b.sealing(old)(alice, "x")[:40], "of another row": b.sealing(old)(alice, "x"),
		"under a lost key": seal(t, open(t, vault.NewKey()), alice, "x"),
	}
	var ids []string
	for _, s := range bad {
		id := store.NewID()
		ids = append(ids, id.Text(pawl.PrefixEndpoint))
		b.do(ledger.CreateEndpoint{Header: store.NewHeader(""), Endpoint: ledger.Endpoint{ID: id, Tenant: "acme", URL: "https://example.com", Secret: s}})
	}
	u := b.mustUnlock(vault.Keys{Current: two, Former: []config.Secret{one}})
	total, err := vault.Total(t.Context(), step(u.Rewrapper), nil)
	slices.Sort(ids)
	slices.Sort(total.Unreadable)
	if err != nil || !slices.Equal(total.Unreadable, ids) || !slices.Equal(total.Retired, []string{old.Key()}) || total.Resealed != len(good) {
		t.Errorf("%+v, %v; want unreadable %v", total, err, ids)
	}
	held := b.held()
	for id := range good {
		if _, err := u.Vault.Open(t.Context(), id, held[id].Current); err != nil {
			t.Error(err)
		}
	}
}

func TestPlacesRefused(t *testing.T) {
	b := newBooks(t)
	u := b.mustUnlock()
	for _, after := range []string{"x", "op_00000000000000000000000000", "key_", "endpoints2"} {
		if _, err := u.Rewrapper.Step(t.Context(), "", after); !errors.Is(err, vault.ErrPlace) {
			t.Errorf("%q: %v", after, err)
		}
	}
}

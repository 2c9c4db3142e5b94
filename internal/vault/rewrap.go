package vault

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// stepRows is how many rows one step looks at.
const stepRows = 200

// maxPasses bounds how often everything is looked through: a second pass is for
// rows that changed during the first.
const maxPasses = 10

// Rewrapper seals the secrets of a ledger anew with the vault's current key. It
// works beside a running node and may be stopped at any moment: each row is a
// command of its own, and what is done is not done again.
type Rewrapper struct {
	Vault    *Vault
	Commands store.Commands
	Reader   store.Reader
	// File holds the keys where the configuration gives none; keys that are no
	// longer in use are taken out of it. Empty: none does.
	File string
}

// Step is what one step has done.
type Step struct {
	// Seen counts rows that were looked at, Resealed those that were changed.
	Seen, Resealed int
	// Unreadable are rows of which a secret cannot be opened: it needs to be
	// rotated.
	Unreadable []string
	// Next is where the next step goes on; empty for the beginning.
	Next string
	// Done says that everything is sealed with the current key, and Retired which
	// keys are of no use any more.
	Done    bool
	Retired []string
}

// add counts another step in.
func (s *Step) add(other Step) {
	s.Seen += other.Seen
	s.Resealed += other.Resealed
	for _, id := range other.Unreadable {
		if !slices.Contains(s.Unreadable, id) {
			s.Unreadable = append(s.Unreadable, id)
		}
	}
	s.Next, s.Done, s.Retired = other.Next, other.Done, other.Retired
}

// Total follows the steps of step until they are done, and is what they came
// to. Tell, if not nil, is told after each step. What a failed step did before
// is in the total beside its error.
func Total(ctx context.Context, step func(ctx context.Context, after string) (Step, error), tell func(Step)) (Step, error) {
	var total Step
	for passes := 0; passes < maxPasses; {
		s, err := step(ctx, total.Next)
		if err != nil {
			total.Resealed += s.Resealed
			return total, err
		}
		total.add(s)
		if tell != nil {
			tell(total)
		}
		if s.Done {
			return total, nil
		}
		if s.Next == "" {
			passes++
		}
	}
	return total, errors.New("secrets are changed faster than they are sealed anew; run it again")
}

// Step seals some rows anew: those after the place where the step before has
// stopped. At the end of all rows it looks whether any is left, and retires the
// other keys if none is. Actor is who asked.
func (r *Rewrapper) Step(ctx context.Context, actor, after string) (Step, error) {
	rows, next, err := r.page(ctx, after)
	if err != nil {
		return Step{}, err
	}
	s, err := r.reseal(ctx, actor, rows, r.Vault.Reseal)
	if err != nil {
		return s, err
	}
	if s.Next = next; next != "" {
		return s, nil
	}
	left, err := r.left(ctx)
	if err != nil || left {
		return s, err
	}
	if s.Retired, err = r.retire(ctx, actor); err != nil {
		return s, err
	}
	s.Done = true
	return s, r.tidy(ctx)
}

// row is one row with secrets.
type row struct {
	name             string
	endpoint, apiKey pawl.ID
	held             ledger.SealedPair
}

func (r row) owner() pawl.ID {
	if r.apiKey.IsZero() {
		return r.endpoint
	}
	return r.apiKey
}

// ErrPlace is the error of a place that no step has given.
var ErrPlace = errors.New("not a place where a step has stopped; leave it out to begin")

// firstEndpoint is the place behind all API keys.
const firstEndpoint = "endpoints"

// page reads the rows after a place: first all API keys, then all endpoints,
// the newest first. Next is the place after them, empty at the end.
func (r *Rewrapper) page(ctx context.Context, after string) (rows []row, next string, err error) {
	p := store.Page{Limit: stepRows}
	if p.After, err = pawl.ParseID(pawl.PrefixKey, after); err == nil || after == "" {
		keys, err := r.Reader.APIKeys(ctx, store.APIKeyFilter{}, p)
		for _, k := range keys {
			next = k.ID.Text(pawl.PrefixKey)
			rows = append(rows, row{name: next, apiKey: k.ID, held: ledger.SealedPair{Current: k.WebhookSecret, Former: k.FormerSecret}})
		}
		if len(keys) < p.Limit {
			next = firstEndpoint
		}
		return rows, next, err
	}
	if p.After, err = pawl.ParseID(pawl.PrefixEndpoint, after); err != nil && after != firstEndpoint {
		return nil, "", ErrPlace
	}
	endpoints, err := r.Reader.Endpoints(ctx, store.EndpointFilter{Kind: ledger.WebhookEndpoint}, p)
	for _, e := range endpoints {
		next = e.ID.Text(pawl.PrefixEndpoint)
		rows = append(rows, row{name: next, endpoint: e.ID, held: ledger.SealedPair{Current: e.Secret, Former: e.FormerSecret}})
	}
	if len(endpoints) < p.Limit {
		next = ""
	}
	return rows, next, err
}

// sealing makes of a held secret what the row is to hold.
type sealing func(ctx context.Context, owner pawl.ID, s ledger.Sealed) (ledger.Sealed, error)

// reseal has rows changed, in as few commits as there is room for. A row that
// somebody else changed meanwhile stays as it is: a later pass finds it.
func (r *Rewrapper) reseal(ctx context.Context, actor string, rows []row, seal sealing) (Step, error) {
	s := Step{Seen: len(rows)}
	var commands []ledger.Command
	for _, row := range rows {
		now, unreadable, err := resealed(ctx, row, seal)
		if err != nil {
			return s, err
		}
		if unreadable {
			s.Unreadable = append(s.Unreadable, row.name)
		}
		if now != row.held {
			commands = append(commands, ledger.Rewrap{Header: store.NewHeader(actor), Endpoint: row.endpoint, APIKey: row.apiKey, Was: row.held, Now: now})
		}
	}
	if len(commands) == 0 {
		return s, nil
	}
	for _, result := range r.Commands.DoAll(ctx, commands...) {
		if result.Err != nil {
			return s, result.Err
		}
		if result.Outcome.Reason == "rewrapped" {
			s.Resealed++
		}
	}
	return s, nil
}

// resealed is what a row is to hold. A secret that cannot be opened stays as it
// is.
func resealed(ctx context.Context, r row, seal sealing) (now ledger.SealedPair, unreadable bool, err error) {
	now = r.held
	for _, s := range []*ledger.Sealed{&now.Current, &now.Former} {
		again, err := seal(ctx, r.owner(), *s)
		var unknown *UnknownKeyError
		switch {
		case errors.Is(err, ErrDamaged), errors.Is(err, ErrOwner), errors.Is(err, ErrPlain), errors.As(err, &unknown):
			unreadable = true
		case err != nil:
			return now, false, err
		default:
			*s = again
		}
	}
	return now, unreadable, nil
}

// left reports whether a secret is still sealed with another key, and can be
// opened.
func (r *Rewrapper) left(ctx context.Context) (bool, error) {
	for after := ""; ; {
		rows, next, err := r.page(ctx, after)
		if err != nil {
			return false, err
		}
		for _, row := range rows {
			now, _, err := resealed(ctx, row, r.Vault.Reseal)
			if err != nil || now != row.held {
				return err == nil, err
			}
		}
		if next == "" {
			return false, nil
		}
		after = next
	}
}

// retire records that the other keys are of no use any more.
func (r *Rewrapper) retire(ctx context.Context, actor string) (names []string, err error) {
	all, err := r.Reader.WrappingKeys(ctx)
	if err != nil {
		return nil, err
	}
	for _, key := range all {
		if key.RetiredAt != 0 || key.Name == r.Vault.Key() {
			continue
		}
		out, err := r.Commands.Do(ctx, ledger.RetireWrappingKey{Header: store.NewHeader(actor), Name: key.Name})
		if err == nil && out.Err != nil {
			err = out.Err
		}
		if err != nil {
			return names, err
		}
		names = append(names, key.Name)
	}
	return names, nil
}

// tidy takes keys out of the file that nothing is sealed with.
func (r *Rewrapper) tidy(ctx context.Context) error {
	if r.File == "" {
		return nil
	}
	keys, err := readKeyFile(r.File)
	if err != nil || len(keys) == 1 {
		return err
	}
	all, err := r.Reader.WrappingKeys(ctx)
	if err != nil {
		return err
	}
	kept := keys[:1:1]
	for _, key := range keys[1:] {
		used := func(k ledger.WrappingKey) bool { return k.RetiredAt == 0 && k.Name == nameOf(key[:]) }
		if slices.ContainsFunc(all, used) {
			kept = append(kept, key)
		}
	}
	if len(kept) == len(keys) {
		return nil
	}
	return writeKeyFile(r.File, kept...)
}

// sealPlain seals the secrets of a ledger from before they were.
func (r *Rewrapper) sealPlain(ctx context.Context) error {
	seal := func(ctx context.Context, owner pawl.ID, s ledger.Sealed) (ledger.Sealed, error) {
		if _, _, sealed := s.Parts(); sealed {
			return r.Vault.Reseal(ctx, owner, s)
		}
		return r.Vault.Seal(ctx, owner, string(s))
	}
	for after := ""; ; {
		rows, next, err := r.page(ctx, after)
		if err == nil {
			_, err = r.reseal(ctx, "", rows, seal)
		}
		if err != nil {
			return fmt.Errorf("the secrets of this ledger could not be sealed: %w", err)
		}
		if next == "" {
			return nil
		}
		after = next
	}
}

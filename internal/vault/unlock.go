package vault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Keys says where the wrapping keys of a ledger come from.
type Keys struct {
	// Current seals; where it is not set, the key in File does, which is made if
	// the ledger is new.
	Current config.Secret
	// Former only open.
	Former []config.Secret
	// File is DIR/secret.key.
	File string
	// Renew draws another key into File, unless a change of the key is under way
	// already. Without effect where Current is set.
	Renew bool
}

// SettingError says which setting of the configuration gives a key that cannot
// be used.
type SettingError struct {
	// Key is the setting, such as former_secrets[0].
	Key string
	// What is wrong, with what to write instead.
	What string
}

// Error names the setting.
func (e *SettingError) Error() string { return e.Key + ": " + e.What }

// Unlocked is what belongs to a ledger whose wrapping key was the right one.
type Unlocked struct {
	Vault *Vault
	// Root is what callback addresses and page tokens are derived from: 32 bytes
	// that stay the same under every wrapping key.
	Root      []byte
	Rewrapper *Rewrapper
}

// rootOwner is whom the root is sealed for: no row has this id.
var rootOwner = pawl.ID{}

// Unlock finds the wrapping keys of a ledger and proves them right. A ledger
// that is new gets its keys; one from before its secrets were sealed has them
// sealed here. It is for the start of a node, which has the ledger for itself.
func Unlock(ctx context.Context, commands store.Commands, reader store.Reader, k Keys) (*Unlocked, error) {
	u := unlocking{Keys: k, commands: commands, reader: reader}
	if err := u.look(ctx); err != nil {
		return nil, err
	}
	if err := u.openVault(ctx); err != nil {
		return nil, err
	}
	if err := u.findRoot(ctx); err != nil {
		return nil, err
	}
	r := &Rewrapper{Vault: u.vault, Commands: commands, Reader: reader}
	if k.Current.IsZero() {
		r.File = k.File
	}
	if u.old {
		if err := r.sealPlain(ctx); err != nil {
			return nil, err
		}
	}
	if err := u.record(ctx); err != nil {
		return nil, err
	}
	return &Unlocked{Vault: u.vault, Root: u.root, Rewrapper: r}, r.tidy(ctx)
}

type unlocking struct {
	Keys
	commands store.Commands
	reader   store.Reader

	// used are the keys that rows may be sealed with.
	used []ledger.WrappingKey
	// old says that the ledger is from before secrets were sealed; fresh that it
	// is new.
	old, fresh bool
	// inFile are the keys of the file.
	inFile [][keySize]byte
	vault  *Vault
	root   []byte
}

// look reads what the ledger and the file say.
func (u *unlocking) look(ctx context.Context) error {
	all, err := u.reader.WrappingKeys(ctx)
	if err != nil {
		return err
	}
	for _, key := range all {
		if key.RetiredAt == 0 {
			u.used = append(u.used, key)
		}
	}
	if len(all) == 0 {
		some, err := u.reader.APIKeys(ctx, store.APIKeyFilter{}, store.Page{Limit: 1})
		if err != nil {
			return err
		}
		u.old, u.fresh = len(some) > 0, len(some) == 0
	}
	u.inFile, err = readKeyFile(u.File)
	if errors.Is(err, fs.ErrNotExist) || !u.Current.IsZero() && !u.old {
		return nil // Where the configuration gives the key, the file is of no use.
	}
	return err
}

// openVault makes the vault and sees to it that it opens everything.
func (u *unlocking) openVault(ctx context.Context) error {
	if u.old && len(u.inFile) == 0 {
		return u.missing()
	}
	urls := append([]config.Secret{u.Current}, u.Former...)
	settings := 1
	if u.Current.IsZero() {
		if err := u.fromFile(ctx); err != nil {
			return err
		}
		settings = len(u.inFile)
		urls = nil
		for _, key := range u.inFile {
			urls = append(urls, URL(key))
		}
		urls = append(urls, u.Former...)
	}
	var err error
	u.vault, err = New(ctx, urls[0], urls[1:]...)
	var wrong *KeyError
	if errors.As(err, &wrong) {
		key := "secrets"
		if wrong.Place >= settings {
			key = fmt.Sprintf("former_secrets[%d]", wrong.Place-settings)
		}
		return &SettingError{key, wrong.Error()}
	}
	if err != nil {
		return err
	}
	for _, key := range u.used {
		if !u.vault.Has(key.Name) {
			return u.wrongKey(key.Name)
		}
	}
	return nil
}

// fromFile sees to it that the file holds the current key.
func (u *unlocking) fromFile(ctx context.Context) error {
	renew := false
	switch {
	case len(u.inFile) == 0:
		// Without the file only a new ledger gets one, or one whose keys are all
		// given otherwise: the configuration says so no longer.
		if err := u.covered(ctx); !u.fresh && err != nil {
			return err
		}
		renew = true
	case u.old:
		// Until now the file held the root. From here on it is in the ledger, and
		// the two change apart.
		renew = len(u.inFile) == 1
	case u.Renew:
		current := nameOf(u.inFile[0][:])
		renew = len(u.used) == 1 && u.used[0].Name == current
	}
	if !renew {
		return nil
	}
	u.inFile = slices.Insert(u.inFile, 0, NewKey())
	return writeKeyFile(u.File, u.inFile...)
}

// covered says whether the former keys open everything.
func (u *unlocking) covered(ctx context.Context) error {
	if len(u.Former) == 0 {
		return u.missing()
	}
	former, err := New(ctx, u.Former[0], u.Former[1:]...)
	if err != nil {
		return nil // It will be told where the vault is made.
	}
	defer former.Close()
	for _, key := range u.used {
		if !former.Has(key.Name) {
			return u.missing()
		}
	}
	return nil
}

func (u *unlocking) missing() error {
	return fmt.Errorf("the wrapping key in %s is missing: put back the file that belongs to this ledger", u.File)
}

// wrongKey says what to do about a key that is needed and not given.
func (u *unlocking) wrongKey(name string) error {
	text := fmt.Sprintf("secrets of this ledger are sealed with the wrapping key %s, and the key given is %s", name, u.vault.Key())
	for _, key := range u.inFile {
		path, err := filepath.Abs(u.File)
		if err == nil && nameOf(key[:]) == name {
			return fmt.Errorf(`%s: add former_secrets: ["base64key://${file:%s}"] to the configuration, start, and run "pawl key rewrap"`, text, path)
		}
	}
	if u.Current.IsZero() {
		return fmt.Errorf("%s: put back the %s that belongs to this ledger, or give its key in former_secrets", text, u.File)
	}
	return fmt.Errorf("%s: give the other one in secrets, or in former_secrets beside its successor", text)
}

// findRoot opens the ledger's root, or takes the one from before, or draws one.
func (u *unlocking) findRoot(ctx context.Context) error {
	switch {
	case u.fresh:
		key := NewKey()
		u.root = key[:]
		return nil
	case u.old:
		u.root = u.inFile[len(u.inFile)-1][:]
		return nil
	}
	for _, key := range u.used {
		root, err := u.vault.Open(ctx, rootOwner, key.Root)
		if err == nil && (len(root) != keySize || u.root != nil && string(u.root) != root) {
			err = ErrDamaged
		}
		if err != nil {
			return fmt.Errorf("the ledger's root under the wrapping key %s: %w; restore the ledger from a backup", key.Name, err)
		}
		u.root = []byte(root)
	}
	if u.root == nil {
		return errors.New("the ledger names no wrapping key in use: restore it from a backup")
	}
	return nil
}

// record writes the current key into the ledger, before it seals anything else.
func (u *unlocking) record(ctx context.Context) error {
	name := u.vault.Key()
	if slices.ContainsFunc(u.used, func(k ledger.WrappingKey) bool { return k.Name == name }) {
		return nil
	}
	sealed, err := u.vault.Seal(ctx, rootOwner, string(u.root))
	if err != nil {
		return err
	}
	out, err := u.commands.Do(ctx, ledger.AddWrappingKey{Header: store.NewHeader(""), Name: name, Root: sealed})
	if err == nil && out.Err != nil {
		err = out.Err
	}
	if err != nil {
		return err
	}
	// Another node may have been first.
	root, err := u.vault.Open(ctx, rootOwner, out.Value.(ledger.WrappingKey).Root)
	if err != nil {
		return err
	}
	u.root = []byte(root)
	return u.agreed(ctx)
}

// agreed sees to it that two nodes which make a new ledger at the same moment
// were given the same key: each has drawn a root otherwise, and the later one's
// goes, with its start.
func (u *unlocking) agreed(ctx context.Context) error {
	all, err := u.reader.WrappingKeys(ctx)
	if err != nil || !u.fresh {
		return err
	}
	mine := all[slices.IndexFunc(all, func(k ledger.WrappingKey) bool { return k.Name == u.vault.Key() })]
	for _, key := range all {
		earlier := cmp.Or(cmp.Compare(key.CreatedAt, mine.CreatedAt), cmp.Compare(key.Name, mine.Name)) < 0
		if !earlier || key.RetiredAt != 0 || u.vault.Has(key.Name) {
			continue
		}
		_, err := u.commands.Do(ctx, ledger.RetireWrappingKey{Header: store.NewHeader(""), Name: mine.Name})
		return errors.Join(u.wrongKey(key.Name), err)
	}
	return nil
}

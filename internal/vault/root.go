package vault

import (
	"context"
	"errors"
	"io/fs"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/store"
)

// Root is that of a ledger which is only looked at, by those of its keys that are
// at hand; nil where none of them is. Nothing is changed.
func Root(ctx context.Context, reader store.Seals, k Keys) ([]byte, error) {
	all, err := reader.WrappingKeys(ctx)
	if err != nil {
		return nil, err
	}
	var urls []config.Secret
	if !k.Current.IsZero() {
		urls = append(urls, k.Current)
	} else {
		inFile, err := readKeyFile(k.File)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, key := range inFile {
			urls = append(urls, URL(key))
		}
	}
	if urls = append(urls, k.Former...); len(urls) == 0 {
		return nil, nil
	}
	v, err := New(ctx, urls[0], urls[1:]...)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	for _, key := range all {
		if key.RetiredAt == 0 && v.Has(key.Name) {
			root, err := v.Open(ctx, rootOwner, key.Root)
			return []byte(root), err
		}
	}
	return nil, nil
}

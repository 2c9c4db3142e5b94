package capture

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// spool is the folder of what is being fetched: a file of bytes and a small one
// about it for each artifact.
type spool struct {
	dir string
	// boot names this run of the machine. Bytes that were written in another one
	// may have been lost with its memory, whatever the file's length says.
	boot string
	// open guards against two writers of one file within this process: a fetch
	// that lost its lease may not have stopped yet.
	writers *sync.Map
}

// about is what the server said of the entity that the bytes belong to. It holds
// no link.
type about struct {
	Boot string
	// Resource is a digest of the link without its query: a fresh link to the same
	// place can go on where the old one stopped.
	Resource ledger.Digest
	// Validator is what If-Range is sent with: a strong ETag or Last-Modified.
	Validator string
	// Length is that of the whole entity, -1 if the server did not say.
	Length int64
	// Type, Encoding and Filename are the server's words.
	Type, Encoding, Filename string
	// SHA256 and MD5 are what the server declares the entity's digests to be, nil
	// if it does not.
	SHA256, MD5 []byte
	// Complete says that all bytes are there.
	Complete bool
}

func openSpool(dir string) (spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return spool{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		// Nothing is gone on from that another process has written.
		boot = []byte(pawl.NewID(pawl.Time(os.Getpid()), 0).String())
	}
	return spool{dir: dir, boot: strings.TrimSpace(string(boot)), writers: new(sync.Map)}, nil
}

func (s spool) path(id pawl.ID) string {
	return filepath.Join(s.dir, id.Text(pawl.PrefixArtifact))
}

// spoolFile is one artifact's, open for writing at its end.
type spoolFile struct {
	*os.File
	spool spool
	id    pawl.ID
	about about
	size  int64
}

var errBusy = errors.New("the spool file is still being written")

// open gives the file with what was fetched before.
func (s spool) open(id pawl.ID) (*spoolFile, error) {
	if _, busy := s.writers.LoadOrStore(id, true); busy {
		return nil, errBusy
	}
	f := &spoolFile{spool: s, id: id}
	var err error
	if f.File, err = os.OpenFile(s.path(id), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		s.writers.Delete(id)
		return nil, err
	}
	text, err := os.ReadFile(s.path(id) + ".about")
	if err == nil {
		err = json.Unmarshal(text, &f.about)
	}
	if f.size, _ = f.Seek(0, io.SeekEnd); err != nil || f.about.Boot != s.boot || f.about.Length >= 0 && f.size > f.about.Length {
		f.about = about{}
	}
	if f.about.Boot == "" {
		err = f.restart(about{Length: -1})
	} else {
		err = nil
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close closes the file and lets it be opened again.
func (f *spoolFile) Close() error {
	defer f.spool.writers.Delete(f.id)
	return f.File.Close()
}

// restart drops what was fetched and begins another entity.
func (f *spoolFile) restart(a about) error {
	// What describes the bytes goes first: it must never stand beside others.
	if err := os.Remove(f.spool.path(f.id) + ".about"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.Seek(0, io.SeekStart)
	a.Boot = f.spool.boot
	f.about, f.size = a, 0
	return errors.Join(err, f.describe())
}

// describe writes down what the bytes belong to, whole or not at all.
func (f *spoolFile) describe() error {
	text, err := json.Marshal(f.about)
	if err != nil {
		return err
	}
	name := f.spool.path(f.id) + ".about"
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// discard forgets what was fetched; where that fails, the next try finds bytes
// that nothing describes and forgets them then.
func (f *spoolFile) discard() { _ = f.restart(about{Resource: f.about.Resource, Length: -1}) }

// Write adds bytes at the end.
func (f *spoolFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.size += int64(n)
	return n, err
}

// remove deletes an artifact's files.
func (s spool) remove(id pawl.ID) {
	_ = os.Remove(s.path(id))
	_ = os.Remove(s.path(id) + ".about")
}

// tidyStep is how many artifacts are asked for at once.
const tidyStep = 200

// tidy removes the files of artifacts that needed does not report.
func (s spool) tidy(needed func([]pawl.ID) (map[pawl.ID]bool, error)) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var ids []pawl.ID
	for _, e := range entries {
		if id, err := pawl.ParseID(pawl.PrefixArtifact, e.Name()); err == nil {
			ids = append(ids, id)
		}
	}
	for len(ids) > 0 {
		step := ids[:min(len(ids), tidyStep)]
		ids = ids[len(step):]
		kept, err := needed(step)
		if err != nil {
			return err
		}
		for _, id := range step {
			if _, busy := s.writers.Load(id); !busy && !kept[id] {
				s.remove(id)
			}
		}
	}
	return nil
}

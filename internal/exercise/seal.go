package exercise

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// The names of the files of a folder of receipts.
const (
	fileFixture   = "fixture.json"
	fileLedger    = "ledger.json"
	fileReceipt   = "execution-receipt.json"
	fileFailure   = "failure-receipt.json"
	fileChecksums = "checksums.json"
	fileArchive   = "exercise.zip"
	folderWire    = "wire"
)

// folder holds the files of a folder of receipts by their slashed names.
type folder map[string][]byte

// checksums is checksums.json.
type checksums struct {
	Files map[string]string `json:"files"`
}

// seal adds checksums.json and the archive: the first is about every file but
// those two, the second holds every file but itself.
func (f folder) seal() error {
	delete(f, fileArchive)
	sums, err := f.checksums()
	if err != nil {
		return err
	}
	f[fileChecksums] = sums
	f[fileArchive], err = f.archive()
	return err
}

func (f folder) checksums() ([]byte, error) {
	sums := checksums{Files: make(map[string]string)}
	for name, body := range f {
		if name != fileChecksums && name != fileArchive {
			sums.Files[name] = sha256Hex(body)
		}
	}
	return encode(sums) // maps are written in the order of their keys
}

// epoch is the time of every file in the archive: the earliest that the format
// knows.
var epoch = time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC)

// archive is deterministic: sorted names, one time, nothing compressed.
func (f folder) archive() ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if name == fileArchive {
			continue
		}
		h := &zip.FileHeader{Name: name, Method: zip.Store, Modified: epoch}
		h.SetMode(0o644)
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f[name]); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}

// write puts the files below dir, which exists and is empty.
func (f folder) write(dir string) error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, f[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Bounds of what is read of a folder.
const (
	maxFiles  = 20_000
	maxFolder = 1 << 30
)

// readFolder reads everything below dir. Whatever is neither a regular file nor
// the folder of the wire is an error: it would escape the checksums.
func readFolder(dir string) (folder, error) {
	f := make(folder)
	size := int64(0)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "." || name == folderWire):
			return nil
		case !d.Type().IsRegular():
			return errors.New(path.Clean(name) + ": does not belong in a folder of receipts")
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if size += info.Size(); size > maxFolder || len(f) >= maxFiles {
			return errors.New("it is too large for a folder of receipts")
		}
		file, err := root.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		f[name], err = io.ReadAll(io.LimitReader(file, maxFolder))
		return err
	})
	return f, err
}

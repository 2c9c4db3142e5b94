package capture

import (
	"compress/gzip"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/gcerrors"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Files is the blob store of captured files. It is safe for concurrent use.
type Files struct {
	bucket *blob.Bucket
	// dir is the folder of the files; empty where they are elsewhere.
	dir string
}

// OpenFolder opens a store that is a folder, which is made if it is missing.
func OpenFolder(dir string) (*Files, error) {
	// What is needed of a file is in the ledger, so that none has a second one
	// beside it; partial ones stand next to the whole ones, on the same disk.
	bucket, err := fileblob.OpenBucket(dir, &fileblob.Options{CreateDir: true, DirFileMode: 0o700, NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return nil, err
	}
	stranded(dir)
	return &Files{bucket: bucket, dir: dir}, nil
}

// stranded removes what a killed process left half written.
func stranded(dir string) {
	parts, err := filepath.Glob(filepath.Join(dir, pawl.PrefixArtifact+"_*.tmp"))
	if err != nil {
		return
	}
	for _, name := range parts {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(name)
		}
	}
}

// Close gives the store up.
func (f *Files) Close() error { return f.bucket.Close() }

// copied is what is known of a file once it is stored.
type copied struct {
	size        int64
	sum         ledger.Digest
	contentType string
}

// put stores a complete spool file under a key, in the form that is documented:
// without a content encoding. The error is a [*failure] if the file is not what
// the server declared.
func (f *Files) put(ctx context.Context, key string, file *spoolFile, limit int64) (copied, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return copied{}, err
	}
	sums := newSums(file.about)
	var from io.Reader = io.TeeReader(io.NewSectionReader(file, 0, file.size), sums)
	if file.about.Encoding == "gzip" {
		plain, err := gzip.NewReader(from)
		if err != nil {
			return copied{}, mismatch("the file is not in the encoding that the server says")
		}
		from = &inflated{plain}
	}
	// A canceled writer stores nothing.
	writing, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := f.bucket.NewWriter(writing, key, &blob.WriterOptions{ContentType: "application/octet-stream", BufferSize: f.part(file, limit), MaxConcurrency: 1})
	if err != nil {
		return copied{}, err
	}
	to := &digester{sum: sha256.New()}
	_, err = io.Copy(io.MultiWriter(w, to), io.LimitReader(from, limit+1))
	if err == nil && to.size > limit {
		err = refused("the file is larger than %d bytes", limit)
	}
	if err == nil {
		err = sums.check()
	}
	if err != nil {
		cancel()
		_ = w.Close()
		return copied{}, err
	}
	if err := w.Close(); err != nil {
		return copied{}, err
	}
	if err := f.sync(key); err != nil {
		return copied{}, err
	}
	out := copied{size: to.size, contentType: file.about.Type}
	to.sum.Sum(out.sum[:0])
	if out.contentType == "" || out.contentType == "application/octet-stream" {
		out.contentType = http.DetectContentType(to.head)
	}
	return out, nil
}

// inflated turns the errors of a broken encoding into ours.
type inflated struct{ *gzip.Reader }

// Read implements io.Reader.
func (r *inflated) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = mismatch("the file is not in the encoding that the server says")
	}
	return n, err
}

// digester sums what is stored and keeps its beginning.
type digester struct {
	sum  hash.Hash
	size int64
	head []byte
}

// Write implements io.Writer.
func (d *digester) Write(b []byte) (int, error) {
	if need := 512 - len(d.head); need > 0 {
		d.head = append(d.head, b[:min(need, len(b))]...)
	}
	d.size += int64(len(b))
	return d.sum.Write(b)
}

// sums holds what came over the wire against the digests that the server
// declared.
type sums struct {
	sha, md5         hash.Hash
	wantSHA, wantMD5 []byte
}

func newSums(a about) *sums { return &sums{sha256.New(), md5.New(), a.SHA256, a.MD5} }

// Write implements io.Writer.
func (s *sums) Write(b []byte) (int, error) {
	if s.wantSHA != nil {
		s.sha.Write(b)
	}
	if s.wantMD5 != nil {
		s.md5.Write(b)
	}
	return len(b), nil
}

func (s *sums) check() error {
	if s.wantSHA != nil && string(s.sha.Sum(nil)) != string(s.wantSHA) || s.wantMD5 != nil && string(s.md5.Sum(nil)) != string(s.wantMD5) {
		return mismatch("the file does not have the checksum that the server declared")
	}
	return nil
}

// sync makes sure that a file survives a power cut before the ledger says that
// it is captured.
func (f *Files) sync(key string) error {
	if f.dir == "" {
		return nil
	}
	for _, name := range [...]string{filepath.Join(f.dir, key), f.dir} {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		err = errors.Join(file.Sync(), file.Close())
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *Files) remove(ctx context.Context, key string) { _ = f.bucket.Delete(ctx, key) }

// open gives a stored file; false where there is none.
func (f *Files) open(ctx context.Context, key string) (*blob.Reader, bool, error) {
	r, err := f.bucket.NewReader(ctx, key, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, false, nil
	}
	return r, err == nil, err
}

package capture

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"gocloud.dev/blob"
	// Each of these opens the URLs of one vendor, or of the process's memory.
	_ "gocloud.dev/blob/azureblob"
	_ "gocloud.dev/blob/memblob"
	_ "gocloud.dev/blob/s3blob"
)

// OpenBucket opens a store by its URL, such as s3://NAME?region=eu-west-1. Which
// credentials are used is the vendor's matter: those of the environment, or of
// the machine. Nothing is asked of the vendor yet. The error names the kinds of
// URLs that this program knows.
func OpenBucket(ctx context.Context, address string) (*Files, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the URL cannot be read; write one such as s3://NAME?region=eu-west-1")
	}
	if mux := blob.DefaultURLMux(); !mux.ValidBucketScheme(u.Scheme) {
		known := append(mux.BucketSchemes(), "file")
		slices.Sort(known)
		return nil, fmt.Errorf("%s:// is not compiled into this program, which knows %s; gs:// needs a build with -tags clouds",
			u.Scheme, strings.Join(slices.Compact(known), ", "))
	}
	bucket, err := blob.DefaultURLMux().OpenBucketURL(ctx, u)
	if err != nil {
		return nil, err
	}
	return &Files{bucket: bucket}, nil
}

// The bounds of a part of a file, in bytes. A folder gets small ones, which is
// all the memory that a file takes; vendors ask for 5 MiB or more, and take no
// more than 10,000 of a file.
const (
	folderPart = 256 << 10
	bucketPart = 8 << 20
	maxParts   = 10_000
)

// part is how much of a file is held at once, in bytes; limit bounds what the file
// has once it is unpacked.
func (f *Files) part(file *spoolFile, limit int64) int {
	if f.dir != "" {
		return folderPart
	}
	size := file.size
	if file.about.Encoding != "" {
		size = limit
	}
	return int(max(bucketPart, (size+maxParts-1)/maxParts))
}

package capture

import (
	"context"
	"io"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/pawlhq/pawl"
)

// Remove deletes every copy of a result file, whatever lease it was made under,
// and what was fetched of it. There may be none.
func (c *Capturer) Remove(ctx context.Context, artifact pawl.ID) error {
	c.spool.remove(artifact)
	return c.o.Files.removeAll(ctx, artifact)
}

func (f *Files) removeAll(ctx context.Context, artifact pawl.ID) error {
	all := f.bucket.List(&blob.ListOptions{Prefix: artifact.Text(pawl.PrefixArtifact) + "-"})
	for {
		object, err := all.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = f.bucket.Delete(ctx, object.Key)
		}
		if err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return err
		}
	}
}

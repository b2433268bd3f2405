package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// Verify reads the whole bundle, several entries at the same time, and compares every entry with its digest. The error
// is an *AlteredError that names every entry that differs, ctx's when it ends first, or the file system's.
func (b *Bundle) Verify(ctx context.Context) error {
	return b.verify(ctx, func(Entry) bool { return true })
}

// verify does that for some entries.
func (b *Bundle) verify(ctx context.Context, concerns func(Entry) bool) error {
	bad := make([]bool, len(b.index.Entries))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for n, e := range b.index.Entries {
		if !concerns(e) {
			continue
		}
		group.Go(func() error {
			ok, err := b.intact(ctx, e)
			bad[n] = !ok
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("verify bundle %s: %w", b.path, err)
	}
	out := &AlteredError{Path: b.path}
	for n, e := range b.index.Entries {
		if bad[n] {
			out.Entries = append(out.Entries, e.Name()+" ("+e.Holds+")")
		}
	}
	if len(out.Entries) > 0 {
		return out
	}
	return nil
}

// intact hashes one entry, and looks at the padding behind it.
func (b *Bundle) intact(ctx context.Context, e Entry) (bool, error) {
	at := b.offsets[e.SHA256]
	hash := sha256.New()
	if _, err := io.Copy(hash, until(ctx, io.NewSectionReader(b.file, at.offset, at.size))); err != nil {
		return false, err
	}
	end := at.offset + at.size
	if clean, err := b.zero(end, padded(at.size)-at.size); err != nil || !clean {
		return false, err
	}
	return hex.EncodeToString(hash.Sum(nil)) == e.SHA256, nil
}

// until is a reader that ends with ctx.
func until(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

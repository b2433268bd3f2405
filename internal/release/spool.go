package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"golang.org/x/sync/errgroup"
	"io"
	"os"
	"runtime"
	"sync"
	"time"
)

// window is how many entries are fetched in parallel, and kept on disk until they are written.
const window = 8

// spool fetches contents in parallel into unnamed files and hands them over in order.
type spool struct {
	dir      string
	pause    time.Duration
	contents []content
	count    func(bytes int64)
}

// forEach calls use with every content in order, its file at the beginning. Only verified content reaches use.
func (s *spool) forEach(ctx context.Context, use func(content, io.Reader) error) error {
	slots := make([]chan *os.File, len(s.contents))
	for n := range slots {
		slots[n] = make(chan *os.File, 1)
	}
	tickets := make(chan struct{}, window)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.fetchAll(ctx, group, tickets, slots) })
	group.Go(func() error {
		for n, c := range s.contents {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case file := <-slots[n]:
				err := use(c, file)
				_ = file.Close()
				if err != nil {
					return err
				}
				<-tickets
			}
		}
		return nil
	})
	err := group.Wait()
	closeUnread(slots)
	return err
}

// fetchAll starts fetches while the window has room.
func (s *spool) fetchAll(ctx context.Context, group *errgroup.Group, tickets chan<- struct{},
	slots []chan *os.File) error {
	for n, c := range s.contents {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case tickets <- struct{}{}:
		}
		group.Go(func() error {
			file, err := s.fetchContent(ctx, c)
			if err != nil {
				return fmt.Errorf("fetch %s (sha256 %s): %w", c.Holds, c.SHA256, err)
			}
			slots[n] <- file
			return nil
		})
	}
	return nil
}

// closeUnread closes the remaining files.
func closeUnread(slots []chan *os.File) {
	for _, slot := range slots {
		select {
		case file := <-slot:
			_ = file.Close()
		default:
		}
	}
}

// fetchContent fetches and checks one content in an unnamed file, which is deleted when the caller closes it.
func (s *spool) fetchContent(ctx context.Context, c content) (*os.File, error) {
	file, err := os.CreateTemp(s.dir, "part-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // if the system refuses it, the spool's directory is removed at the end
	err = tryAgain(ctx, s.pause, func() error { return s.downloadInto(ctx, c, file) })
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// downloadInto fills the file from its beginning.
func (s *spool) downloadInto(ctx context.Context, c content, file *os.File) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	body, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	hash := sha256.New()
	counted := &counter{count: s.count}
	n, err := io.Copy(io.MultiWriter(file, hash, counted), io.LimitReader(body, c.Size+1))
	if err == nil {
		err = c.checkFetched(n, hex.EncodeToString(hash.Sum(nil)))
	}
	if err != nil {
		s.count(-counted.sum)
	}
	return err
}

// checkFetched compares fetched content with its entry. A short answer may be complete the next time.
func (e Entry) checkFetched(size int64, sum string) error {
	switch {
	case size < e.Size:
		return fmt.Errorf("%d of %d bytes: %w", size, e.Size, io.ErrUnexpectedEOF)
	case size > e.Size || sum != e.SHA256:
		return &DigestError{What: e.Holds, Has: sum, Wants: e.SHA256}
	}
	return nil
}

// counter reports bytes as they pass.
type counter struct {
	sum   int64
	count func(int64)
}

func (c *counter) Write(p []byte) (int, error) {
	c.sum += int64(len(p))
	c.count(int64(len(p)))
	return len(p), nil
}

// tally turns bytes and entries into Progress, one call at a time.
type tally struct {
	mu     sync.Mutex
	now    Progress
	report func(Progress)
}

func (t *tally) addBytes(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Bytes += n
	t.tellProgress("")
}

func (t *tally) beginEntry(holds string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Entries++
	t.tellProgress(holds)
}

func (t *tally) tellProgress(done string) {
	if t.report == nil {
		return
	}
	p := t.now
	p.Done = done
	t.report(p)
}

// Verify reads the whole bundle, several entries in parallel, and compares every entry with its digest. The error is an
// *AlteredError that lists every entry that differs, ctx's if it ends first, or the file system's.
func (b *Bundle) Verify(ctx context.Context) error {
	return b.verifyEntries(ctx, func(Entry) bool { return true })
}

// verifyEntries does that for the selected entries.
func (b *Bundle) verifyEntries(ctx context.Context, concerns func(Entry) bool) error {
	bad := make([]bool, len(b.index.Entries))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for n, e := range b.index.Entries {
		if !concerns(e) {
			continue
		}
		group.Go(func() error {
			ok, err := b.verifyEntry(ctx, e)
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

// verifyEntry hashes one entry and checks the padding after it.
func (b *Bundle) verifyEntry(ctx context.Context, e Entry) (bool, error) {
	at := b.offsets[e.SHA256]
	hash := sha256.New()
	if _, err := io.Copy(hash, withContext(ctx, io.NewSectionReader(b.file, at.offset, at.size))); err != nil {
		return false, err
	}
	end := at.offset + at.size
	if clean, err := b.expectZeros(end, paddedSize(at.size)-at.size); err != nil || !clean {
		return false, err
	}
	return hex.EncodeToString(hash.Sum(nil)) == e.SHA256, nil
}

// withContext returns a reader that ends with ctx.
func withContext(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

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

// maxSpooled is the maximum number of entries that are being fetched or wait on disk to be written.
const maxSpooled = 8

// spool fetches contents in parallel into unnamed temporary files, and returns them in order.
type spool struct {
	dir      string
	pause    time.Duration
	contents []content
	count    func(bytes int64)
}

// forEach calls use for each content in order, with a reader for its verified data.
func (s *spool) forEach(ctx context.Context, use func(content, io.Reader) error) error {
	slots := make([]chan *os.File, len(s.contents))
	for n := range slots {
		slots[n] = make(chan *os.File, 1)
	}
	tickets := make(chan struct{}, maxSpooled)
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

// fetchAll starts a fetch for each content, with at most maxSpooled at a time.
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

// closeUnread closes the files that were fetched but not used.
func closeUnread(slots []chan *os.File) {
	for _, slot := range slots {
		select {
		case file := <-slot:
			_ = file.Close()
		default:
		}
	}
}

// fetchContent fetches and verifies one content into an unnamed file. The file is deleted when the caller closes it.
func (s *spool) fetchContent(ctx context.Context, c content) (*os.File, error) {
	file, err := os.CreateTemp(s.dir, "part-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // on failure, the file is removed with the directory
	err = retryTransient(ctx, s.pause, func() error { return s.downloadInto(ctx, c, file) })
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// downloadInto replaces the content of the file with a verified download.
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
	counted := &byteCounter{count: s.count}
	n, err := io.Copy(io.MultiWriter(file, hash, counted), io.LimitReader(body, c.Size+1))
	if err == nil {
		err = c.checkFetched(n, hex.EncodeToString(hash.Sum(nil)))
	}
	if err != nil {
		s.count(-counted.sum)
	}
	return err
}

// checkFetched compares fetched content with its entry. If the content is too short, the error is transient, because
// another attempt may be complete.
func (e Entry) checkFetched(size int64, sum string) error {
	switch {
	case size < e.Size:
		return fmt.Errorf("%d of %d bytes: %w", size, e.Size, io.ErrUnexpectedEOF)
	case size > e.Size || sum != e.SHA256:
		return &DigestError{What: e.Holds, Has: sum, Wants: e.SHA256}
	}
	return nil
}

// byteCounter calls count with the number of bytes in each write.
type byteCounter struct {
	sum   int64
	count func(int64)
}

func (c *byteCounter) Write(p []byte) (int, error) {
	c.sum += int64(len(p))
	c.count(int64(len(p)))
	return len(p), nil
}

// progressReporter calls callback with the progress after each change, one call at a time.
type progressReporter struct {
	mu       sync.Mutex
	now      Progress
	callback func(Progress)
}

func (t *progressReporter) addBytes(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Bytes += n
	t.callBack("")
}

func (t *progressReporter) addEntry(holds string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Entries++
	t.callBack(holds)
}

func (t *progressReporter) callBack(done string) {
	if t.callback == nil {
		return
	}
	p := t.now
	p.Done = done
	t.callback(p)
}

// Verify reads the whole bundle, several entries in parallel, and compares each entry with its digest. The error is an
// *AlteredError that lists every altered entry, ctx's error if ctx ended, or one from the file system.
func (b *Bundle) Verify(ctx context.Context) error {
	return b.verifyEntries(ctx, func(Entry) bool { return true })
}

// verifyEntries is like Verify, but reads only the selected entries.
func (b *Bundle) verifyEntries(ctx context.Context, selected func(Entry) bool) error {
	altered := make([]bool, len(b.index.Entries))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for n, e := range b.index.Entries {
		if !selected(e) {
			continue
		}
		group.Go(func() error {
			ok, err := b.verifyEntry(ctx, e)
			altered[n] = !ok
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("verify bundle %s: %w", b.path, err)
	}
	out := &AlteredError{Path: b.path}
	for n, e := range b.index.Entries {
		if altered[n] {
			out.Entries = append(out.Entries, e.Name()+" ("+e.Holds+")")
		}
	}
	if len(out.Entries) > 0 {
		return out
	}
	return nil
}

// verifyEntry reports whether an entry has its digest and is padded with zeros.
func (b *Bundle) verifyEntry(ctx context.Context, e Entry) (bool, error) {
	at := b.offsets[e.SHA256]
	hash := sha256.New()
	if _, err := io.Copy(hash, withContext(ctx, io.NewSectionReader(b.file, at.offset, at.size))); err != nil {
		return false, err
	}
	end := at.offset + at.size
	if clean, err := b.hasOnlyZeros(end, paddedSize(at.size)-at.size); err != nil || !clean {
		return false, err
	}
	return hex.EncodeToString(hash.Sum(nil)) == e.SHA256, nil
}

// withContext returns a reader that fails when ctx ends.
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

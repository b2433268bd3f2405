package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// window is how many entries are fetched at the same time, and kept on disk until it is their turn to be written.
const window = 8

// spool fetches contents in parallel into unnamed files and hands them over in order.
type spool struct {
	dir      string
	pause    time.Duration
	contents []content
	count    func(bytes int64)
}

// each calls use with every content in order, its file at the beginning. Nothing unverified reaches use.
func (s *spool) each(ctx context.Context, use func(content, io.Reader) error) error {
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
	drain(slots)
	return err
}

// fetchAll starts a fetch whenever the window has room.
func (s *spool) fetchAll(ctx context.Context, group *errgroup.Group, tickets chan<- struct{},
	slots []chan *os.File) error {
	for n, c := range s.contents {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case tickets <- struct{}{}:
		}
		group.Go(func() error {
			file, err := s.fetch(ctx, c)
			if err != nil {
				return fmt.Errorf("fetch %s (sha256 %s): %w", c.Holds, c.SHA256, err)
			}
			slots[n] <- file
			return nil
		})
	}
	return nil
}

// drain closes files that nobody took.
func drain(slots []chan *os.File) {
	for _, slot := range slots {
		select {
		case file := <-slot:
			_ = file.Close()
		default:
		}
	}
}

// fetch brings one content into an unnamed file and checks it. The caller closes the file, and it is gone.
func (s *spool) fetch(ctx context.Context, c content) (*os.File, error) {
	file, err := os.CreateTemp(s.dir, "part-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // where the system refuses that, the spool's directory is removed at the end
	err = tryAgain(ctx, s.pause, func() error { return s.download(ctx, c, file) })
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// download fills the file from its beginning.
func (s *spool) download(ctx context.Context, c content, file *os.File) error {
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
		err = c.check(n, hex.EncodeToString(hash.Sum(nil)))
	}
	if err != nil {
		s.count(-counted.sum)
	}
	return err
}

// check compares what was fetched with what the entry promises. A short answer may be complete the next time.
func (e Entry) check(size int64, sum string) error {
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

func (t *tally) bytes(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Bytes += n
	t.tell("")
}

func (t *tally) entry(holds string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Entries++
	t.tell(holds)
}

func (t *tally) tell(done string) {
	if t.report == nil {
		return
	}
	p := t.now
	p.Done = done
	t.report(p)
}

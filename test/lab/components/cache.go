package components

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Cache is the directory for everything that is made once: binaries, images, the base file system, bundles. Entries
// appear atomically by rename. Several processes may use one cache at the same time.
type Cache struct {
	root string
}

// DefaultCache returns $KUBEONE_LAB_CACHE, or ~/.cache/kubeone-lab.
func DefaultCache() (Cache, error) {
	if dir := os.Getenv("KUBEONE_LAB_CACHE"); dir != "" {
		abs, err := filepath.Abs(dir)
		return Cache{abs}, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return Cache{}, fmt.Errorf("find the lab's cache directory: %w", err)
	}
	return Cache{filepath.Join(home, ".cache", "kubeone-lab")}, nil
}

// NewCache uses dir, which need not exist.
func NewCache(dir string) Cache { return Cache{dir} }

// Path joins elements to the cache's root.
func (c Cache) Path(elem ...string) string {
	return filepath.Join(append([]string{c.root}, elem...)...)
}

// Entry returns the directory kind/key. If it does not exist, fill writes its content into an empty directory, which is
// then renamed. Only one process fills a kind/key at a time; the others wait for the result.
func (c Cache) Entry(ctx context.Context, kind, key string, fill func(dir string) error) (string, error) {
	final := c.Path(kind, key)
	if fileExists(final) {
		return final, nil
	}
	unlock, err := c.Lock(ctx, kind+"-"+key)
	if err != nil {
		return "", err
	}
	defer unlock()
	if fileExists(final) {
		return final, nil
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return "", fmt.Errorf("cache %s/%s: %w", kind, key, err)
	}
	temp := c.Path(kind, "."+key+".tmp")
	if err := os.RemoveAll(temp); err != nil {
		return "", fmt.Errorf("cache %s/%s: %w", kind, key, err)
	}
	if err := os.Mkdir(temp, 0o755); err != nil {
		return "", fmt.Errorf("cache %s/%s: %w", kind, key, err)
	}
	defer os.RemoveAll(temp)
	if err := fill(temp); err != nil {
		return "", fmt.Errorf("%s %s: %w", kind, key, err)
	}
	if err := os.Rename(temp, final); err != nil {
		return "", fmt.Errorf("cache %s/%s: %w", kind, key, err)
	}
	return final, nil
}

// Lock takes the named lock of this cache for this process, and waits until ctx ends. The kernel releases the lock when
// the process ends.
func (c Cache) Lock(ctx context.Context, name string) (unlock func(), err error) {
	dir := c.Path("locks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("lock %s is held by another process: %w", name, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"io"
	"kubeone/internal/model/desired"
	"kubeone/internal/retry"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// How long digests stay valid; see Source.CacheDir.
const (
	mirrorLifetime = time.Hour
	absentLifetime = 24 * time.Hour
)

// The ways to fetch files and images. An answer that was fetched in one way never serves another.
const (
	wayOfficial  = "official"
	wayElsewhere = "elsewhere"
	wayInsecure  = "insecure"
)

// record is a cached answer for one file or image.
type record struct {
	Key    string `json:"key"`              // way and location
	Digest string `json:"digest,omitempty"` // hex of a file, "sha256:…" of an image
	Size   int64  `json:"size,omitempty"`
	Absent bool   `json:"absent,omitempty"` // the source has no such file
}

// cache is a directory of records, each under the hash of its key. Records that cannot be read or written count as
// missing. Several processes may share a directory.
type cache struct {
	dir string
}

func (c cache) recordPath(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(c.dir, hex.EncodeToString(sum[:])+".json")
}

// getRecord returns the record for key if it is younger than lifetime; 0 means at any age.
func (c cache) getRecord(key string, lifetime time.Duration) (record, bool) {
	if c.dir == "" {
		return record{}, false
	}
	info, err := os.Stat(c.recordPath(key))
	if err != nil {
		return record{}, false
	}
	text, err := os.ReadFile(c.recordPath(key))
	var r record
	if err != nil || json.Unmarshal(text, &r) != nil || r.Key != key {
		return record{}, false
	}
	age := time.Since(info.ModTime())
	if (lifetime > 0 && age > lifetime) || (r.Absent && age > absentLifetime) {
		return record{}, false
	}
	return r, true
}

// putRecord stores a record atomically.
func (c cache) putRecord(r record) {
	if c.dir == "" {
		return
	}
	text, err := json.Marshal(r)
	if err != nil || os.MkdirAll(c.dir, 0o755) != nil { //nolint:gosec // what is published anyway
		return
	}
	temp, err := os.CreateTemp(c.dir, ".record-*")
	if err != nil {
		return
	}
	_, writeErr := temp.Write(text)
	if temp.Close() != nil || writeErr != nil || os.Rename(temp.Name(), c.recordPath(r.Key)) != nil {
		_ = os.Remove(temp.Name())
	}
}

// shelf is the library ordered for one request: the bundles of the desired architecture, those of the desired
// Kubernetes version first, otherwise in the order in which they were opened.
type shelf struct {
	home  []desired.Artifacts // of the desired Kubernetes version
	other []desired.Artifacts
}

func (l *Library) shelfFor(want Want) shelf {
	var s shelf
	for _, b := range l.bundles {
		switch {
		case b.index.Arch != want.Arch:
		case b.index.KubernetesVersion == want.KubernetesVersion:
			s.home = append(s.home, b.index.Artifacts)
		default:
			s.other = append(s.other, b.index.Artifacts)
		}
	}
	return s
}

// findPart returns the part with exactly the desired version. If any version will do, it returns the one from a bundle
// of the desired Kubernetes version.
func findPart[T any](s shelf, parts func(desired.Artifacts) []T, same, named func(T) bool, exact bool) (T, bool) {
	in := func(bundles []desired.Artifacts, fits func(T) bool) (T, bool) {
		for _, a := range bundles {
			if i := slices.IndexFunc(parts(a), fits); i >= 0 {
				return parts(a)[i], true
			}
		}
		var none T
		return none, false
	}
	if part, ok := in(s.home, same); ok {
		return part, true
	}
	if !exact {
		if part, ok := in(s.home, named); ok {
			return part, true
		}
	}
	return in(s.other, same)
}

func (s shelf) binaryFor(f file) (desired.Binary, bool) {
	named := func(b desired.Binary) bool { return b.Name == f.name }
	same := func(b desired.Binary) bool { return named(b) && b.Version == f.version }
	return findPart(s, func(a desired.Artifacts) []desired.Binary { return a.Binaries }, same, named, f.exact)
}

func (s shelf) imageFor(i image) (desired.Image, bool) {
	same := func(have desired.Image) bool { return have.Name == i.officialName() }
	named := func(have desired.Image) bool { return strings.HasPrefix(have.Name, i.registry+"/"+i.repository+":") }
	return findPart(s, func(a desired.Artifacts) []desired.Image { return a.Images }, same, named, i.exact)
}

// attempts is how often an operation is tried that fails transiently.
const attempts = 3

// statusError is an HTTP answer other than 200.
type statusError struct {
	URL  string
	Code int
}

func (e *statusError) Error() string {
	if e.Code == http.StatusNotFound {
		return fmt.Sprintf("%s does not exist (HTTP 404)", e.URL)
	}
	return fmt.Sprintf("%s answers HTTP %d %s", e.URL, e.Code, http.StatusText(e.Code))
}

// isTransient reports whether the same request may soon succeed.
func isTransient(err error) bool {
	var status *statusError
	var registry *transport.Error
	var dns *net.DNSError
	var op *net.OpError
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &status):
		return status.Code == http.StatusTooManyRequests || status.Code >= 500
	case errors.As(err, &registry):
		return registry.StatusCode == http.StatusTooManyRequests || registry.StatusCode >= 500
	case errors.As(err, &dns):
		return dns.IsTemporary && !dns.IsNotFound
	case errors.As(err, &op) && op.Op == "dial":
		return false // the kernel has already tried several times
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, io.EOF):
		return true
	}
	return errors.As(err, &network) && network.Timeout()
}

// tryAgain retries transient failures, up to three attempts; the pause grows fourfold with each failure.
func tryAgain(ctx context.Context, pause time.Duration, try func() error) error {
	passing := func(err error) bool { return ctx.Err() == nil && isTransient(err) }
	policy := retry.Policy{Transient: passing, Attempts: attempts, First: pause, Factor: 4}
	return policy.Do(ctx, func(context.Context) error { return try() })
}

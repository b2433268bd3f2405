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

// How long cached digests are valid; see Source.CacheDir.
const (
	mirrorLifetime = time.Hour
	absentLifetime = 24 * time.Hour
)

// The ways to fetch files and images. They are part of cache keys, so an answer is reused only if it would be fetched
// the same way.
const (
	fetchOfficial  = "official"
	fetchElsewhere = "elsewhere"
	fetchInsecure  = "insecure"
)

// record is a cached answer for one file or image.
type record struct {
	Key    string `json:"key"`              // how it was fetched, and the location
	Digest string `json:"digest,omitempty"` // hex for a file, "sha256:…" for an image
	Size   int64  `json:"size,omitempty"`
	Absent bool   `json:"absent,omitempty"` // the file does not exist at the source
}

// cache is a directory of records, with file names derived from their keys. A record that cannot be read counts as
// missing, and a failure to write is ignored. Several processes can share a directory.
type cache struct {
	dir string
}

func (c cache) recordPath(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(c.dir, hex.EncodeToString(sum[:])+".json")
}

// getRecord returns the record for key unless it is older than lifetime; a lifetime of 0 accepts any age.
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

// putRecord writes a record atomically.
func (c cache) putRecord(r record) {
	if text, err := json.Marshal(r); err == nil {
		c.writeFile(c.recordPath(r.Key), text)
	}
}

// writeFile writes a file atomically, and ignores failures.
func (c cache) writeFile(path string, text []byte) {
	if c.dir == "" || os.MkdirAll(c.dir, 0o755) != nil { //nolint:gosec // what is published is not secret
		return
	}
	temp, err := os.CreateTemp(c.dir, ".record-*")
	if err != nil {
		return
	}
	_, writeErr := temp.Write(text)
	if temp.Close() != nil || writeErr != nil || os.Rename(temp.Name(), path) != nil {
		_ = os.Remove(temp.Name())
	}
}

// searchOrder holds the bundles for the desired architecture in the order in which to search them: first those for the
// desired Kubernetes version, then all others, each in the order in which they were opened.
type searchOrder struct {
	matching []desired.Artifacts // for the desired Kubernetes version
	others   []desired.Artifacts
}

func (l *Library) searchOrderFor(want Want) searchOrder {
	var s searchOrder
	for _, b := range l.bundles {
		switch {
		case b.index.Arch != want.Arch:
		case b.index.KubernetesVersion == want.KubernetesVersion:
			s.matching = append(s.matching, b.index.Artifacts)
		default:
			s.others = append(s.others, b.index.Artifacts)
		}
	}
	return s
}

// findPart returns the part with the desired version from any bundle. Unless exact is set, a part with another version
// from a bundle for the desired Kubernetes version takes precedence over bundles for other versions.
func findPart[T any](s searchOrder, parts func(desired.Artifacts) []T, hasVersion, hasName func(T) bool,
	exact bool) (T, bool) {
	findIn := func(bundles []desired.Artifacts, fits func(T) bool) (T, bool) {
		for _, a := range bundles {
			if i := slices.IndexFunc(parts(a), fits); i >= 0 {
				return parts(a)[i], true
			}
		}
		var none T
		return none, false
	}
	if part, ok := findIn(s.matching, hasVersion); ok {
		return part, true
	}
	if !exact {
		if part, ok := findIn(s.matching, hasName); ok {
			return part, true
		}
	}
	return findIn(s.others, hasVersion)
}

func (s searchOrder) binaryFor(f file) (desired.Binary, bool) {
	hasName := func(b desired.Binary) bool { return b.Name == f.name }
	hasVersion := func(b desired.Binary) bool { return hasName(b) && b.Version == f.version }
	return findPart(s, func(a desired.Artifacts) []desired.Binary { return a.Binaries }, hasVersion, hasName, f.exact)
}

func (s searchOrder) imageFor(i image) (desired.Image, bool) {
	hasVersion := func(have desired.Image) bool { return have.Name == i.officialName() }
	hasName := func(have desired.Image) bool { return strings.HasPrefix(have.Name, i.registry+"/"+i.repository+":") }
	return findPart(s, func(a desired.Artifacts) []desired.Image { return a.Images }, hasVersion, hasName, i.exact)
}

// maxAttempts is the maximum number of attempts for an operation that fails transiently.
const maxAttempts = 3

// statusError is an HTTP status other than 200.
type statusError struct {
	URL  string
	Code int
}

func (e *statusError) Error() string {
	if e.Code == http.StatusNotFound {
		return fmt.Sprintf("%s does not exist (HTTP 404)", e.URL)
	}
	return fmt.Sprintf("%s returned HTTP %d %s", e.URL, e.Code, http.StatusText(e.Code))
}

// isTransient reports whether the same request may succeed if it is soon repeated.
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
		return false // the kernel already retried
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, io.EOF):
		return true
	}
	return errors.As(err, &network) && network.Timeout()
}

// retryTransient retries transient failures, with up to three attempts. The pause quadruples after each failure.
func retryTransient(ctx context.Context, pause time.Duration, try func() error) error {
	transient := func(err error) bool { return ctx.Err() == nil && isTransient(err) }
	policy := retry.Policy{Transient: transient, Attempts: maxAttempts, First: pause, Factor: 4}
	return policy.Do(ctx, func(context.Context) error { return try() })
}

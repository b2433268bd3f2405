package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// How long digests are believed; see Source.CacheDir.
const (
	mirrorLifetime = time.Hour
	absentLifetime = 24 * time.Hour
)

// The ways in which files and images are fetched. What was fetched in one way is never the answer for another.
const (
	wayOfficial  = "official"
	wayElsewhere = "elsewhere"
	wayInsecure  = "insecure"
)

// record is what is kept of one file or image.
type record struct {
	Key    string `json:"key"`              // the way, and the location
	Digest string `json:"digest,omitempty"` // hex of a file, "sha256:…" of an image
	Size   int64  `json:"size,omitempty"`
	Absent bool   `json:"absent,omitempty"` // the source has no such file
}

// cache is a directory of records, each under the hash of its key. It is a convenience: what cannot be read or written
// is as if it were not there. Several processes may use one directory.
type cache struct {
	dir string
}

func (c cache) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(c.dir, hex.EncodeToString(sum[:])+".json")
}

// get returns the record for key if it is younger than lifetime; 0 means at any age.
func (c cache) get(key string, lifetime time.Duration) (record, bool) {
	if c.dir == "" {
		return record{}, false
	}
	info, err := os.Stat(c.path(key))
	if err != nil {
		return record{}, false
	}
	text, err := os.ReadFile(c.path(key))
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

// put keeps a record; it appears complete or not at all.
func (c cache) put(r record) {
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
	if temp.Close() != nil || writeErr != nil || os.Rename(temp.Name(), c.path(r.Key)) != nil {
		_ = os.Remove(temp.Name())
	}
}

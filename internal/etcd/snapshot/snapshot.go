// Package snapshot reads and checks etcd snapshots. A snapshot is a bbolt database followed by its sha256.
//
// A snapshot is valid if its size matches that stated in the database, its checksum is correct, and its database is a
// consistent etcd database. Verifying it returns an Info: revision, keys, members and cluster. Snapshots contain the
// Secrets of the cluster. This package writes them only to the given file, with mode 0600.
package snapshot

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Info describes a verified snapshot.
type Info struct {
	SHA256   string `json:"sha256"`   // hex, of the whole file, as sha256sum prints it
	Size     int64  `json:"size"`     // bytes of the whole file
	Revision int64  `json:"revision"` // of the last change
	Keys     int    `json:"keys"`     // existing at that revision, without deleted ones
	// ClusterID is the UID of the namespace kube-system, the identity of a Kubernetes cluster. It is "" if the
	// snapshot lacks that namespace or stores it encrypted.
	ClusterID string `json:"clusterID,omitempty"`
	// CA is the certificate of the cluster CA, in PEM; nil if unknown.
	CA      []byte   `json:"-"`
	Version string   `json:"version,omitempty"` // of etcd's storage: "3.6.0"; "" before etcd 3.6
	Members []Member `json:"members,omitempty"` // etcd's members at that time, by ID
}

// Member is an etcd member in a snapshot.
type Member struct {
	ID       string   `json:"id"` // hex
	Name     string   `json:"name,omitempty"`
	PeerURLs []string `json:"peerURLs,omitempty"`
	Learner  bool     `json:"learner,omitempty"`
}

// Errors about a snapshot file, for errors.Is.
var (
	ErrEmpty       = errors.New("it is empty")
	ErrTruncated   = errors.New("it is truncated")
	ErrAltered     = errors.New("it was altered: it does not match its own checksum")
	ErrNotSnapshot = errors.New("it is not a snapshot of etcd")
	ErrNoChecksum  = errors.New("it is a database copied from a member's directory, not a snapshot: " +
		"it has no checksum")
	ErrInconsistent = errors.New("its checksum is correct, but its database is damaged: it was already damaged in the " +
		"etcd member")
	ErrOtherCluster = errors.New("it belongs to another cluster")
)

// SumSize is the number of bytes of the checksum after the database.
const SumSize = 32

// Verify reads and checks a whole snapshot. It changes nothing. Its errors name the file and wrap one of the errors
// above.
func Verify(path string) (Info, error) {
	f, err := os.Open(path) // #nosec G304 -- the operator names it
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := VerifyFile(f)
	if err != nil {
		return Info{}, fmt.Errorf("snapshot %s cannot be used: %w", path, err)
	}
	return info, nil
}

// VerifyFile does the same as Verify for an open file, at any offset. The file needs no name, but it must be possible
// to map it into memory.
func VerifyFile(f *os.File) (Info, error) {
	stat, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	if stat.IsDir() {
		return Info{}, fmt.Errorf("%w: it is a directory", ErrNotSnapshot)
	}
	if err := checkSize(f, stat.Size()); err != nil {
		return Info{}, err
	}
	sum, err := checkSum(f, stat.Size())
	if err != nil {
		return Info{}, err
	}
	info, err := readDatabase(f)
	info.SHA256, info.Size = sum, stat.Size()
	return info, err
}

// OfCluster returns an error that wraps ErrOtherCluster unless the snapshot belongs to the cluster whose namespace
// kube-system has that UID. If either UID is unknown (""), it returns nil.
func (i Info) OfCluster(id string) error {
	if id == "" || i.ClusterID == "" || id == i.ClusterID {
		return nil
	}
	return fmt.Errorf("%w: the UID of its namespace kube-system is %s, in this cluster it is %s", ErrOtherCluster,
		i.ClusterID, id)
}

// FileName returns the name of a snapshot kept on a host: the member's name, the time in UTC, and the reason
// ("scheduled", "upgrade", "by-hand").
func FileName(member string, at time.Time, reason string) string {
	return member + "-" + at.UTC().Format("20060102T150405Z") + "-" + reason + ".db"
}

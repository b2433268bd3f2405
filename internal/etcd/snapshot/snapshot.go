// Package snapshot knows the files that etcd's snapshots are: one database of bbolt, followed by the sha256 of it.
//
// A snapshot is believed only after it was read: its size is the one that the database itself states, its checksum is
// right, the database is consistent, and it is etcd's. What is found on the way (revision, keys, members, whose cluster
// it is) is its Info. Snapshots hold the cluster's Secrets: nothing here writes one anywhere but where it was told to,
// with mode 0600.
package snapshot

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Info is what a verified snapshot says about itself.
type Info struct {
	SHA256   string `json:"sha256"`   // hex, of the whole file, as sha256sum prints it
	Size     int64  `json:"size"`     // bytes of the whole file
	Revision int64  `json:"revision"` // of the last change in it
	Keys     int    `json:"keys"`     // that exist at that revision; deleted ones do not count
	// ClusterID is the UID of the namespace kube-system, which is the identity of a Kubernetes cluster; "" where the
	// snapshot does not tell: there is no such namespace in it, or it is encrypted.
	ClusterID string `json:"clusterID,omitempty"`
	// certificate of the Kubernetes cluster's CA, PEM; nil where the snapshot does not tell
	CA      []byte   `json:"-"`
	Version string   `json:"version,omitempty"` // of etcd's storage: "3.6.0"; "" before etcd 3.6
	Members []Member `json:"members,omitempty"` // of etcd when it was taken, by ID
}

// Member is a member of etcd as the snapshot has it.
type Member struct {
	ID       string   `json:"id"` // hex
	Name     string   `json:"name,omitempty"`
	PeerURLs []string `json:"peerURLs,omitempty"`
	Learner  bool     `json:"learner,omitempty"`
}

// What can be wrong with a file, for errors.Is.
var (
	ErrEmpty       = errors.New("it is empty")
	ErrTruncated   = errors.New("it is truncated")
	ErrAltered     = errors.New("it was altered: it does not match its own checksum")
	ErrNotSnapshot = errors.New("it is not a snapshot of etcd")
	ErrNoChecksum  = errors.New("it is a database copied from a member's directory, not a snapshot: " +
		"it has no checksum")
	ErrInconsistent = errors.New("its checksum is right, but the database in it is damaged: it was so in the member " +
		"that it was taken from")
	ErrOtherCluster = errors.New("it is of another cluster")
)

// SumSize is how many bytes of checksum follow the database.
const SumSize = 32

// Verify reads a snapshot from its beginning to its end. It changes nothing. Its errors name the file; what is wrong
// with it is one of the errors above.
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

// VerifyFile is Verify for an open file, whatever its offset is. It may have no name, but must be one that can be
// mapped into memory.
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

// OfCluster returns ErrOtherCluster with both identities if the snapshot is known to be of another cluster than the one
// whose kube-system namespace has that UID. Where either is unknown ("") it is nil: nothing speaks against it.
func (i Info) OfCluster(id string) error {
	if id == "" || i.ClusterID == "" || id == i.ClusterID {
		return nil
	}
	return fmt.Errorf("%w: its namespace kube-system is %s, this cluster's is %s", ErrOtherCluster, i.ClusterID, id)
}

// FileName is how a snapshot kept on a host is called: member's name, time in UTC, and why it was taken ("scheduled",
// "upgrade", "by-hand").
func FileName(member string, at time.Time, reason string) string {
	return member + "-" + at.UTC().Format("20060102T150405Z") + "-" + reason + ".db"
}

package snapshot

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kubeone/internal/model/observed"
)

// The layout of the etcd database; see go.etcd.io/etcd/server/v3/storage/schema.
const (
	bucketKeys    = "key"     // revision to key and value
	bucketMembers = "members" // ID in hex to a member, JSON
	bucketMeta    = "meta"
	storageKey    = "storageVersion"
)

// identityKey is the Kubernetes object whose UID identifies the cluster. caKey is the object with the certificate of
// the cluster CA.
const (
	identityKey = "/registry/namespaces/kube-system"
	caKey       = "/registry/configmaps/kube-system/kube-root-ca.crt"
)

// readDatabase opens the database in the file and reads all of it.
func readDatabase(f *os.File) (info Info, err error) {
	// bbolt panics or faults on invalid pages, and this database may come from anywhere.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("%w: %v", ErrInconsistent, panicked)
		}
	}()
	db, err := bbolt.Open(f.Name(), 0o400,
		&bbolt.Options{ReadOnly: true, OpenFile: func(string, int, os.FileMode) (*os.File, error) {
			fd, err := syscall.Dup(int(f.Fd())) // bbolt closes what it opens
			if err != nil {
				return nil, err
			}
			return os.NewFile(uintptr(fd), f.Name()), nil // #nosec G115 -- a file descriptor
		}})
	if err != nil {
		return Info{}, fmt.Errorf("%w: %w", ErrInconsistent, err)
	}
	err = db.View(func(tx *bbolt.Tx) error { return readAll(tx, &info) })
	return info, errors.Join(err, db.Close())
}

func readAll(tx *bbolt.Tx, info *Info) error {
	if err := tx.ForEach(readPages); err != nil {
		return err
	}
	keys := tx.Bucket([]byte(bucketKeys))
	if keys == nil {
		return fmt.Errorf("%w: it is a database of something else", ErrNotSnapshot)
	}
	if err := readKeys(keys, info); err != nil {
		return err
	}
	if b := tx.Bucket([]byte(bucketMeta)); b != nil {
		info.Version = string(b.Get([]byte(storageKey)))
	}
	if b := tx.Bucket([]byte(bucketMembers)); b != nil {
		return readMembers(b, info)
	}
	return nil
}

// readPages reads every page of a bucket and checks the order of keys. The check in bbolt is not used, because it runs
// in another goroutine, where a damaged page would crash the program.
func readPages(name []byte, b *bbolt.Bucket) error {
	var last []byte
	return b.ForEach(func(k, _ []byte) error {
		if last != nil && bytes.Compare(last, k) >= 0 {
			return fmt.Errorf("%w: the keys of its bucket %q are not in order", ErrInconsistent, name)
		}
		last = k
		return nil
	})
}

// readKeys reads all revisions in order. The last revision of a key counts.
func readKeys(b *bbolt.Bucket, info *Info) error {
	alive := map[string]struct{}{}
	err := b.ForEach(func(k, v []byte) error {
		revision, deleted, ok := parseRevision(k)
		var kv mvccpb.KeyValue
		if !ok || proto.Unmarshal(v, &kv) != nil {
			return fmt.Errorf("%w: %x is not a revision of a key", ErrInconsistent, k)
		}
		info.Revision = revision
		name := string(kv.Key)
		if deleted {
			delete(alive, name)
		} else {
			alive[name] = struct{}{}
		}
		switch name {
		case identityKey:
			info.ClusterID = decodeUID(kv.Value)
		case caKey:
			info.CA = decodeCA(kv.Value)
		}
		return nil
	})
	info.Keys = len(alive)
	return err
}

// parseRevision parses a key of the bucket: eight bytes of main revision, "_", eight bytes of sub revision, and "t"
// if the revision is a deletion.
func parseRevision(k []byte) (main int64, deleted, ok bool) {
	const plain = 8 + 1 + 8
	if len(k) < plain || len(k) > plain+1 || k[8] != '_' {
		return 0, false, false
	}
	deleted = len(k) == plain+1
	return int64(binary.BigEndian.Uint64(k)), deleted, !deleted || k[plain] == 't' // #nosec G115 -- etcd writes int64
}

// decodeUID returns the UID of a stored Namespace, or "" if the value is not a Namespace.
func decodeUID(value []byte) string {
	var namespace corev1.Namespace
	if !decodeObject(value, &namespace) {
		return ""
	}
	return string(namespace.UID)
}

// decodeCA returns the certificate in a stored ConfigMap, or nil if the value is not a ConfigMap.
func decodeCA(value []byte) []byte {
	var config corev1.ConfigMap
	if !decodeObject(value, &config) || config.Data["ca.crt"] == "" {
		return nil
	}
	return []byte(config.Data["ca.crt"])
}

// decodeObject decodes a stored object, which is a magic number followed by the protobuf encoding. It returns false for
// anything else, such as an encrypted object.
func decodeObject(value []byte, object interface{ Unmarshal([]byte) error }) bool {
	stored, ok := strings.CutPrefix(string(value), "k8s\x00")
	var wrapped runtime.Unknown
	return ok && wrapped.Unmarshal([]byte(stored)) == nil && object.Unmarshal(wrapped.Raw) == nil
}

func readMembers(b *bbolt.Bucket, info *Info) error {
	err := b.ForEach(func(k, v []byte) error {
		m, err := ReadMember(v)
		if err != nil {
			return fmt.Errorf("%w: member %s: %w", ErrInconsistent, k, err)
		}
		info.Members = append(info.Members, m)
		return nil
	})
	slices.SortFunc(info.Members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return err
}

// Observed returns the member as etcd would list it, without health.
func (m Member) Observed() observed.Member {
	return observed.Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, Learner: m.Learner}
}

// ReadMember parses a member as etcd stores it.
func ReadMember(stored []byte) (Member, error) {
	var m struct {
		ID       uint64   `json:"id"`
		Name     string   `json:"name"`
		PeerURLs []string `json:"peerURLs"`
		Learner  bool     `json:"isLearner"`
	}
	if err := json.Unmarshal(stored, &m); err != nil {
		return Member{}, err
	}
	return Member{ID: strconv.FormatUint(m.ID, 16), Name: m.Name, PeerURLs: m.PeerURLs, Learner: m.Learner}, nil
}

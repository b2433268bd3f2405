// Package snapshottest creates etcd snapshots for tests: real databases with real checksums.
package snapshottest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Content is the content of a snapshot.
type Content struct {
	ClusterID string // UID of the namespace kube-system; "" for none
	CA        string // certificate in kube-root-ca.crt; "" for none
	Keys      int    // other keys, each written twice
	Deleted   int    // keys that were written and deleted
	Padding   int    // bytes of each value
}

// Bytes returns a snapshot: a database and its sha256.
func Bytes(t testing.TB, c Content) []byte {
	t.Helper()
	database := Database(t, c)
	sum := sha256.Sum256(database)
	return append(database, sum[:]...)
}

// Database returns the database in a snapshot, without its checksum.
func Database(t testing.TB, c Content) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error { return fillBuckets(tx, c) }); err != nil {
		t.Fatal(err)
	}
	// Like in etcd, a transaction sees less than the file contains.
	var out []byte
	err = db.View(func(tx *bbolt.Tx) error {
		copied := filepath.Join(t.TempDir(), "copy")
		if err := tx.CopyFile(copied, 0o600); err != nil {
			return err
		}
		out, err = os.ReadFile(copied) // #nosec G304 -- made above
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Lived returns the database file of a member after some history: cp-1 is a member, cp-2 joined as a learner and became
// a voter, cp-3 joined and left, and unused pages contain old data.
func Lived(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	update := func(change func(*bbolt.Tx) error) {
		if err := db.Update(change); err != nil {
			t.Fatal(err)
		}
	}
	update(func(tx *bbolt.Tx) error { return fillBuckets(tx, Content{Keys: 200, Deleted: 20, Padding: 1000}) })
	put := func(bucket, key, value string) {
		update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte(bucket))
			if err != nil {
				return err
			}
			return b.Put([]byte(key), []byte(value))
		})
	}
	put("members", "b2", `{"id":178,"peerURLs":["https://10.0.0.2:2380"],"isLearner":true}`)
	put("members", "b2", `{"id":178,"peerURLs":["https://10.0.0.2:2380"],"name":"cp-2",`+
		`"clientURLs":["https://10.0.0.2:2379"]}`)
	put("members", "c3", `{"id":195,"peerURLs":["https://10.0.0.3:2380"],"name":"cp-3"}`)
	put("members_removed", "c3", "removed")
	update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("members")).Delete([]byte("c3")) })
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(path) // #nosec G304 -- made above
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// File writes a snapshot to a file of the test.
func File(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Source returns a snapshot like a member; Err, if set, comes after half of it.
type Source struct {
	Content []byte
	Err     error
}

// Snapshot implements snapshot.Source.
func (s Source) Snapshot(_ context.Context, w io.Writer) (int64, error) {
	if s.Err != nil {
		n, err := w.Write(s.Content[:len(s.Content)/2])
		if err == nil {
			err = s.Err
		}
		return int64(n), err
	}
	n, err := w.Write(s.Content)
	return int64(n), err
}

func fillBuckets(tx *bbolt.Tx, c Content) error {
	buckets := map[string]*bbolt.Bucket{}
	for _, name := range []string{"key", "members", "meta", "alarm", "auth"} {
		b, err := tx.CreateBucket([]byte(name))
		if err != nil {
			return err
		}
		buckets[name] = b
	}
	w := &writer{bucket: buckets["key"], revision: 1}
	if c.ClusterID != "" {
		w.putValue("/registry/namespaces/kube-system", Namespace(c.ClusterID))
	}
	if c.CA != "" {
		w.putValue("/registry/configmaps/kube-system/kube-root-ca.crt",
			storedObject("ConfigMap", &corev1.ConfigMap{Data: map[string]string{"ca.crt": c.CA}}))
	}
	for i := range c.Keys {
		w.putValue(fmt.Sprintf("/registry/configmaps/default/c%d", i), []byte("first"))
		w.putValue(fmt.Sprintf("/registry/configmaps/default/c%d", i), make([]byte, c.Padding+1))
	}
	for i := range c.Deleted {
		w.putValue(fmt.Sprintf("/registry/secrets/default/s%d", i), []byte("gone"))
		w.removeKey(fmt.Sprintf("/registry/secrets/default/s%d", i))
	}
	if w.err != nil {
		return w.err
	}
	if err := buckets["meta"].Put([]byte("storageVersion"), []byte("3.6.0")); err != nil {
		return err
	}
	return buckets["members"].Put([]byte("8e9e05c52164694d"),
		[]byte(`{"id":10276657743932975437,"peerURLs":["https://10.0.0.1:2380"],"name":"cp-1"}`))
}

// Namespace returns a stored Namespace kube-system with that UID.
func Namespace(uid string) []byte {
	return storedObject("Namespace",
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: types.UID(uid)}})
}

// storedObject returns an object as the API server stores it.
func storedObject(kind string, object interface{ Marshal() ([]byte, error) }) []byte {
	raw, err := object.Marshal()
	if err != nil {
		panic(err) // cannot happen
	}
	wrapped := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
	text, err := wrapped.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte("k8s\x00"), text...)
}

// writer writes revisions.
type writer struct {
	bucket   *bbolt.Bucket
	revision int64
	err      error
}

func (w *writer) nextKey(tombstone bool) []byte {
	w.revision++
	k := binary.BigEndian.AppendUint64(nil, uint64(w.revision)) // #nosec G115 -- it is small
	k = append(k, '_')
	k = binary.BigEndian.AppendUint64(k, 0)
	if tombstone {
		k = append(k, 't')
	}
	return k
}

func (w *writer) putValue(key string, value []byte) {
	w.write(w.nextKey(false), &mvccpb.KeyValue{Key: []byte(key), Value: value})
}

func (w *writer) removeKey(key string) { w.write(w.nextKey(true), &mvccpb.KeyValue{Key: []byte(key)}) }

func (w *writer) write(k []byte, kv *mvccpb.KeyValue) {
	v, err := proto.Marshal(kv)
	if err == nil {
		err = w.bucket.Put(k, v)
	}
	if w.err == nil {
		w.err = err
	}
}

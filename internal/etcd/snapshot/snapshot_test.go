package snapshot_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/testutil/snapshottest"
)

const uid = "9ecb7e54-8b8f-4f3d-b9fb-c8f0a1f2d3e4"

func good(t *testing.T) []byte {
	t.Helper()
	return snapshottest.Bytes(t, snapshottest.Content{ClusterID: uid, Keys: 40, Deleted: 7, Padding: 3000})
}

// sealed appends a checksum to a database.
func sealed(database []byte) []byte {
	sum := sha256.Sum256(database)
	return append(append([]byte{}, database...), sum[:]...)
}

func TestAGoodSnapshotSaysWhatItIs(t *testing.T) {
	t.Parallel()
	content := good(t)
	got, err := snapshot.Verify(snapshottest.File(t, content))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	want := snapshot.Info{
		SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content)), Revision: 1 + 1 + 80 + 14, Keys: 41,
		ClusterID: uid, Version: "3.6.0",
		Members: []snapshot.Member{{ID: "8e9e05c52164694d", Name: "cp-1", PeerURLs: []string{"https://10.0.0.1:2380"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEachKindOfBadFileHasItsOwnError(t *testing.T) {
	t.Parallel()
	content := good(t)
	at := func(i int) []byte {
		changed := append([]byte{}, content...)
		changed[i] ^= 0xff
		return changed
	}
	somethingElse := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(somethingElse, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("other"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	if err := db.View(func(tx *bbolt.Tx) error { size = tx.Size(); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(somethingElse)
	if err != nil {
		t.Fatal(err)
	}
	zeroed := append([]byte{}, content[:len(content)-snapshot.SumSize]...)
	for i := 2 * 4096; i < len(zeroed); i++ {
		zeroed[i] = 0
	}
	for name, test := range map[string]struct {
		content []byte
		want    error
	}{
		"empty":                       {nil, snapshot.ErrEmpty},
		"a text":                      {[]byte(strings.Repeat("not etcd\n", 2000)), snapshot.ErrNotSnapshot},
		"short text":                  {[]byte("x"), snapshot.ErrNotSnapshot},
		"one byte is missing":         {content[:len(content)-1], snapshot.ErrTruncated},
		"the checksum is missing":     {content[:len(content)-snapshot.SumSize], snapshot.ErrTruncated},
		"half":                        {content[:len(content)/2], snapshot.ErrTruncated},
		"half, of a length that fits": {content[:4096*8+32], snapshot.ErrTruncated},
		"less than two pages":         {content[:5000], snapshot.ErrTruncated},
		"the first page's beginning":  {content[:60], snapshot.ErrTruncated},
		"a byte of the data":          {at(len(content) / 2), snapshot.ErrAltered},
		"a byte of the checksum":      {at(len(content) - 1), snapshot.ErrAltered},
		"something behind it":         {append(append([]byte{}, content...), "tail"...), snapshot.ErrAltered},
		"a member's own database": {
			append(append([]byte{}, content[:len(content)-snapshot.SumSize]...), make([]byte, 64<<10)...),
			snapshot.ErrNoChecksum,
		},
		"another program's database":    {sealed(other[:size]), snapshot.ErrNotSnapshot},
		"damaged before it was sealed":  {sealed(zeroed), snapshot.ErrInconsistent},
		"both copies of its beginning":  {append(make([]byte, 8192), content[8192:]...), snapshot.ErrNotSnapshot},
		"the first copy of its numbers": {at(40), snapshot.ErrAltered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := snapshottest.File(t, test.content)
			_, err := snapshot.Verify(path)
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("error %v does not name the file", err)
			}
		})
	}
}

func TestAnyCutAndAnyFlipIsFound(t *testing.T) {
	t.Parallel()
	content := snapshottest.Bytes(t, snapshottest.Content{Keys: 5})
	for cut := 1; cut < len(content); cut += 509 {
		if info, err := snapshot.Verify(snapshottest.File(t, content[:cut])); err == nil {
			t.Errorf("cut to %d bytes it is %+v", cut, info)
		}
	}
	for i := 0; i < len(content); i += 251 {
		changed := append([]byte{}, content...)
		changed[i] ^= 1
		if info, err := snapshot.Verify(snapshottest.File(t, changed)); err == nil {
			t.Errorf("with byte %d changed it is %+v", i, info)
		}
	}
}

func TestSnapshotOfAnotherCluster(t *testing.T) {
	t.Parallel()
	info := snapshot.Info{ClusterID: uid}
	if err := info.OfCluster("another"); !errors.Is(err, snapshot.ErrOtherCluster) ||
		!strings.Contains(err.Error(), uid) {
		t.Errorf("error %v", err)
	}
	for _, id := range []string{"", uid} {
		if err := info.OfCluster(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	if err := (snapshot.Info{}).OfCluster("x"); err != nil {
		t.Errorf("a snapshot that does not tell: %v", err)
	}
}

func TestSaveLeavesWhatWasThereUntilTheNewOneIsVerified(t *testing.T) {
	t.Parallel()
	content := good(t)
	broken := append([]byte{}, content...)
	broken[9000] ^= 1
	for name, from := range map[string]snapshottest.Source{
		"breaks off": {Content: content, Err: errors.New("connection lost")}, "damaged": {Content: broken},
	} {
		path := snapshottest.File(t, []byte("what was there"))
		if _, err := snapshot.Save(t.Context(), from, path); err == nil {
			t.Errorf("%s: no error", name)
		}
		if text, _ := os.ReadFile(path); string(text) != "what was there" {
			t.Errorf("%s: the file is now %d bytes", name, len(text))
		}
		left, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(left) != 1 {
			t.Errorf("%s: left are %v, %v", name, left, err)
		}
	}
	path := filepath.Join(t.TempDir(), "new.db")
	if _, err := snapshot.Save(t.Context(), snapshottest.Source{Content: content}, path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestTakeKeepsItInMemory(t *testing.T) {
	t.Parallel()
	content := good(t)
	f, info, err := snapshot.Take(t.Context(), snapshottest.Source{Content: content})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	got := make([]byte, info.Size)
	if _, err := f.ReadAt(got, 0); err != nil || string(got) != string(content) {
		t.Errorf("it is not what was taken: %v", err)
	}
	if _, err := os.Stat(f.Name()); err == nil {
		t.Errorf("it has the name %s", f.Name())
	}
}

func TestFileName(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 4, 5, 6, 0, time.FixedZone("x", 3600))
	if got := snapshot.FileName("cp-1", at, "scheduled"); got != "cp-1-20260301T030506Z-scheduled.db" {
		t.Error(got)
	}
}

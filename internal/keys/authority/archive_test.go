package authority

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Copied keys form pairs even if an exchange was cut off between its halves on the source. Unreadable files stay as
// they are.
func TestHalvesAgree(t *testing.T) {
	t.Parallel()
	old, _ := ca(t, "etcd-ca")
	next, nextKey := ca(t, "etcd-ca")
	files := map[string][]byte{
		"etcd/ca.crt": append(bytes.Clone(old), next...), "etcd/ca.key": nextKey,
		"sa.pub": []byte("odd"), "sa.key": []byte("odd"),
	}
	want := append(Keys(next), Keys(old)...)
	for range 2 { // a pair stays as it is
		Agree(files)
		if diff := cmp.Diff(want, Keys(files["etcd/ca.crt"])); diff != "" || string(files["sa.pub"]) != "odd" {
			t.Errorf("%s %s", files["sa.pub"], diff)
		}
	}
}

func TestNotesThatAreCopied(t *testing.T) {
	t.Parallel()
	for note, want := range map[string]string{
		"": "", "etcd learn\n": "", "etcd use\nodd used\n": "",
		"service-account used\netcd forget\n": "etcd used\nservice-account used\n",
	} {
		if got := string(RotationNoteForCopy([]byte(note))); got != want {
			t.Errorf("of %q: %q, want %q", note, got, want)
		}
	}
}

func TestArchives(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	write := func(files map[string][]byte) []byte {
		text, err := WriteArchive(files, now)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	files := map[string][]byte{"etcd/ca.key": []byte("key"), "rotation": []byte("etcd used\n")}
	got, err := ReadArchive(write(files))
	if diff := cmp.Diff(files, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	big := map[string][]byte{"sa.pub": make([]byte, maxFileBytes+1)}
	many := map[string][]byte{}
	for i := range maxFiles + 1 {
		many[strings.Repeat("x", i+1)] = nil
	}
	var cut bytes.Buffer
	if err := tar.NewWriter(&cut).WriteHeader(&tar.Header{Name: "x", Size: 100}); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"a big file": write(big), "many files": write(many), "cut": cut.Bytes(), "garbage": []byte("no archive at all"),
	} {
		if _, err := ReadArchive(text); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

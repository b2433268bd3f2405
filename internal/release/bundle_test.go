package release

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
)

// createBytes makes a bundle in memory.
func createBytes(t *testing.T, src Source, want Want) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := Create(t.Context(), &b, src, want, CreateOptions{
		CreatedBy: "test",
		SpoolDir:  t.TempDir(),
	}); err != nil {
		t.Fatalf("Create: %v", err)
	}
	return b.Bytes()
}

// openBytes opens a bundle that is in memory.
func openBytes(t *testing.T, content []byte) (*Bundle, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.tar")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Open(path)
	if err == nil {
		t.Cleanup(func() { _ = b.Close() })
	}
	return b, err
}

func mustOpen(t *testing.T, content []byte) *Bundle {
	t.Helper()
	b, err := openBytes(t, content)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return b
}

func TestBundleHoldsEverythingThatItsArtifactsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	b := mustOpen(t, createBytes(t, w.source(), testWant()))
	if err := b.Verify(t.Context()); err != nil {
		t.Fatalf("Verify: %v", err)
	}
	got := b.Index().Artifacts
	online := resolve(t, w.source(), testWant())
	for _, want := range online.Binaries {
		have, _ := got.Binary(want.Name)
		blob, ok := b.Blob("sha256:" + have.SHA256)
		if !ok {
			t.Fatalf("no blob for %s", want.Name)
		}
		content, err := io.ReadAll(blob)
		if err != nil || !bytes.Equal(content, w.files[strings.TrimPrefix(want.URL, "https://")]) ||
			have.Size != int64(len(content)) {
			t.Errorf("%s: %d bytes, %v, want what was published", want.Name, len(content), err)
		}
		have.Size = 0
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s (-resolved +bundled):\n%s", want.Name, diff)
		}
	}
	for n, want := range online.Images {
		have := got.Images[n]
		for _, blob := range have.Blobs {
			content, ok := b.Blob(blob.Digest)
			if !ok || content.Size() != blob.Size {
				t.Errorf("%s: no blob %+v", want.Name, blob)
			}
		}
		have.Blobs = nil
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s (-resolved +bundled):\n%s", want.Name, diff)
		}
	}
	if !got.Pushed {
		t.Error("Pushed is not set")
	}
}

func TestBundleHasSharedPartsOnceAndIsATarForAnyone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	reader := tar.NewReader(bytes.NewReader(createBytes(t, w.source(), testWant())))
	var names []string
	for {
		h, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(names, h.Name) {
			t.Errorf("%s is there twice", h.Name)
		}
		names = append(names, h.Name)
		if sum, ok := strings.CutPrefix(h.Name, "blobs/sha256/"); ok {
			hash := sha256.New()
			if _, err := io.Copy(hash, reader); err != nil || hex.EncodeToString(hash.Sum(nil)) != sum {
				t.Errorf("%s has other content: %v", h.Name, err)
			}
		}
	}
	// 8 binaries; 8 images of manifest, config and two layers of their own, and one layer that they share.
	if want := 2 + 8 + 8*4 + 1; len(names) != want || names[0] != "bundle.json" ||
		names[len(names)-1] != "bundle.sha256" {
		t.Errorf("%d entries, first %s, last %s; want %d", len(names), names[0], names[len(names)-1], want)
	}
}

func TestSameContentMakesSameBundleFromAnySource(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	server := httptest.NewServer(w)
	defer server.Close()
	first := createBytes(t, w.source(), testWant())
	if again := createBytes(t, w.source(), testWant()); !bytes.Equal(first, again) {
		t.Error("two bundles from the same source differ")
	}
	mirrored := testWant()
	mirrored.OverwriteRegistry = strings.TrimPrefix(server.URL, "http://")
	if other := createBytes(t, fromMirror(server.URL), mirrored); !bytes.Equal(first, other) {
		t.Error("a bundle from a mirror differs")
	}
	if changed := createBytes(t, newWorld(t, testWant(), 2).source(), testWant()); bytes.Equal(first, changed) {
		t.Error("other content makes the same bundle")
	}
}

func TestCreateRefusesContentThatIsNotWhatItsDigestSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	altered := bytes.Clone(w.files[kubeletPath()])
	altered[10] ^= 1
	w.files[kubeletPath()] = altered
	path := filepath.Join(t.TempDir(), "bundle.tar")
	_, err := CreateFile(t.Context(), path, w.source(), testWant(), CreateOptions{})
	var digest *DigestError
	if !errors.As(err, &digest) || digest.What != "kubelet 1.36.3" || digest.Has != w.sum(kubeletPath()) {
		t.Errorf("error %v, want a DigestError about kubelet", err)
	}
	assertEmpty(t, filepath.Dir(path))
}

func TestCreateFetchesAgainWhatWasCutShort(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	w.cut[kubeletPath()] = 2
	var last Progress
	content := &bytes.Buffer{}
	index, err := Create(t.Context(), content, w.source(), testWant(), CreateOptions{
		SpoolDir: t.TempDir(), Progress: func(p Progress) { last = p },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Progress{
		Done: last.Done, Entries: len(index.Entries), TotalEntries: len(index.Entries), Bytes: index.Size(),
		TotalBytes: index.Size(),
	}
	if diff := cmp.Diff(want, last); diff != "" || last.Done == "" {
		t.Errorf("last progress (-want +got):\n%s", diff)
	}
	mustOpen(t, content.Bytes())

	w.cut[kubeletPath()] = 3
	if _, err := Create(t.Context(), io.Discard, w.source(), testWant(),
		CreateOptions{SpoolDir: t.TempDir()}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v after three short answers, want unexpected EOF", err)
	}
}

func TestCreateFileLeavesNothingBehindWhenCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	path := filepath.Join(t.TempDir(), "bundle.tar")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := CreateFile(ctx, path, w.source(), testWant(), CreateOptions{Progress: func(p Progress) {
		if p.Entries == 5 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	assertEmpty(t, filepath.Dir(path))
}

func TestCreateFileReplacesAnOlderBundleAtTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	path := filepath.Join(t.TempDir(), "bundle.tar")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := CreateFile(t.Context(), path, w.source(), testWant(), CreateOptions{Progress: func(Progress) {
		if old, err := os.ReadFile(path); err != nil || string(old) != "old" {
			t.Errorf("the older bundle was touched before the end: %.80q, %v", string(old), err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%d files in the directory, want the bundle alone (%v)", len(entries), err)
	}
}

func assertEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v (%v)", entries, err)
	}
}

func TestOpenFindsTruncationAtEveryLength(t *testing.T) {
	t.Parallel()
	content := createBytes(t, newWorld(t, testWant(), 1).source(), testWant())
	path := filepath.Join(t.TempDir(), "bundle.tar")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(length int) {
		if err := os.Truncate(path, int64(length)); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		var truncated *TruncatedError
		if !errors.As(err, &truncated) || truncated.Has != int64(length) || truncated.Path != path {
			t.Fatalf("%d of %d bytes: error %v, want a TruncatedError", length, len(content), err)
		}
	}
	// every class: end blocks, trailer, padding, content, headers, index
	for length := len(content) - 1; length > 513; length -= 509 {
		check(length)
	}
	for _, length := range []int{513, 512, 511, 1, 0} {
		check(length)
	}
}

func TestAnyFlippedByteIsFound(t *testing.T) {
	t.Parallel()
	content := createBytes(t, newWorld(t, testWant(), 1).source(), testWant())
	path := filepath.Join(t.TempDir(), "bundle.tar")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for at := 0; at < len(content); at += 331 {
		if _, err := file.WriteAt([]byte{content[at] ^ 0x10}, int64(at)); err != nil {
			t.Fatal(err)
		}
		if err := openAndVerify(t.Context(), path); err == nil {
			t.Fatalf("byte %d of %d flipped and not found", at, len(content))
		} else if !isBundleError(err) {
			t.Fatalf("byte %d flipped: error %v of another kind", at, err)
		}
		if _, err := file.WriteAt(content[at:at+1], int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := openAndVerify(t.Context(), path); err != nil {
		t.Errorf("as written: %v", err)
	}
}

func openAndVerify(ctx context.Context, path string) error {
	b, err := Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	return b.Verify(ctx)
}

func isBundleError(err error) bool {
	var altered *AlteredError
	var truncated *TruncatedError
	var format *FormatError
	return errors.As(err, &altered) || errors.As(err, &truncated) || errors.As(err, &format)
}

func TestVerifyNamesTheAlteredEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	content := createBytes(t, w.source(), testWant())
	at := bytes.Index(content, w.files[kubeletPath()])
	content[at+100] ^= 1
	b := mustOpen(t, content)
	err := b.Verify(t.Context())
	var altered *AlteredError
	want := []string{"blobs/sha256/" + w.sum(kubeletPath()) + " (kubelet 1.36.3)"}
	if !errors.As(err, &altered) || !cmp.Equal(altered.Entries, want) {
		t.Fatalf("error %v, want an AlteredError about %v", err, want)
	}
	if !strings.Contains(err.Error(), "create it again") {
		t.Errorf("error does not say what to do: %v", err)
	}
}

func TestOpenRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	good := createBytes(t, newWorld(t, testWant(), 1).source(), testWant())
	tests := map[string]struct {
		content []byte
		want    string
	}{
		"another tar":     {tarOf(t, "etc/passwd", "root"), "first entry is not bundle.json"},
		"not a tar":       {bytes.Repeat([]byte("kind: KubeOneCluster\n"), 100), "first entry is not bundle.json"},
		"another format":  {tarOf(t, "bundle.json", `{"format":99}`), "format 99"},
		"broken index":    {tarOf(t, "bundle.json", `{"format":`), "altered"},
		"something after": {append(bytes.Clone(good), 0), "1 bytes after its end"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := openBytes(t, test.content)
			if err == nil || !isBundleError(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one about a file that does not exist", err)
	}
	if _, err := Open(t.TempDir()); !isBundleError(err) {
		t.Errorf("error %v, want one about a directory", err)
	}
}

// TestOpenRefusesInconsistentIndex opens files whose digests are right and whose index is not.
func TestOpenRefusesInconsistentIndex(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("a", 64)
	tests := map[string]func(*Index){
		"path in place of a digest": func(i *Index) { i.Entries = []Entry{{SHA256: "../../etc/passwd"}} },
		"negative size":             func(i *Index) { i.Entries = []Entry{{SHA256: sum, Size: -1}} },
		"huge size":                 func(i *Index) { i.Entries = []Entry{{SHA256: sum, Size: 1 << 62}} },
		"same entry twice":          func(i *Index) { i.Entries = []Entry{{SHA256: sum}, {SHA256: sum}} },
		"binary without entry": func(i *Index) {
			i.Artifacts.Binaries = []desired.Binary{{Name: "kubelet", SHA256: sum}}
		},
		"image without manifest": func(i *Index) {
			i.Artifacts.Images = []desired.Image{{Name: "pause", Digest: "sha256:" + sum}}
		},
		"artifacts of another arch": func(i *Index) { i.Artifacts.Arch = "arm64" },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := Index{Format: FormatVersion, KubernetesVersion: testVersion, Arch: "amd64"}
			i.Artifacts = desired.Artifacts{KubernetesVersion: testVersion, Arch: "amd64"}
			change(&i)
			text, err := json.Marshal(i)
			if err != nil {
				t.Fatal(err)
			}
			var altered *AlteredError
			if _, err := openBytes(t, tarOf(t, "bundle.json", string(text))); !errors.As(err, &altered) {
				t.Errorf("error %v, want an AlteredError", err)
			}
		})
	}
}

func tarOf(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, err := range []error{
		writeEntry(&b, name, []byte(content)), writeEntry(&b, trailerName, []byte(trailerText([]byte(content)))),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b.Write(make([]byte, endSize))
	return b.Bytes()
}

func TestImageIndexNamesImagesForImport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	images := mustOpen(t, createBytes(t, w.source(), testWant())).Index().Artifacts.ImagesFor(desired.Worker)
	text, blobs, err := ImageIndex(images, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		SchemaVersion int
		Manifests     []struct {
			MediaType, Digest string
			Size              int64
			Annotations       map[string]string
			Platform          map[string]string
		}
	}
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	if index.SchemaVersion != 2 || len(index.Manifests) != len(images) {
		t.Fatalf("schema %d, %d manifests, want 2 and %d", index.SchemaVersion, len(index.Manifests), len(images))
	}
	for n, m := range index.Manifests {
		want := map[string]string{
			"io.containerd.image.name":          images[n].Name,
			"org.opencontainers.image.ref.name": images[n].Name,
		}
		if !cmp.Equal(want, m.Annotations) || m.Digest != images[n].Digest || m.Platform["architecture"] != "amd64" ||
			m.Platform["os"] != "linux" {
			t.Errorf("%s: %+v", images[n].Name, m)
		}
	}
	if want := len(images)*4 + 1; len(blobs) != want {
		t.Errorf("%d blobs, want %d: shared ones once", len(blobs), want)
	}
	if _, _, err := ImageIndex(resolve(t, w.source(), testWant()).Images, "amd64"); err == nil {
		t.Error("images that are pulled were accepted")
	}
}

func TestStalledDownloadEnds(t *testing.T) {
	t.Parallel()
	reader, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	stopped := make(chan error, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	body := &stallBody{ReadCloser: reader, ctx: ctx, cancel: cancel, after: time.Millisecond}
	body.timer = time.AfterFunc(body.after, func() {
		cancel(&stallError{body.after})
		_ = reader.CloseWithError(context.Canceled) // as the transport does when its request's context ends
	})
	go func() {
		_, err := body.Read(make([]byte, 1))
		stopped <- err
	}()
	var stall *stallError
	if err := <-stopped; !errors.As(err, &stall) || !isTransient(err) {
		t.Errorf("error %v, want a transient stall", err)
	}
	_ = body.Close()
}

// FuzzOpen: whatever a file holds, Open, Verify and Blob answer without panic.
func FuzzOpen(f *testing.F) {
	index := Index{Format: FormatVersion, KubernetesVersion: testVersion, Arch: "amd64"}
	index.Artifacts = desired.Artifacts{KubernetesVersion: testVersion, Arch: "amd64"}
	content := []byte("kubelet")
	sum := sha256.Sum256(content)
	index.Entries = []Entry{{Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Holds: "kubelet"}}
	index.Artifacts.Binaries = []desired.Binary{{
		Name: "kubelet", Version: testVersion, URL: "https://" + kubeletPath(), SHA256: index.Entries[0].SHA256,
		Size: index.Entries[0].Size,
	}}
	text, err := json.Marshal(index)
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	for _, e := range []struct {
		name    string
		content []byte
	}{{indexName, text}, {index.Entries[0].Name(), content}, {trailerName, []byte(trailerText(text))}} {
		if err := writeEntry(&b, e.name, e.content); err != nil {
			f.Fatal(err)
		}
	}
	b.Write(make([]byte, endSize))
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:700])
	f.Add([]byte{})
	path := filepath.Join(f.TempDir(), fmt.Sprint("bundle-", os.Getpid()))
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		bundle, err := Open(path)
		if err != nil {
			return
		}
		defer func() { _ = bundle.Close() }()
		_ = bundle.Verify(t.Context())
		for _, e := range bundle.Index().Entries {
			if blob, ok := bundle.Blob(e.SHA256); !ok || blob.Size() != e.Size {
				t.Errorf("entry %s has no blob", e.SHA256)
			}
		}
	})
}

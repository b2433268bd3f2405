package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
)

// crafted is an altered copy of a genuine bundle.
type crafted struct {
	Index
	content map[string][]byte // by hex digest
}

// craft unpacks a bundle, changes it, and packs it again with correct digests.
func craft(t *testing.T, genuine []byte, change func(*crafted)) []byte {
	t.Helper()
	b := mustOpen(t, genuine)
	c := &crafted{content: map[string][]byte{}}
	text, err := json.Marshal(b.index)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &c.Index); err != nil {
		t.Fatal(err)
	}
	for _, e := range c.Entries {
		blob, _ := b.Blob(e.SHA256)
		if c.content[e.SHA256], err = io.ReadAll(blob); err != nil {
			t.Fatal(err)
		}
	}
	change(c)
	if text, err = json.Marshal(c.Index); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	write := func(name string, content []byte) {
		if err := writeEntry(&out, name, content); err != nil {
			t.Fatal(err)
		}
	}
	write(indexName, text)
	for _, e := range c.Entries {
		write(e.Name(), c.content[e.SHA256])
	}
	write(trailerName, []byte(trailerText(text)))
	out.Write(make([]byte, endSize))
	return out.Bytes()
}

// add makes content an entry, and returns its digest.
func (c *crafted) add(content string) string {
	sum := sha256.Sum256([]byte(content))
	digest := hex.EncodeToString(sum[:])
	c.Entries = append(c.Entries, Entry{Size: int64(len(content)), SHA256: digest, Holds: "evil"})
	c.content[digest] = []byte(content)
	return digest
}

// drop removes an entry.
func (c *crafted) drop(digest string) {
	digest = strings.TrimPrefix(digest, digestPrefix)
	c.Entries = slices.DeleteFunc(c.Entries, func(e Entry) bool { return e.SHA256 == digest })
}

func (c *crafted) binary(name string) *desired.Binary {
	n := slices.IndexFunc(c.Artifacts.Binaries, func(b desired.Binary) bool { return b.Name == name })
	return &c.Artifacts.Binaries[n]
}

func (c *crafted) image(name string) *desired.Image {
	n := slices.IndexFunc(c.Artifacts.Images, func(i desired.Image) bool { return strings.Contains(i.Name, name) })
	return &c.Artifacts.Images[n]
}

// Each of these bundles has only parts that are genuine by their digests, and some extra parts without a known digest.
func TestOpenRefusesAnIndexThatSaysMoreThanItCan(t *testing.T) {
	t.Parallel()
	genuine := createBytes(t, newWorld(t, testWant(), 1).source(), testWant())
	const evil = "#!/bin/sh\necho evil\n"
	for name, c := range map[string]struct {
		change func(*crafted)
		says   string
	}{
		"a line more in a location": {func(c *crafted) {
			b, pause := c.binary("crictl"), c.image("/pause")
			sum := c.add(evil)
			b.URL += "\nkubelet evil " + sum + " no x"
			pause.Blobs = append(pause.Blobs, desired.Blob{Digest: digestPrefix + sum, Size: int64(len(evil))})
		}, "location"},
		"a blank in a location":   {func(c *crafted) { c.binary("crictl").URL += " x" }, "location"},
		"a location without TLS":  {func(c *crafted) { c.binary("crictl").URL = "http://github.com/x" }, "location"},
		"a location with options": {func(c *crafted) { c.binary("crictl").URL = "https://github.com/x?y" }, "location"},
		"no location":             {func(c *crafted) { c.binary("crictl").URL = "" }, "location"},
		"a line more in a name":   {func(c *crafted) { c.binary("crictl").Name = "crictl\nkubelet" }, "binary"},
		"a path for a name":       {func(c *crafted) { c.binary("crictl").Name = "../bin" }, "binary"},
		"an option for a name":    {func(c *crafted) { c.binary("crictl").Name = "-rf" }, "binary"},
		"a line more in a version": {func(c *crafted) { c.binary("runc").Version = "1.5.2 x y\nkubelet" },
			"version"},
		"a path for a version":       {func(c *crafted) { c.binary("runc").Version = "../../../etc" }, "version"},
		"a path in a version":        {func(c *crafted) { c.binary("runc").Version = "1.5.2/../../x" }, "version"},
		"no version":                 {func(c *crafted) { c.binary("runc").Version = "" }, "version"},
		"a line more for an image":   {func(c *crafted) { c.image("/pause").Name += "\nx sha256:y z" }, "image"},
		"an image with a port":       {func(c *crafted) { c.image("/pause").Name = "r.example.com:5/pause" }, "image"},
		"an image by digest":         {func(c *crafted) { c.image("/pause").Name = "registry.k8s.io/pause" }, "image"},
		"another source":             {func(c *crafted) { c.image("/pause").Source = "example.com/pause:1" }, "image"},
		"a role that is none":        {func(c *crafted) { c.image("/pause").Roles = []desired.Role{"x"} }, "role"},
		"a path for a Kubernetes":    {func(c *crafted) { c.of("../../../etc/x", c.Arch) }, "of Kubernetes"},
		"an architecture of its own": {func(c *crafted) { c.of(testVersion, "../x") }, "architecture"},
		"a network plugin":           {func(c *crafted) { c.CNI = "x y" }, "network plugin"},
		"colours of a terminal":      {func(c *crafted) { c.CreatedBy = "\x1b[2J" }, "created by"},
		"lines about an entry":       {func(c *crafted) { c.Entries[0].Holds = "x\ny" }, "holds"},
		"an entry that nothing has":  {func(c *crafted) { c.add(evil) }, "no artifact has entry"},
		"a part that no manifest names": {func(c *crafted) {
			pause := c.image("/pause")
			sum := c.add(evil)
			pause.Blobs = append(pause.Blobs, desired.Blob{Digest: digestPrefix + sum, Size: int64(len(evil))})
			pause.Size += int64(len(evil))
		}, "pause:3.10.2 differ from its manifest"},
		"a part too few": {func(c *crafted) {
			pause := c.image("/pause")
			c.drop(pause.Blobs[2].Digest)
			pause.Size -= pause.Blobs[2].Size
			pause.Blobs = slices.Delete(pause.Blobs, 2, 3)
		}, "pause:3.10.2 differ from its manifest"},
		"a part of another sort": {func(c *crafted) { c.image("/pause").Blobs[2].MediaType = "text/plain" },
			"pause:3.10.2 differ from its manifest"},
		"a manifest of another sort": {func(c *crafted) { c.image("/pause").Blobs[0].MediaType = "text/plain" },
			"pause:3.10.2 differ from its manifest"},
		"another size": {func(c *crafted) { c.image("/pause").Size++ }, "pause:3.10.2 differ from its manifest"},
		"a manifest that is none": {func(c *crafted) {
			pause := c.image("/pause")
			sum := digestPrefix + c.add(evil)
			c.drop(pause.Digest)
			pause.Digest, pause.Blobs[0] = sum, desired.Blob{Digest: sum, Size: int64(len(evil))}
		}, "manifest of image registry.k8s.io/pause:3.10.2"},
		"an index for a manifest": {func(c *crafted) {
			const list = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`
			pause := c.image("/pause")
			sum := digestPrefix + c.add(list)
			c.drop(pause.Digest)
			pause.Digest = sum
			pause.Blobs[0] = desired.Blob{
				Digest: sum, Size: int64(len(list)), MediaType: "application/vnd.oci.image.index.v1+json",
			}
		}, "pause:3.10.2 differ from its manifest"},
		"a manifest of another digest": {func(c *crafted) {
			sum := strings.TrimPrefix(c.image("/pause").Digest, digestPrefix)
			c.content[sum] = bytes.Replace(c.content[sum], []byte("sha256"), []byte("sha512"), 1)
		}, "manifest of image registry.k8s.io/pause:3.10.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := openBytes(t, craft(t, genuine, c.change))
			var altered *AlteredError
			if !errors.As(err, &altered) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an AlteredError with %q", err, c.says)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("the error has what the index says as it is: %q", err)
			}
		})
	}
	if b := mustOpen(t, craft(t, genuine, func(*crafted) {})); b.Verify(t.Context()) != nil {
		t.Error("the bundle with nothing changed is refused")
	}
}

// of makes the bundle claim another release.
func (c *crafted) of(version, arch string) {
	c.KubernetesVersion, c.Artifacts.KubernetesVersion = version, version
	c.Arch, c.Artifacts.Arch = arch, arch
}

// This program itself knows where a part comes from, what it is, and which hosts need it.
func TestABundleSaysVersionsAndDigestsOnly(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, testWant(), 1), t.TempDir()
	genuine := createBytes(t, w.source(), testWant())
	path := filepath.Join(dir, "crafted.tar")
	content := craft(t, genuine, func(c *crafted) {
		c.binary("containerd").Archive, c.binary("kubelet").Archive = false, true
		c.binary("runc").URL = "https://evil.example.com/runc"
		c.image("/pause").Roles = []desired.Role{desired.ControlPlane}
		c.image("/etcd").Roles, c.image("/kube-apiserver").Roles = nil, []desired.Role{desired.Worker}
		c.Artifacts.Pushed = false
	})
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := library(t, bundleFile(t, dir, "genuine.tar", w, testWant())).For(testWant())
	if err != nil {
		t.Fatal(err)
	}
	got, err := library(t, path).For(testWant())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the bundle's word counts (-genuine +crafted):\n%s", diff)
	}
}

// With a list of digests a bundle is treated like a mirror: unknown parts are refused, unless the file's digest was
// given, or the bundle is trusted.
func TestAStrictLibraryRefusesWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, testWant(), 1), t.TempDir()
	path := bundleFile(t, dir, "b.tar", w, testWant())
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := (&world{files: map[string][]byte{"x": file}}).sum("x")
	known := published(t, w)
	less := without(t, without(t, known, "runc"), "pause")
	for name, c := range map[string]struct {
		o    LibraryOptions
		says string // "" is no error
	}{
		"all is known": {LibraryOptions{Known: known, Strict: true}, ""},
		"two are not": {LibraryOptions{Known: less, Strict: true}, "the list of digests does not contain runc 1.5.2, " +
			"image registry.k8s.io/pause:3.10.2 from bundle " + path + ": add them to the list, or confirm " +
			"the whole bundle with --bundle-sha256"},
		"the file is the right one": {LibraryOptions{Known: less, Strict: true, SHA256: []string{sum}}, ""},
		"taken at its word":         {LibraryOptions{Known: less}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := OpenLibrary(t.Context(), c.o, path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			for what, try := range map[string]func() error{
				"what a host needs": func() error { _, err := l.For(testWant()); return err },
				"the whole file":    func() error { _, err := l.Files(); return err },
			} {
				err := try()
				var untrusted *UntrustedError
				if c.says == "" && err != nil ||
					c.says != "" && (!errors.As(err, &untrusted) || err.Error() != c.says) {
					t.Errorf("%s: got %v, want %q", what, err, c.says)
				}
			}
		})
	}
}

// A bundle that hosts get as a whole must not differ from known digests, in any part.
func TestAWholeBundleIsCheckedInAllItsParts(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, testWant(), 1), t.TempDir()
	path := bundleFile(t, dir, "b.tar", w, testWant())
	less := testWant()
	less.CNI, less.KubeProxy = "external", false
	for name, c := range map[string]struct {
		known Digests
		as    any
	}{
		"unknown": {without(t, published(t, w), "flannel"), new(*UntrustedError)},
		"another": {listing(t, "a table", digits("a")+"  ghcr.io/flannel-io/flannel:v0.26.7 linux/amd64"),
			new(*MismatchError)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := OpenLibrary(t.Context(), LibraryOptions{Known: c.known, Strict: name == "unknown"}, path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			if _, err := l.For(less); err != nil {
				t.Errorf("what is needed: %v", err)
			}
			if _, err := l.Files(); err == nil || !errors.As(err, c.as) {
				t.Errorf("the whole file: %v", err)
			}
		})
	}
}

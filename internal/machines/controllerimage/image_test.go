package controllerimage

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func written(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeone")
	if err := os.WriteFile(path, content, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func made(t *testing.T, path, arch string) *Image {
	t.Helper()
	i, err := New(path, arch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close() })
	return i
}

// asRegistry presents an image as a registry would.
type asRegistry struct{ *Image }

func (r asRegistry) blob(digest string) (io.ReadCloser, error) {
	content, _, ok := r.Blob(strings.TrimPrefix(digest, "sha256:"))
	if !ok {
		return nil, errors.New("there is no blob " + digest)
	}
	return io.NopCloser(content), nil
}

func (r asRegistry) text(digest string) ([]byte, error) {
	content, err := r.blob(digest)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(content)
}

func (r asRegistry) RawManifest() ([]byte, error)   { return r.text(r.Digest) }
func (r asRegistry) RawConfigFile() ([]byte, error) { return r.text(r.Blobs[1].Digest) }
func (r asRegistry) MediaType() (types.MediaType, error) {
	return types.MediaType(r.Blobs[0].MediaType), nil
}
func (r asRegistry) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	return asLayer{r, h}, nil
}

type asLayer struct {
	asRegistry
	hash v1.Hash
}

func (l asLayer) Digest() (v1.Hash, error)           { return l.hash, nil }
func (l asLayer) Compressed() (io.ReadCloser, error) { return l.blob(l.hash.String()) }
func (l asLayer) Size() (int64, error)               { return l.Blobs[2].Size, nil }
func (l asLayer) MediaType() (types.MediaType, error) {
	return types.MediaType(l.Blobs[2].MediaType), nil
}

func TestTheImageIsOneThatOthersRead(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 511, 512, 513, 70_000} {
		content := bytes.Repeat([]byte{7, 0, 'x'}, size)[:size]
		i := made(t, written(t, content), "arm64")
		image, err := partial.CompressedToImage(asRegistry{i})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range i.Blobs {
			content, size, ok := i.Blob(strings.TrimPrefix(b.Digest, "sha256:"))
			sum := sha256.New()
			n, err := io.Copy(sum, content)
			got := "sha256:" + hex.EncodeToString(sum.Sum(nil))
			if !ok || err != nil || got != b.Digest || n != b.Size || size != b.Size {
				t.Errorf("%+v has %d bytes, of %d, and the digest %s (%v)", b, n, size, got, err)
			}
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v1.Config{Entrypoint: []string{"/kubeone"}, User: "0"}, config.Config); diff != "" ||
			config.Architecture != "arm64" || config.OS != "linux" {
			t.Errorf("%s/%s %s", config.OS, config.Architecture, diff)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%d layers, %v", len(layers), err)
		}
		if diff := cmp.Diff([]string{i.Blobs[2].Digest}, []string{config.RootFS.DiffIDs[0].String()}); diff != "" {
			t.Error(diff)
		}
		layer, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		archive := tar.NewReader(layer)
		h, err := archive.Next()
		if err != nil {
			t.Fatal(err)
		}
		if h.Name != "kubeone" || h.Mode != 0o755 || h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%+v", h)
		}
		if got, err := io.ReadAll(archive); err != nil || !bytes.Equal(got, content) {
			t.Errorf("the program is another one: %v", err)
		}
		if _, err := archive.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("behind the program: %v", err)
		}
	}
}

func TestTheSameProgramIsTheSameImage(t *testing.T) {
	t.Parallel()
	first, again := made(t, written(t, []byte("program")), "amd64"), made(t, written(t, []byte("program")), "amd64")
	if diff := cmp.Diff(first.Blobs, again.Blobs); diff != "" || first.Name != again.Name ||
		first.Digest != again.Digest {
		t.Errorf("%s, then %s: %s", first.Name, again.Name, diff)
	}
	// The beginning of what `printf program | sha256sum` prints.
	if want := "kubeone.k8c.io/kubeone:sha256-1310ca2c8932dbd1"; first.Name != want {
		t.Errorf("the name is %s, want %s", first.Name, want)
	}
	if first.Digest != first.Blobs[0].Digest {
		t.Errorf("the digest is %s, and the manifest's %s", first.Digest, first.Blobs[0].Digest)
	}
	other := made(t, written(t, []byte("another")), "amd64")
	if other.Name == first.Name || other.Digest == first.Digest {
		t.Error("another program is the same image")
	}
	if foreign := made(t, written(t, []byte("program")), "arm64"); foreign.Digest == first.Digest {
		t.Error("another architecture is the same image")
	}
	if _, _, ok := first.Blob(strings.Repeat("0", 64)); ok {
		t.Error("there is a blob that nobody knows of")
	}
}

func TestAProgramThatHasChangedIsNotUploaded(t *testing.T) {
	t.Parallel()
	path := written(t, []byte("program"))
	i := made(t, path, "amd64")
	layer, _, _ := i.Blob(i.layer)
	if err := os.WriteFile(path, []byte("PROGRAM"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(layer); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	t.Parallel()
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if _, err := New(path, "amd64"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// program64 returns an ELF file that has headers only.
func program64(t *testing.T, change func(*elf.Header64, *elf.Prog64)) []byte {
	t.Helper()
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
	h.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	p := elf.Prog64{Type: uint32(elf.PT_LOAD)}
	if change != nil {
		change(&h, &p)
	}
	var out bytes.Buffer
	for _, part := range []any{h, p} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func TestArch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file       []byte
		want, says string
	}{
		"amd64": {program64(t, nil), "amd64", ""},
		"arm64": {
			program64(t, func(h *elf.Header64, _ *elf.Prog64) { h.Machine = uint16(elf.EM_AARCH64) }), "arm64", "",
		},
		"position-independent": {
			program64(t, func(h *elf.Header64, _ *elf.Prog64) { h.Type = uint16(elf.ET_DYN) }), "amd64", "",
		},
		"for Linux only": {
			program64(t, func(h *elf.Header64, _ *elf.Prog64) { h.Ident[elf.EI_OSABI] = byte(elf.ELFOSABI_LINUX) }),
			"amd64", "",
		},
		"dynamically linked": {
			program64(t, func(_ *elf.Header64, p *elf.Prog64) { p.Type = uint32(elf.PT_INTERP) }),
			"", "is dynamically linked; the image needs a program built with CGO_ENABLED=0",
		},
		"for FreeBSD": {
			program64(t, func(h *elf.Header64, _ *elf.Prog64) { h.Ident[elf.EI_OSABI] = byte(elf.ELFOSABI_FREEBSD) }),
			"", "another operating system (ELFOSABI_FREEBSD)",
		},
		"for RISC-V": {
			program64(t, func(h *elf.Header64, _ *elf.Prog64) { h.Machine = uint16(elf.EM_RISCV) }),
			"", "another architecture (EM_RISCV)",
		},
		"an object file": {
			program64(t, func(h *elf.Header64, _ *elf.Prog64) { h.Type = uint16(elf.ET_REL) }),
			"", "is not an executable file",
		},
		"for macOS": {
			append([]byte{0xcf, 0xfa, 0xed, 0xfe}, make([]byte, 100)...), "", "cannot be read as an ELF file",
		},
		"a script": {[]byte("#!/bin/sh\n"), "", "cannot be read as an ELF file"},
		"empty":    {nil, "", "cannot be read as an ELF file"},
	} {
		path := written(t, c.file)
		got, err := Arch(path)
		if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: the error does not begin with the file: %v", name, err)
		}
	}
}

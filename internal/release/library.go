package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kubeone/internal/desired"
)

// Library is several open bundles in which every component of a host is found by itself, in whichever has it. Its
// methods may be called by several goroutines at the same time.
type Library struct{ bundles []*Bundle }

// OpenLibrary opens bundles, as Open does each. The caller closes the library. Two bundles that hold different files
// under one name and version are a *ConflictError: which of them would be installed must not depend on their order.
func OpenLibrary(paths ...string) (*Library, error) {
	l := &Library{}
	for _, path := range paths {
		b, err := Open(path)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.bundles = append(l.bundles, b)
	}
	if err := l.conflict(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close closes the bundles. Blobs that were handed out cannot be read any more.
func (l *Library) Close() error {
	var all error
	for _, b := range l.bundles {
		all = errors.Join(all, b.Close())
	}
	return all
}

// Indexes are the bundles' own descriptions, in the order in which they were opened. They are shared: the caller does
// not change them.
func (l *Library) Indexes() []Index {
	out := make([]Index, 0, len(l.bundles))
	for _, b := range l.bundles {
		out = append(out, b.index)
	}
	return out
}

// Verify reads everything that Blob returns, each part once, and compares it with its digest. Errors are those of
// Bundle.Verify.
func (l *Library) Verify(ctx context.Context) error {
	for _, b := range l.bundles {
		if err := b.verify(ctx, func(e Entry) bool { return l.holder(e.SHA256) == b }); err != nil {
			return err
		}
	}
	return nil
}

// holder is the bundle from which a part is taken: the first that has it.
func (l *Library) holder(sum string) *Bundle {
	i := slices.IndexFunc(l.bundles, func(b *Bundle) bool { _, ok := b.offsets[sum]; return ok })
	if i < 0 {
		return nil
	}
	return l.bundles[i]
}

// Blob returns the content with a digest, from whichever bundle has it, as Bundle.Blob does.
func (l *Library) Blob(digest string) (*io.SectionReader, bool) {
	b := l.holder(strings.TrimPrefix(digest, digestPrefix))
	if b == nil {
		return nil, false
	}
	return b.Blob(digest)
}

// conflict finds two different files of one name and version for one architecture.
func (l *Library) conflict() error {
	type known struct{ digest, path string }
	seen := map[string]known{}
	for _, b := range l.bundles {
		note := func(what, digest string) error {
			key := b.index.Arch + " " + what
			if before, ok := seen[key]; ok && before.digest != digest {
				return &ConflictError{
					What: what + " for linux/" + b.index.Arch, Paths: [2]string{before.path, b.path},
					Digests: [2]string{before.digest, digest},
				}
			}
			seen[key] = known{digest, b.path}
			return nil
		}
		for _, f := range b.index.Artifacts.Binaries {
			if err := note(f.Name+" "+f.Version, f.SHA256); err != nil {
				return err
			}
		}
		for _, i := range b.index.Artifacts.Images {
			if err := note("image "+i.Name, strings.TrimPrefix(i.Digest, digestPrefix)); err != nil {
				return err
			}
		}
	}
	return nil
}

// For returns what hosts need of the wanted release, each part from whichever bundle has it: nothing for a network
// plugin or a kube-proxy that is not wanted, and images under the names that the cluster uses, which are those of
// Want.OverwriteRegistry if there is one.
//
// The version of a part that the wish names, or that follows from the version of Kubernetes (kubeadm, the control
// plane's images), is that and no other. The version of every other part (runc, etcd, CoreDNS, …) is the one that a
// bundle of that version of Kubernetes has, whatever this program would choose itself; if none has the part, the one
// that this program would choose.
//
// The error is an *UnsupportedError for a release that this program does not install, or a *MissingError with all parts
// that no bundle has.
func (l *Library) For(want Want) (desired.Artifacts, error) {
	versions, err := want.versions()
	if err != nil {
		return desired.Artifacts{}, err
	}
	shelf := l.shelf(want)
	out := desired.Artifacts{KubernetesVersion: want.KubernetesVersion, Arch: want.Arch, Pushed: true}
	var missing []string
	for _, f := range want.files(versions) {
		binary, ok := shelf.binary(f)
		switch {
		case ok:
			out.Binaries = append(out.Binaries, binary)
		case !f.optional:
			missing = append(missing, f.name+" "+f.version)
		}
	}
	for _, i := range want.images(versions) {
		img, ok := shelf.image(i)
		if !ok {
			missing = append(missing, "image "+i.official())
			continue
		}
		if want.OverwriteRegistry != "" {
			img.Name = rename(img.Name, want.OverwriteRegistry)
		}
		img.Source = img.Name
		out.Images = append(out.Images, img)
	}
	if len(missing) > 0 {
		return desired.Artifacts{}, l.missing(want, missing)
	}
	return out, nil
}

// shelf is the library as one wish looks at it: the bundles of the wanted architecture, those of the wanted version of
// Kubernetes first, and in the order in which they were opened otherwise.
type shelf struct {
	home  []desired.Artifacts // of the wanted version of Kubernetes
	other []desired.Artifacts
}

func (l *Library) shelf(want Want) shelf {
	var s shelf
	for _, b := range l.bundles {
		switch {
		case b.index.Arch != want.Arch:
		case b.index.KubernetesVersion == want.KubernetesVersion:
			s.home = append(s.home, b.index.Artifacts)
		default:
			s.other = append(s.other, b.index.Artifacts)
		}
	}
	return s
}

// find returns the part that is just as wanted, or, of a part whose version is a matter of choice, the one that a
// bundle of the wanted version of Kubernetes has.
func find[T any](s shelf, parts func(desired.Artifacts) []T, same, named func(T) bool, exact bool) (T, bool) {
	in := func(bundles []desired.Artifacts, fits func(T) bool) (T, bool) {
		for _, a := range bundles {
			if i := slices.IndexFunc(parts(a), fits); i >= 0 {
				return parts(a)[i], true
			}
		}
		var none T
		return none, false
	}
	if part, ok := in(s.home, same); ok {
		return part, true
	}
	if !exact {
		if part, ok := in(s.home, named); ok {
			return part, true
		}
	}
	return in(s.other, same)
}

func (s shelf) binary(f file) (desired.Binary, bool) {
	named := func(b desired.Binary) bool { return b.Name == f.name }
	same := func(b desired.Binary) bool { return named(b) && b.Version == f.version }
	return find(s, func(a desired.Artifacts) []desired.Binary { return a.Binaries }, same, named, f.exact)
}

func (s shelf) image(i image) (desired.Image, bool) {
	same := func(have desired.Image) bool { return have.Name == i.official() }
	named := func(have desired.Image) bool { return strings.HasPrefix(have.Name, i.registry+"/"+i.repository+":") }
	return find(s, func(a desired.Artifacts) []desired.Image { return a.Images }, same, named, i.exact)
}

func (l *Library) missing(want Want, parts []string) error {
	err := &MissingError{KubernetesVersion: want.KubernetesVersion, Arch: want.Arch, Parts: parts}
	for _, b := range l.bundles {
		err.Bundles = append(err.Bundles, b.path+" has "+b.index.summary())
	}
	return err
}

// summary says which release a bundle is of.
func (i Index) summary() string {
	containerd, _ := i.Artifacts.Binary(desired.BinaryContainerd)
	out := fmt.Sprintf("Kubernetes %s and containerd %s for linux/%s, network plugin %s", i.KubernetesVersion,
		containerd.Version, i.Arch, i.CNI)
	if !i.KubeProxy {
		out += ", no kube-proxy"
	}
	return out
}

// rename puts another registry in place of an official name's host.
func rename(official, registry string) string {
	_, rest, _ := strings.Cut(official, "/")
	return strings.Trim(registry, "/") + "/" + rest
}

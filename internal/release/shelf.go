package release

import (
	"slices"
	"strings"

	"kubeone/internal/model/desired"
)

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

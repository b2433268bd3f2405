package plan

import "slices"

// Need is what the steps on one host install, or need the names of: the parts of a release for its architecture and
// role.
type Need struct {
	Host string // ID
	Arch string // as Go names it
	// Installs says that a step there puts parts of the release in place, rather than only writing their names.
	Installs bool
	// Found says that all that is needed is on the host: by this program's own names, where nobody tells others.
	Found bool
}

// Needs returns what must be known of releases before the plan can be run, one for each host, in the plan's order. A
// plan that was built without artifacts needs the same as one that was built with them.
func (p Plan) Needs() []Need {
	var out []Need
	at := map[string]int{}
	for _, s := range p.Steps {
		if !s.Intent.Kind.NamesRelease() {
			continue
		}
		if _, ok := at[s.Host]; !ok {
			at[s.Host] = len(out)
			out = append(out, Need{Host: s.Host, Arch: s.Intent.Arch, Found: true})
		}
		n := &out[at[s.Host]]
		n.Installs = n.Installs || s.Intent.Kind.Installs()
		n.Found = n.Found && !s.Intent.Kind.NeedsRelease()
	}
	return out
}

// Installs reports whether the plan puts parts of a release on any host.
func (p Plan) Installs() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Intent.Kind.Installs() })
}

package drive

import (
	"slices"

	"kubeone/internal/addons"
	"kubeone/internal/decide"
	"kubeone/internal/decide/identity"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/test/sim/world"
)

// file is a manifest. It is immutable: an edit creates another file, and runs that began with this one keep it.
type file struct {
	want desired.Cluster
	own  []addons.Addon  // the operator's own addons
	has  map[string]bool // IDs of the machines at its addresses
}

func newFile(want desired.Cluster, own []addons.Addon) *file {
	f := &file{want: want, own: own, has: map[string]bool{}}
	for _, h := range want.Hosts() {
		f.has[h.PublicAddress] = true
	}
	return f
}

// editManifest replaces the manifest by a changed copy.
func (s *Simulation) editManifest(change func(*desired.Cluster)) {
	want := s.file.want
	want.ControlPlane = append([]desired.Host(nil), want.ControlPlane...)
	want.Workers = append([]desired.Host(nil), want.Workers...)
	change(&want)
	s.file = newFile(want, s.file.own)
	s.Checker.Left = map[string]bool{}
	for _, h := range s.World.Hosts {
		s.Checker.Left[h.Name] = !s.file.has[h.ID]
	}
	s.Checker.Workers = max(s.Checker.Workers, want.Upgrade.AtOnce(len(want.Workers)))
	s.gone = false // a voter may be in the manifest again
}

// decisionInput returns the input of a decision: every machine that answers, as the host that it is. The second result
// maps machines to hosts.
func (s *Simulation) decisionInput(f *file) (decide.Input, identity.Result) {
	is := s.seenWorld()
	for _, h := range f.want.Hosts() {
		if _, there := is.Hosts[h.ID]; !there {
			is.Hosts[h.ID] = observed.Host{
				ID: h.ID, Reach: observed.Unreachable, Class: "unreachable", Problem: "no route to host",
			}
		}
	}
	if s.Off == NoRole {
		s.believeManifest(f, is)
	}
	s.compareObjects(f, &is.API)
	who := identity.Match(f.want, is)
	in := decide.Input{
		Want: who.Want, Is: who.Is, Moved: who.Moved, Contradictions: who.Contradictions, Config: configDigests(f.want),
		Addons: map[string]string{}, AddonObjects: map[string][]observed.AddonObject{}, KnowsAddons: true,
	}
	for _, a := range f.allAddons() {
		in.Addons[a.Name], in.AddonObjects[a.Name] = a.Digest, a.Identities()
		if a.Custom {
			in.CustomAddons = append(in.CustomAddons, a.Name)
		}
	}
	return in, who
}

// allAddons returns the network plugin and the operator's own addons.
func (f *file) allAddons() []addons.Addon {
	return slices.Concat([]addons.Addon{{Name: f.want.Network.CNI.Name, Digest: world.Addon}}, f.own)
}

// believeManifest makes machines report the role and name of the manifest.
func (s *Simulation) believeManifest(f *file, is observed.World) {
	for _, h := range f.want.Hosts() {
		if seen := is.Hosts[h.ID]; seen.Marker != nil && seen.Marker.Role != string(h.Role) {
			m := *seen.Marker
			m.Role, seen.Marker = string(h.Role), &m
			if h.Role == desired.Worker {
				seen.EtcdData, seen.Manifests, seen.PKI, seen.AdminConf = observed.No, nil, observed.No, observed.No
			}
			is.Hosts[h.ID] = seen
		}
	}
}

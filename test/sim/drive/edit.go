package drive

import (
	"slices"
	"strconv"
	"strings"

	"kubeone/internal/model/desired"
	"kubeone/test/sim/world"
)

// otherName is the prefix of a renamed host's hostname.
const otherName = "other-"

// refused is the setting with which no component starts. 0 is the initial setting.
const refused = 4

// SettingsOf returns the digest of the hosts' configuration in a manifest.
func SettingsOf(want desired.Cluster) string {
	switch n := want.Logging.MaxFiles; n {
	case 0:
		return world.Config
	case refused:
		return world.Refused
	default:
		return "config-" + strconv.Itoa(1+n)
	}
}

// configDigests returns these digests by host.
func configDigests(want desired.Cluster) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, h := range want.Hosts() {
		out[h.ID] = map[string]string{"kubelet": SettingsOf(want)}
	}
	return out
}

// editHosts has a person change the hosts, the settings or the addons of the manifest.
func (s *Simulation) editHosts(f Fault) {
	if f.Kind == OwnAddons {
		s.file = newFile(s.file.want, newOwnAddons(f.For))
		return
	}
	id := s.hostAt(f.Host).ID
	s.editManifest(func(want *desired.Cluster) {
		switch f.Kind {
		case Reordered:
			want.ControlPlane, want.Workers = rotateHosts(want.ControlPlane, f.Host+1), rotateHosts(want.Workers,
				f.Host+1)
		case Swapped:
			swapNames(findHost(want, id), findHost(want, s.hostAt(f.Host+1).ID))
		case Renamed:
			h := findHost(want, id)
			if name, renamed := strings.CutPrefix(h.Hostname, otherName); renamed {
				h.Hostname = name
			} else {
				h.Hostname = otherName + h.Hostname
			}
		case RoleOther:
			if s.isDispensable(want, id) {
				changeRole(want, id)
			}
		case LeftOut:
			if s.isDispensable(want, id) {
				leaveOut(want, id)
			}
		case PutBack:
			s.putBack(want)
		case Versions:
			if n := len(want.Workers); n > 0 {
				want.Workers[f.Host%n].Versions.Kubernetes = []string{OldFix, OldStep, ""}[f.For%3]
			}
		case Encryption:
			want.EncryptSecrets = f.For%2 == 1
		case Hooks:
			want.Hooks = nil
			if f.For%2 == 1 {
				want.Hooks = allHooks()
			}
		case Settings:
			want.Logging.MaxFiles = f.For % (refused + 1)
		}
	})
}

func rotateHosts(hosts []desired.Host, by int) []desired.Host {
	if len(hosts) == 0 {
		return nil
	}
	by %= len(hosts)
	return slices.Concat(hosts[by:], hosts[:by])
}

// findHost returns a pointer to the host with that ID.
func findHost(want *desired.Cluster, id string) *desired.Host {
	for _, hosts := range [][]desired.Host{want.ControlPlane, want.Workers} {
		for i := range hosts {
			if hosts[i].ID == id {
				return &hosts[i]
			}
		}
	}
	return nil
}

// swapNames swaps the hostnames of two hosts.
func swapNames(a, b *desired.Host) { a.Hostname, b.Hostname = b.Hostname, a.Hostname }

// changeRole moves a host to the other list, unless it is the last control-plane host.
func changeRole(want *desired.Cluster, id string) {
	h := *findHost(want, id)
	if h.Role == desired.ControlPlane && len(want.ControlPlane) == 1 {
		return
	}
	leaveOut(want, id)
	if h.Role == desired.ControlPlane {
		h.Role = desired.Worker
		want.Workers = append(want.Workers, h)
		return
	}
	h.Role, h.Versions = desired.ControlPlane, desired.Versions{}
	want.ControlPlane = append(want.ControlPlane, h)
}

// isDispensable reports whether a person may remove the host or change its role. That holds for a worker, and for one
// of several joined control-plane hosts, because the others know the cluster.
func (s *Simulation) isDispensable(want *desired.Cluster, id string) bool {
	if findHost(want, id).Role == desired.Worker {
		return true
	}
	others := 0
	for _, h := range want.ControlPlane {
		if m := s.World.Host(h.ID); h.ID != id && m.Disk.Joined() && m.ControlPlane {
			others++
		}
	}
	return others > 1
}

func leaveOut(want *desired.Cluster, id string) {
	out := func(h desired.Host) bool { return h.ID == id }
	want.ControlPlane = slices.DeleteFunc(want.ControlPlane, out)
	want.Workers = slices.DeleteFunc(want.Workers, out)
}

// putBack adds the initial hosts that the manifest lacks.
func (s *Simulation) putBack(want *desired.Cluster) {
	first := newManifest(s.ControlPlanes, s.Workers)
	for _, h := range first.Hosts() {
		switch {
		case findHost(want, h.ID) != nil:
		case h.Role == desired.ControlPlane:
			want.ControlPlane = append(want.ControlPlane, h)
		default:
			want.Workers = append(want.Workers, h)
		}
	}
}

// correctManifest has a person correct roles and names in the manifest for hosts that have joined, have begun to, or
// have a Node. It removes versions of single hosts, and refused settings. It keeps the order and adds no hosts. It
// reports whether it changed anything.
func (s *Simulation) correctManifest() bool {
	before, wrong := s.file.want.Hosts(), s.file.want.Logging.MaxFiles == refused
	first := newManifest(s.ControlPlanes, s.Workers)
	first.Workers = append(first.Workers, poolHosts(s.Pool)...)
	s.editManifest(func(want *desired.Cluster) {
		hosts := want.Hosts()
		want.ControlPlane, want.Workers = nil, nil
		if wrong {
			want.Logging.MaxFiles = 0
		}
		for _, h := range hosts {
			was := findHost(&first, h.ID)
			h.Hostname, h.Role, h.Versions = was.Hostname, was.Role, desired.Versions{}
			switch m := s.World.Host(h.ID).Disk.Marker; {
			case m != nil:
				h.Hostname, h.Role = m.Node, m.Role
			case s.World.ControlPlaneNode(h.Hostname):
				h.Role = desired.ControlPlane
			}
			if h.Role == desired.ControlPlane {
				want.ControlPlane = append(want.ControlPlane, h)
			} else {
				want.Workers = append(want.Workers, h)
			}
		}
	})
	return wrong || !slices.EqualFunc(before, s.file.want.Hosts(), func(a, b desired.Host) bool {
		return a.ID == b.ID && a.Hostname == b.Hostname && a.Role == b.Role && a.Versions == b.Versions
	})
}

package drive

import (
	"slices"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/machines/rollout"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/problem"
	"kubeone/test/sim/safety"
	"kubeone/test/sim/world"
)

// recordedSettings returns the settings in the cluster's record for controllers. A run writes them there after every
// control-plane host has them. Until then the record has the former ones.
func (s *Simulation) recordedSettings() int {
	var have []string
	for _, h := range s.World.Hosts {
		if d := h.Disk.Digest; h.ControlPlane && h.Disk.Joined() && d != "" && !slices.Contains(have, d) {
			have = append(have, d)
		}
	}
	if len(have) == 1 {
		for n := range refused {
			if SettingsOf(withSettings(desired.Cluster{}, n)) == have[0] {
				s.settings = n
			}
		}
	}
	return s.settings
}

func withSettings(want desired.Cluster, n int) desired.Cluster {
	want.Logging.MaxFiles = n
	return want
}

// needsSettings reports whether the Machine's host is a Node with other settings than the record.
func (s *Simulation) needsSettings(m *machine) bool {
	d := &m.host.Disk
	return s.hasNode(m) && d.Digest != "" &&
		d.Digest != SettingsOf(withSettings(desired.Cluster{}, s.recordedSettings()))
}

// hasNode reports whether the host is the Machine's Node.
func (s *Simulation) hasNode(m *machine) bool {
	d := &m.host.Disk
	return d.Joined() && d.Marker != nil && d.Marker.Machine == m.uid
}

// giveTurn gives the Machine its turn to get new settings when it is due, and ends the turn when nothing differs.
func (s *Simulation) giveTurn(m *machine) {
	if m.turn = m.turn && s.needsSettings(m); m.turn || !s.needsSettings(m) || m.gone {
		return
	}
	turns := rollout.NextSettings(s.rolloutMembers(), rollout.Limits{
		AtOnce: s.file.want.Upgrade.AtOnce, Canary: s.file.want.Upgrade.Canary,
	})
	if m.turn = slices.Contains(turns.Next, m.uid); !m.turn {
		return
	}
	given := 0
	for _, other := range s.machines {
		if other.turn && s.needsSettings(other) && !other.gone {
			given++
		}
	}
	if most := max(1, s.file.want.Upgrade.AtOnce(len(s.machines))); given > most {
		s.Checker.Break(safety.Unavailable, "%d Machines are given other settings at a time, and %d may be",
			given, most)
	}
}

// rolloutMembers returns the Machines that are Nodes.
func (s *Simulation) rolloutMembers() []rollout.Member {
	var out []rollout.Member
	r := s.World.EtcdCluster()
	for _, m := range s.machines {
		if m.gone || !s.hasNode(m) || r == nil {
			continue
		}
		n := r.Objects.Node(m.host.Name)
		one := rollout.Member{Name: m.uid, Turn: m.turn && s.needsSettings(m), Settings: rollout.SettingsCurrent}
		one.Ready = n != nil && n.Ready
		one.Changing = one.Ready && !one.Turn && n.Kubelet != m.kubelet
		if s.needsSettings(m) {
			one.Settings = rollout.SettingsDiffer
		}
		out = append(out, one)
	}
	return out
}

// awaitsTurn reports whether the Machine only waits for its turn to get new settings.
func (s *Simulation) awaitsTurn(m *machine) bool {
	first := s.lookAtMachine(m).first
	return first.Route == fsm.Wait && problem.Has(first.Problems, problem.SettingsLater)
}

func (m *machine) mayGet() decide.Turn {
	if m.turn {
		return decide.Now
	}
	return decide.NotYet
}

// haveSettings checks that hosts of Machines have the settings of the record.
func (s *Simulation) haveSettings(r *world.EtcdCluster) {
	for _, m := range s.machines {
		if n := r.Objects.Node(m.host.Name); s.needsSettings(m) && n != nil && !s.heldBack(m) {
			s.Checker.Break(safety.Converged, "the host of Machine %s has other settings than the record: %s", m.uid,
				m.host.Disk.Digest)
		}
	}
}

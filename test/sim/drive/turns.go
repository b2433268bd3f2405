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

// recorded are the settings that controllers find in the cluster's record: a run leaves there what it has given to
// every control-plane host. Meanwhile they are those of before.
func (s *Simulation) recorded() int {
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

// differs reports whether the Machine's host is a Node and has other settings than the record.
func (s *Simulation) differs(m *machine) bool {
	d := &m.host.Disk
	return s.has(m) && d.Digest != "" && d.Digest != SettingsOf(withSettings(desired.Cluster{}, s.recorded()))
}

// has reports whether the host is the Machine's Node.
func (s *Simulation) has(m *machine) bool {
	d := &m.host.Disk
	return d.Joined() && d.Marker != nil && d.Marker.Machine == m.uid
}

// giveTurn gives the Machine its turn to get other settings, if it is its turn, and takes it where nothing differs any
// more.
func (s *Simulation) giveTurn(m *machine) {
	if m.turn = m.turn && s.differs(m); m.turn || !s.differs(m) || m.gone {
		return
	}
	turns := rollout.NextSettings(s.members(), rollout.Limits{
		AtOnce: s.file.want.Upgrade.AtOnce, Canary: s.file.want.Upgrade.Canary,
	})
	if m.turn = slices.Contains(turns.Next, m.uid); !m.turn {
		return
	}
	given := 0
	for _, other := range s.machines {
		if other.turn && s.differs(other) && !other.gone {
			given++
		}
	}
	if most := max(1, s.file.want.Upgrade.AtOnce(len(s.machines))); given > most {
		s.Checker.Break(safety.Unavailable, "%d Machines are given other settings at a time, and %d may be",
			given, most)
	}
}

// members are the Machines that are Nodes.
func (s *Simulation) members() []rollout.Member {
	var out []rollout.Member
	r := s.World.EtcdCluster()
	for _, m := range s.machines {
		if m.gone || !s.has(m) || r == nil {
			continue
		}
		n := r.Objects.Node(m.host.Name)
		one := rollout.Member{Name: m.uid, Turn: m.turn && s.differs(m), Settings: rollout.SettingsCurrent}
		one.Ready = n != nil && n.Ready
		one.Changing = one.Ready && !one.Turn && n.Kubelet != m.kubelet
		if s.differs(m) {
			one.Settings = rollout.SettingsDiffer
		}
		out = append(out, one)
	}
	return out
}

// awaitsTurn reports whether nothing is left to do for the Machine but to give its host other settings, in its turn.
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

// haveSettings checks that hosts of Machines have what the record has.
func (s *Simulation) haveSettings(r *world.EtcdCluster) {
	for _, m := range s.machines {
		if n := r.Objects.Node(m.host.Name); s.differs(m) && n != nil && !s.heldBack(m) {
			s.Checker.Break(safety.Converged, "the host of Machine %s has other settings than the record: %s", m.uid,
				m.host.Disk.Digest)
		}
	}
}

package drive

import "kubeone/test/sim/safety"

// maxRecoveries limits the runs of recover that a person tries.
const maxRecoveries = 6

// noteQuorum records whether the faults have destroyed etcd's quorum. It resets that once a recovery has started
// another etcd.
func (s *Simulation) noteQuorum() {
	if n := s.Checker.Recoveries; n != s.recoveries {
		s.recoveries, s.gone = n, false
	}
	s.gone = s.gone || s.lostQuorum()
}

// recoverQuorum lets a person recover the cluster from a member with its data, and replace machines that were removed.
// It reports whether the cluster has an etcd again. If no running host has its data, only a refusal is expected.
func (s *Simulation) recoverQuorum() bool {
	s.finishOthers()
	s.noteQuorum()
	if s.strangeVoter() || !s.lostQuorum() {
		return false // only a person can remove it, or another cluster has taken its place
	}
	for range maxRecoveries {
		on := s.chooseHost()
		if !s.gone || on == "" || s.Checker.Found() != nil {
			break
		}
		if result := s.runRecovery(request{command: recoverCluster}); result == Refused && s.gone {
			s.oneRun() // a refused recovery may need apply, which starts and renews what it can
			s.finishOthers()
			s.runRecovery(request{command: recoverCluster, on: on})
		}
		s.noteQuorum()
	}
	if s.Checker.Found() == nil && s.gone && s.chooseHost() != "" && !s.isExcused() {
		s.Checker.Break(safety.Converged, "etcd's data is there, and %d recoveries have not brought it back",
			maxRecoveries)
	}
	if !s.gone {
		s.Recovered++
		for _, h := range s.World.Hosts {
			if !h.Up && s.file.has[h.ID] {
				s.traceEvent("a new machine in the place of %s", h.Name)
				s.World.Replace(h)
			}
		}
	}
	return !s.gone
}

func (s *Simulation) runRecovery(r request) Result {
	result, _ := s.toItsEnd(s.startRequest(r))
	s.finishOthers()
	return result
}

// isExcused reports whether a recovery is refused for a reason that the simulator cannot resolve: the cluster has
// another version than the manifest, or the keys are lost too.
func (s *Simulation) isExcused() bool {
	for _, h := range s.World.Hosts {
		if d := h.Disk; h.ControlPlane && (d.API != "" && d.API != Wanted || d.Lost != "" && d.Lost != Wanted) {
			return true
		}
	}
	h := s.World.Host(s.chooseHost())
	return h.Disk.CA == 0
}

// strangeVoter reports whether etcd has a voter on a machine outside the manifest.
func (s *Simulation) strangeVoter() bool {
	r := s.World.EtcdCluster()
	for _, m := range r.Members {
		if h := s.World.HostOf(r, m.ID); h != nil && !s.file.has[h.ID] {
			return true
		}
	}
	return false
}

package drive

import (
	"maps"
	"slices"

	"kubeone/internal/model/observed"
	"kubeone/test/sim/world"
)

// longestLook limits the duration of a round of probes in seconds. It is as long as probes wait for a host that has
// begun to answer.
const longestLook = 30

// scheduleAnswers makes rounds of probes take time. The host answers at their start or at their end, and everything
// else at the other one.
func (s *Simulation) scheduleAnswers(f Fault, h *world.Host) {
	s.answering[h] = f.Kind
	s.lasting = append(s.lasting, ending{s.moment + f.For, func() { delete(s.answering, h) }})
}

// observeRound returns the result of a round that ends now: hosts' answers from its start together with those from its
// end.
func (s *Simulation) observeRound() observed.World {
	is := s.World.Observe()
	if s.before == nil {
		return is
	}
	late := slices.Contains(slices.Collect(maps.Values(s.answering)), Late)
	seen, other := is, *s.before
	if late {
		seen, other = other, is
	}
	for h, when := range s.answering {
		if answer, there := other.Hosts[h.ID]; there && (when == Late) == late {
			seen.Hosts[h.ID] = answer
		}
	}
	return seen
}

// seenVersion returns the version of the world that a round shows, or 0 for a round that took time and saw several
// versions.
func (s *Simulation) seenVersion() int {
	if s.before != nil {
		return 0
	}
	return s.World.Version
}

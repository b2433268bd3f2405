package drive

import (
	"maps"
	"slices"

	"kubeone/internal/model/observed"
	"kubeone/test/sim/world"
)

// longestLook is how many seconds a look may take: as long as probes wait for a host that has begun to answer.
const longestLook = 30

// answers lets looks take time: the host answers when they begin, or when they end, and everything else otherwise.
func (s *Simulation) answers(f Fault, h *world.Host) {
	s.answering[h] = f.Kind
	s.lasting = append(s.lasting, ending{s.moment + f.For, func() { delete(s.answering, h) }})
}

// observe is what a look finds that ends now: the answers that hosts gave when it began beside those of its end.
func (s *Simulation) observe() observed.World {
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

// seenVersion is the version of the world that a look shows; 0 of one that took time, in which there were several.
func (s *Simulation) seenVersion() int {
	if s.before != nil {
		return 0
	}
	return s.World.Version
}

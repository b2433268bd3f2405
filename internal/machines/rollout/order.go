package rollout

import (
	"cmp"
	"strings"
)

// byAge orders machines from oldest to newest.
func byAge(a, b Machine) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name))
}

// compareForDeletion orders machines for deletion: first those marked by an operator, then unhealthy, unavailable and
// outdated ones, and the rest by policy.
func (p *planner) compareForDeletion(a, b *Machine) int {
	return cmp.Or(
		trueFirst(a.DeleteFirst, b.DeleteFirst),
		trueFirst(a.Unhealthy, b.Unhealthy),
		trueFirst(!p.isAvailable(a), !p.isAvailable(b)),
		trueFirst(p.isOutdated(a), p.isOutdated(b)),
		p.byPolicy(a, b),
		strings.Compare(a.Name, b.Name),
	)
}

func (p *planner) byPolicy(a, b *Machine) int {
	if p.DeletePolicy == Oldest {
		return a.Created.Compare(b.Created)
	}
	return b.Created.Compare(a.Created)
}

// compareForUpdate orders outdated machines for their update: first unavailable ones, then those marked by an operator,
// those with the oldest template, and the oldest machines.
func (p *planner) compareForUpdate(a, b *Machine) int {
	return cmp.Or(
		trueFirst(!p.isAvailable(a), !p.isAvailable(b)),
		trueFirst(a.DeleteFirst, b.DeleteFirst),
		cmp.Compare(p.nextRevision(a.Set), p.nextRevision(b.Set)),
		a.Created.Compare(b.Created),
		strings.Compare(a.Name, b.Name),
	)
}

func (p *planner) nextRevision(set string) int64 {
	if s := p.setByName(set); s != nil {
		return s.Revision
	}
	return 0
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

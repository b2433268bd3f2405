package rollout

import (
	"cmp"
	"strings"
)

// byAge orders machines as they were made.
func byAge(a, b Machine) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name))
}

// missedLess orders machines by who is missed less: the one that somebody named, one that is lost, one that does not
// work, one of a former template, and then as the policy says.
func (p *planner) missedLess(a, b *Machine) int {
	return cmp.Or(
		yesFirst(a.DeleteFirst, b.DeleteFirst),
		yesFirst(a.Unhealthy, b.Unhealthy),
		yesFirst(!p.isAvailable(a), !p.isAvailable(b)),
		yesFirst(p.isOutdated(a), p.isOutdated(b)),
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

// convertedFirst orders outdated machines by who becomes one of the new template first: one that does not work, the one
// that somebody named, one of the oldest template, the oldest.
func (p *planner) convertedFirst(a, b *Machine) int {
	return cmp.Or(
		yesFirst(!p.isAvailable(a), !p.isAvailable(b)),
		yesFirst(a.DeleteFirst, b.DeleteFirst),
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

func yesFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

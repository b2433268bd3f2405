// Package quorum computes etcd's majorities: whether a list of members has a quorum, and whether a member may be
// stopped for a while or removed. A member that is not known to be healthy counts as dead.
package quorum

import (
	"fmt"

	"kubeone/internal/model/observed"
)

// Of returns how many of n voters must agree: ⌊n/2⌋+1. For no voters it is 1, which cannot be reached.
func Of(n int) int { return n/2 + 1 }

// Tally counts a list of members. A voter is alive only if it is known to be healthy; learners do not vote.
type Tally struct {
	Voters   int `json:"voters"`
	Alive    int `json:"alive"`
	Learners int `json:"learners,omitempty"`
}

// Count counts the members.
func Count(members []observed.Member) Tally {
	var t Tally
	for _, m := range members {
		switch {
		case m.Learner:
			t.Learners++
		default:
			t.Voters++
			if m.Healthy == observed.Yes {
				t.Alive++
			}
		}
	}
	return t
}

// Holds reports whether the living voters are a quorum.
func (t Tally) Holds() bool { return t.Voters > 0 && t.Alive >= Of(t.Voters) }

// String returns the arithmetic: "2 of 3 voters healthy, quorum 2".
func (t Tally) String() string {
	return fmt.Sprintf("%d of %d voters healthy, quorum %d", t.Alive, t.Voters, Of(t.Voters))
}

// Verdict reports whether something may be done to a member, with the arithmetic.
type Verdict struct {
	Safe bool
	// Outage says that the data is safe, but etcd does not answer during this time.
	Outage bool
	Why    string
	Left   Tally // the other members
}

// SafeToStop reports whether the member with that ID may be stopped for a while, as an upgrade does: the healthy others
// must be a quorum of all voters. With one or two voters that is impossible; they may be stopped with an outage, if all
// voters are healthy. A learner may always be stopped; a member that is not in the list must not.
func SafeToStop(members []observed.Member, id string) Verdict {
	m, others := Without(members, id)
	if m == nil {
		return Verdict{Why: "etcd does not list member " + id + ""}
	}
	all, rest := Count(members), Count(others)
	why := fmt.Sprintf("%d other voters healthy, quorum of %d voters %d", rest.Alive, all.Voters, Of(all.Voters))
	switch {
	case m.Learner, rest.Alive >= Of(all.Voters):
		return Verdict{Safe: true, Why: why, Left: rest}
	case all.Voters <= 2 && rest.Alive == rest.Voters:
		return Verdict{Safe: true, Outage: true, Why: why + ": etcd does not answer during this time", Left: rest}
	}
	return Verdict{Why: why, Left: rest}
}

// SafeToRemove reports whether the member with that ID may be removed: the list must have quorum now, because members
// agree on a removal, and the remaining healthy voters must be a quorum of the remaining voters. Unknown health counts
// as unhealthy. The last voter may never leave.
func SafeToRemove(members []observed.Member, id string) Verdict {
	m, others := Without(members, id)
	if m == nil {
		return Verdict{Why: "etcd does not list member " + id + ""}
	}
	all, rest := Count(members), Count(others)
	why := fmt.Sprintf("without it %d of %d voters healthy, quorum %d", rest.Alive, rest.Voters, Of(rest.Voters))
	return Verdict{Safe: all.Holds() && rest.Holds(), Why: why, Left: rest}
}

// Merged returns each member once, in order of first appearance: a voter if any entry says so, and with its name if any
// entry has it. Entries differ if they were written at different times.
func Merged(members []observed.Member) []observed.Member {
	var out []observed.Member
	for _, m := range members {
		known, _ := Without(out, m.ID)
		if known == nil {
			out = append(out, m)
			continue
		}
		known.Learner = known.Learner && m.Learner
		if known.Name == "" {
			known.Name = m.Name
		}
	}
	return out
}

// Without returns the member with that ID, nil if there is none, and the others.
func Without(members []observed.Member, id string) (*observed.Member, []observed.Member) {
	var found *observed.Member
	others := make([]observed.Member, 0, len(members))
	for i := range members {
		if members[i].ID == id {
			found = &members[i]
			continue
		}
		others = append(others, members[i])
	}
	return found, others
}

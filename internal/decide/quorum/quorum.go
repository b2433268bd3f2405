// Package quorum is the arithmetic of etcd's majorities: whether a list of members has a quorum, and whether one member
// of it may be stopped for a while or leave for ever. A member that is not known to be healthy counts as dead.
package quorum

import (
	"fmt"

	"kubeone/internal/model/observed"
)

// Of returns how many of n voters must agree: ⌊n/2⌋+1. No voters have no quorum that could be reached; it is 1.
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

// Holds reports whether the voters that are alive are a quorum.
func (t Tally) Holds() bool { return t.Voters > 0 && t.Alive >= Of(t.Voters) }

// String returns the arithmetic: "2 of 3 voters healthy, quorum 2".
func (t Tally) String() string {
	return fmt.Sprintf("%d of %d voters healthy, quorum %d", t.Alive, t.Voters, Of(t.Voters))
}

// Verdict is whether something may be done to one member, and the arithmetic.
type Verdict struct {
	Safe bool
	// Outage says that it is safe for the data, and that etcd does not answer meanwhile.
	Outage bool
	Why    string
	Left   Tally // the other members
}

// SafeToStop reports whether the member with that ID may be stopped for a while, as an upgrade does: the healthy others
// must be a quorum of all voters. A cluster of one or two voters has no such others; it may be stopped with an outage,
// if all its voters are healthy. A learner may always be stopped; a member that is not in the list must not.
func SafeToStop(members []observed.Member, id string) Verdict {
	m, others := Without(members, id)
	if m == nil {
		return Verdict{Why: "no member " + id + " in etcd's list"}
	}
	all, rest := Count(members), Count(others)
	why := fmt.Sprintf("%d other voters healthy, quorum of %d voters %d", rest.Alive, all.Voters, Of(all.Voters))
	switch {
	case m.Learner, rest.Alive >= Of(all.Voters):
		return Verdict{Safe: true, Why: why, Left: rest}
	case all.Voters <= 2 && rest.Alive == rest.Voters:
		return Verdict{Safe: true, Outage: true, Why: why + ": etcd does not answer meanwhile", Left: rest}
	}
	return Verdict{Why: why, Left: rest}
}

// SafeToRemove reports whether the member with that ID may leave for ever: the list must hold its quorum now, for a
// removal has to be agreed upon, and the healthy voters left must be a quorum of the voters left. What is not known to
// be healthy is not. The last voter may never leave.
func SafeToRemove(members []observed.Member, id string) Verdict {
	m, others := Without(members, id)
	if m == nil {
		return Verdict{Why: "no member " + id + " in etcd's list"}
	}
	all, rest := Count(members), Count(others)
	why := fmt.Sprintf("without it %d of %d voters healthy, quorum %d", rest.Alive, rest.Voters, Of(rest.Voters))
	return Verdict{Safe: all.Holds() && rest.Holds(), Why: why, Left: rest}
}

// Merged returns each of the members once, in the order in which they first come: a voter if any of its accounts calls
// it one, and with its name if any has that. Accounts differ where they were written at different times.
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

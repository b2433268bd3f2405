package etcd

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"kubeone/internal/model/observed"
)

// Observe reads the member list, then the status of every member in parallel. A member is healthy if it answers, sees a
// leader, and has no CORRUPT alarm. A member that does not answer is not an error; its Healthy is No. Observe returns
// an error if it cannot read the list or the alarms, or ErrSlow.
//
// If a quorum has agreed on the list but fewer voters than a quorum report their status in time, etcd is only busy.
// Observe then asks the others again and waits for PatientAnswer, so that a busy etcd does not look like one that has
// lost quorum. If there are still too few, it returns ErrSlow.
//
// If a quorum of voters reports but some see no leader, an election is in progress. Observe asks them again until they
// see a leader, for at most Access.Election.
//
// Requests: one for the list, one per started member except the one asked at Connect, and one for alarms if a member
// reports any.
func (c *Client) Observe(ctx context.Context) (observed.Etcd, error) {
	l, err := c.pollMembers(ctx)
	if err != nil {
		return observed.Etcd{}, err
	}
	if l.isElecting() {
		l = c.awaitLeader(ctx, l)
	}
	out := observed.Etcd{Reached: observed.Yes, Members: make([]observed.Member, len(l.members))}
	if !l.agreed {
		out.Problem = "no quorum answers; the member list is from the member on " + c.via.ID + " and may be outdated"
	}
	var alarms Alarms
	if l.agreed { // without quorum, alarms cannot be read, and no member is healthy anyway
		if alarms, err = c.alarmsOf(ctx, l.statuses); err != nil {
			return observed.Etcd{}, err
		}
	}
	for i, m := range l.members {
		out.Members[i] = observeMember(m, l.statuses[i], alarms.alarmsOf(m.ID))
	}
	for _, a := range alarms.alarmsOfUnlisted(l.members) {
		out.Orphans = append(out.Orphans, observed.Alarm{Member: HexID(a.Member), Name: a.Name})
	}
	slices.SortFunc(out.Members, func(a, b observed.Member) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// poll holds the answers of the members: the list, whether a quorum agreed on it, and each status. The status of a
// member that did not answer is nil.
type poll struct {
	members  []Member
	agreed   bool
	statuses []*Status
}

// pollMembers asks every member once, except the connected member, which reported its status at Connect.
func (c *Client) pollMembers(ctx context.Context) (poll, error) {
	members, agreed, err := c.Members(ctx)
	if err != nil {
		return poll{}, err
	}
	l := poll{members: members, agreed: agreed, statuses: make([]*Status, len(members))}
	for i, m := range members {
		if m.ID == c.self.Header.GetMemberId() {
			self := statusOf(c.self)
			l.statuses[i] = &self
		}
	}
	c.askStatuses(ctx, c.answer, members, l.statuses)
	if agreed && !l.hasQuorumAnswered() {
		c.askStatuses(ctx, PatientAnswer, members, l.statuses)
		if !l.hasQuorumAnswered() {
			return poll{}, ErrSlow
		}
	}
	return l, nil
}

// askStatuses fills in the missing statuses. It leaves nil for members that do not answer within the limit.
func (c *Client) askStatuses(ctx context.Context, limit time.Duration, members []Member, statuses []*Status) {
	var wait sync.WaitGroup
	for i, m := range members {
		if statuses[i] != nil {
			continue
		}
		wait.Go(func() {
			if s, err := c.statusWithin(ctx, limit, m); err == nil {
				statuses[i] = &s
			}
		})
	}
	wait.Wait()
}

// hasQuorumAnswered reports whether a quorum of voters reported a status.
func (l poll) hasQuorumAnswered() bool {
	voters, answers := 0, 0
	for i, m := range l.members {
		if m.Learner {
			continue
		}
		voters++
		if l.statuses[i] != nil {
			answers++
		}
	}
	return answers > voters/2
}

// alarmsOf reads the alarms if a member reports any. Statuses cannot be used, because they contain alarms only as text.
func (c *Client) alarmsOf(ctx context.Context, statuses []*Status) (Alarms, error) {
	for _, s := range statuses {
		if s != nil && len(s.Errors) > 0 {
			return c.Alarms(ctx)
		}
	}
	return nil, nil
}

func observeMember(m Member, s *Status, alarms []string) observed.Member {
	out := observed.Member{
		ID: HexID(m.ID), Name: m.Name, PeerURLs: m.PeerURLs, Learner: m.Learner, Healthy: observed.No, Alarms: alarms,
	}
	if s == nil {
		return out
	}
	out.Healthy = observed.Of(s.Leader != 0 && !slices.Contains(alarms, "CORRUPT"))
	out.Leader = s.Leader == m.ID
	out.Version, out.DBSize = s.Version, s.DBSize
	return out
}

package etcd

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"kubeone/internal/model/observed"
)

// Observe reads the membership, then every member's status in parallel. A member that does not answer is a fact
// (Healthy No). An error is an unknown membership, an alarm that cannot be read, or ErrSlow. Healthy means that the
// member answered, sees a leader, and has no CORRUPT alarm.
//
// If the quorum has just agreed on the list, it exists even if members do not report their own status at once. So if
// fewer voters than a quorum report, the silent ones are asked once more and get PatientAnswer: a busy cluster never
// looks like one without quorum. If still too few report, the error is ErrSlow.
//
// If a quorum of voters reports but some see no leader, an election is running. They are asked again until they have
// a leader, for at most Access.Election.
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
	if l.agreed { // otherwise no answer comes, and no member is healthy without a leader anyway
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

// poll holds the members' answers: the list, whether a quorum agreed on it, and each status; nil if a member did not
// answer.
type poll struct {
	members  []Member
	agreed   bool
	statuses []*Status
}

// pollMembers asks once. The member asked at Connect has reported its status then.
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

// askStatuses reads the missing statuses. Members that do not answer within the limit stay nil.
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

// alarmsOf reads the alarms if a member reports any: a status names them only in words.
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

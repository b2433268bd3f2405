package etcd

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"kubeone/internal/model/observed"
)

// Observe asks the membership, and then every member for its status, all at once. A member that does not answer is a
// fact (Healthy No); only an unknown membership, an alarm of which nothing more can be learned, or ErrSlow is an error.
// Healthy means: it answered, sees a leader, and has no CORRUPT alarm.
//
// A quorum that has just agreed on the list is there, whoever of it does not answer for itself at once. So where fewer
// voters than that answer, those that are silent are asked once more and given PatientAnswer: a busy cluster is
// never called one that lost its quorum. With fewer answers even then it is ErrSlow.
//
// Where so many voters answer that they are a quorum, and some see no leader, an election is under way: they are asked
// again until they have one, for Access.Election at most.
//
// Requests: one for the list, one per started member but the one asked at Connect, and one for the alarms if a member
// complains.
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
		out.Problem = "no quorum answers; the member list is what the member on " + c.via.ID + " last knew"
	}
	var alarms Alarms
	if l.agreed { // else there is no answer, and no member sees a leader: none is healthy anyway
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

// poll is what the members have said: who they are, whether a quorum agreed on that, and how each is, nil where it did
// not answer.
type poll struct {
	members  []Member
	agreed   bool
	statuses []*Status
}

// pollMembers asks once. The member asked at Connect has said then how it is.
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

// askStatuses puts the status of every member that has none yet in its place, and leaves nil for those that do not
// answer within the limit.
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

// hasQuorumAnswered reports whether so many voters gave their status that they are a quorum.
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

// alarmsOf asks for the alarms if anyone complains: a status names them only in words.
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

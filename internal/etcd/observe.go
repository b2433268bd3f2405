package etcd

import (
	"context"
	"slices"
	"strings"
	"sync"

	"kubeone/internal/observed"
)

// Observe asks the membership, and then every member for its status, all at once. A member that does not answer is a
// fact (Healthy No); only an unknown membership, or an alarm of which nothing more can be learned, is an error.
// Healthy means: it answered, sees a leader, and has no CORRUPT alarm.
//
// Requests: one for the list, one per started member but the one asked at Connect, and one for the alarms if a member
// complains.
func (c *Client) Observe(ctx context.Context) (observed.Etcd, error) {
	members, agreed, err := c.Members(ctx)
	if err != nil {
		return observed.Etcd{}, err
	}
	out := observed.Etcd{Reached: observed.Yes, Members: make([]observed.Member, len(members))}
	if !agreed {
		out.Problem = "no quorum answers; the member list is what the member on " + c.via.ID + " last knew"
	}
	statuses := c.statuses(ctx, members)
	var alarms Alarms
	if agreed { // else there is no answer, and no member sees a leader: none is healthy anyway
		if alarms, err = c.alarmsOf(ctx, statuses); err != nil {
			return observed.Etcd{}, err
		}
	}
	for i, m := range members {
		out.Members[i] = observe(m, statuses[i], alarms.of(m.ID))
	}
	for _, a := range alarms.orphans(members) {
		out.Orphans = append(out.Orphans, observed.Alarm{Member: HexID(a.Member), Name: a.Name})
	}
	slices.SortFunc(out.Members, func(a, b observed.Member) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// statuses are what the members said, in their order; nil for those that did not answer.
func (c *Client) statuses(ctx context.Context, members []Member) []*Status {
	out := make([]*Status, len(members))
	var wait sync.WaitGroup
	for i, m := range members {
		if m.ID == c.self.Header.GetMemberId() {
			self := statusOf(c.self)
			out[i] = &self
			continue
		}
		wait.Go(func() {
			if s, err := c.Status(ctx, m); err == nil {
				out[i] = &s
			}
		})
	}
	wait.Wait()
	return out
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

func observe(m Member, s *Status, alarms []string) observed.Member {
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

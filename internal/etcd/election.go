package etcd

import (
	"context"
	"time"

	"kubeone/internal/retry"
)

// electionWithin limits the wait for an election. Members notice the loss of a leader after a second, and need another
// second if they do not agree at once. electionEvery is the pause between checks.
const (
	electionWithin = 5 * time.Second
	electionEvery  = 250 * time.Millisecond
)

// isElecting reports whether a quorum of voters answered, but did not agree on the list or some of them see no leader.
func (l poll) isElecting() bool {
	return l.hasQuorumAnswered() && (!l.agreed || len(l.leaderlessVoters()) > 0)
}

// leaderlessVoters returns the indices of voters that answered and see no leader.
func (l poll) leaderlessVoters() []int {
	var out []int
	for i, m := range l.members {
		if s := l.statuses[i]; s != nil && s.Leader == 0 && !m.Learner {
			out = append(out, i)
		}
	}
	return out
}

// memberStatus returns the status of a member, or nil if it did not answer.
func (l poll) memberStatus(id uint64) *Status {
	for i, m := range l.members {
		if m.ID == id {
			return l.statuses[i]
		}
	}
	return nil
}

// awaitLeader polls until the members have a leader, for at most Access.Election, and returns the last poll.
func (c *Client) awaitLeader(ctx context.Context, l poll) poll {
	pollUntil(ctx, c.election, electionEvery, func(ctx context.Context) bool {
		l = c.pollAgain(ctx, l)
		return !l.isElecting()
	})
	return l
}

// pollAgain asks the members that saw no leader again. It reads the list again if no quorum had agreed on it. If there
// is no answer, the previous result stays.
func (c *Client) pollAgain(ctx context.Context, l poll) poll {
	next := l
	if !l.agreed {
		if members, agreed, err := c.Members(ctx); err == nil {
			next = poll{members: members, agreed: agreed, statuses: make([]*Status, len(members))}
			for i, m := range members {
				next.statuses[i] = l.memberStatus(m.ID)
			}
		}
	}
	which := next.leaderlessVoters()
	members, statuses := make([]Member, len(which)), make([]*Status, len(which))
	for n, i := range which {
		members[n] = next.members[i]
	}
	c.askStatuses(ctx, c.answer, members, statuses)
	for n, i := range which {
		if statuses[n] != nil {
			next.statuses[i] = statuses[n]
		}
	}
	return next
}

// pollUntil pauses and calls ask repeatedly, until ask returns true, the limit has passed, or ctx ends.
func pollUntil(ctx context.Context, limit, pause time.Duration, ask func(context.Context) bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for retry.Pause(ctx, pause) {
		if ask(ctx) {
			return
		}
	}
}

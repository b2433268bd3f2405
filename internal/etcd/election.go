package etcd

import (
	"context"
	"time"

	"kubeone/internal/retry"
)

// electionWithin is how long an election may take: members notice after a second that they have lost their leader, and
// need as long again where they do not agree at once. electionEvery is the pause between two looks at it.
const (
	electionWithin = 5 * time.Second
	electionEvery  = 250 * time.Millisecond
)

// isElecting reports whether the voters that answered could elect a leader, and have not agreed on one yet.
func (l poll) isElecting() bool {
	return l.hasQuorumAnswered() && (!l.agreed || len(l.leaderlessVoters()) > 0)
}

// leaderlessVoters are the indices of the voters that answered and see no leader.
func (l poll) leaderlessVoters() []int {
	var out []int
	for i, m := range l.members {
		if s := l.statuses[i]; s != nil && s.Leader == 0 && !m.Learner {
			out = append(out, i)
		}
	}
	return out
}

// statusOf is what the member said; nil where it said nothing.
func (l poll) statusOf(id uint64) *Status {
	for i, m := range l.members {
		if m.ID == id {
			return l.statuses[i]
		}
	}
	return nil
}

// awaitLeader looks again until the members have a leader, or have had the time for it.
func (c *Client) awaitLeader(ctx context.Context, l poll) poll {
	pollUntil(ctx, c.election, electionEvery, func(ctx context.Context) bool {
		l = c.pollAgain(ctx, l)
		return !l.isElecting()
	})
	return l
}

// pollAgain asks those once more who saw no leader, and for the list if no quorum had agreed on it. Who does not answer
// is as before.
func (c *Client) pollAgain(ctx context.Context, l poll) poll {
	next := l
	if !l.agreed {
		if members, agreed, err := c.Members(ctx); err == nil {
			next = poll{members: members, agreed: agreed, statuses: make([]*Status, len(members))}
			for i, m := range members {
				next.statuses[i] = l.statusOf(m.ID)
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

// pollUntil asks, with a pause before each time, until the answer is yes, the limit has passed, or ctx has ended.
func pollUntil(ctx context.Context, limit, pause time.Duration, ask func(context.Context) bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for retry.Pause(ctx, pause) {
		if ask(ctx) {
			return
		}
	}
}

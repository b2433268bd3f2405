package etcd

import (
	"context"
	"time"

	"kubeone/internal/retry"
)

// electionWithin bounds an election: members notice the loss of a leader after a second, and need as long again if
// they do not agree at once. electionEvery is the pause between checks.
const (
	electionWithin = 5 * time.Second
	electionEvery  = 250 * time.Millisecond
)

// isElecting reports whether the voters that answered could elect a leader but have not done so yet.
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

// memberStatus returns the member's status; nil without an answer.
func (l poll) memberStatus(id uint64) *Status {
	for i, m := range l.members {
		if m.ID == id {
			return l.statuses[i]
		}
	}
	return nil
}

// awaitLeader polls until the members have a leader or the time is up.
func (c *Client) awaitLeader(ctx context.Context, l poll) poll {
	pollUntil(ctx, c.election, electionEvery, func(ctx context.Context) bool {
		l = c.pollAgain(ctx, l)
		return !l.isElecting()
	})
	return l
}

// pollAgain asks the members that saw no leader again, and for the list if no quorum had agreed on it. Without an
// answer, the former result stays.
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

// pollUntil asks, with a pause before each time, until the answer is yes, the limit has passed, or ctx ends.
func pollUntil(ctx context.Context, limit, pause time.Duration, ask func(context.Context) bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for retry.Pause(ctx, pause) {
		if ask(ctx) {
			return
		}
	}
}

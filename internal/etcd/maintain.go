package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"kubeone/internal/retry"
)

const (
	// defragWithin limits the time for defragmenting one member, which usually takes about ten seconds per GiB.
	defragWithin = 10 * time.Minute
	// backWithin limits the wait for a defragmented member to become healthy again.
	backWithin = time.Minute
	pollEvery  = 200 * time.Millisecond
)

// Defragmented is the result for one member.
type Defragmented struct {
	Member        Member
	Before, After int64 // bytes, allocated
}

// Defragment defragments the database of a member or, if member is "", of all members one at a time, the leader last. A
// member does not answer requests while it is defragmented. Before each member, Defragment checks all members, and
// returns ErrUnhealthy if one is not healthy. After each member it waits until the member is healthy again, and calls
// tell if that is not nil. A member can be given by name or by ID in hex. If it is not listed, the error wraps
// ErrNotFound.
func (c *Client) Defragment(ctx context.Context, member string, tell func(Defragmented)) error {
	s, err := c.healthySurvey(ctx)
	if err == nil {
		s, err = s.onlyMember(member)
	}
	if err != nil {
		return err
	}
	for _, m := range orderLeaderLast(s.Members) {
		done, err := c.defragmentMember(ctx, m)
		if err != nil {
			return err
		}
		if tell != nil {
			tell(done)
		}
	}
	return nil
}

// orderLeaderLast returns the members with the leader at the end, so that work on them causes at most one election.
func orderLeaderLast(members []Surveyed) []Surveyed {
	ordered := slices.Clone(members)
	slices.SortStableFunc(ordered, func(a, b Surveyed) int {
		switch {
		case a.Leads() == b.Leads():
			return 0
		case a.Leads():
			return 1
		}
		return -1
	})
	return ordered
}

// defragmentMember defragments one member.
func (c *Client) defragmentMember(ctx context.Context, m Surveyed) (Defragmented, error) {
	if _, err := c.healthySurvey(ctx); err != nil {
		return Defragmented{}, err
	}
	err := c.callWithin(ctx, defragWithin, m.ClientURLs[0], "defragment", func(ctx context.Context,
		conn *grpc.ClientConn) error {
		_, err := pb.NewMaintenanceClient(conn).Defragment(ctx, &pb.DefragmentRequest{})
		return err
	})
	if err != nil {
		return Defragmented{}, err
	}
	after, err := c.awaitHealthy(ctx, m.Member)
	return Defragmented{Member: m.Member, Before: m.Status.DBSize, After: after.DBSize}, err
}

// awaitHealthy waits until a member answers and sees a leader.
func (c *Client) awaitHealthy(ctx context.Context, m Member) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, backWithin)
	defer cancel()
	for {
		status, err := c.Status(ctx, m)
		if err == nil && status.Leader != 0 {
			return status, nil
		}
		if !retry.Pause(ctx, pollEvery) {
			return Status{}, fmt.Errorf("etcd member %s is not healthy again after %s: %w",
				m.Name, backWithin, errors.Join(err, context.Cause(ctx)))
		}
	}
}

// healthySurvey surveys all members. The error wraps ErrUnhealthy if one of them is not a healthy voter.
func (c *Client) healthySurvey(ctx context.Context) (Survey, error) {
	s, err := c.surveyHealth(ctx)
	if err != nil {
		return Survey{}, err
	}
	if !s.Agreed {
		return Survey{}, fmt.Errorf("%w: no quorum answers", ErrUnhealthy)
	}
	for _, m := range s.Members {
		if !m.Healthy() {
			return Survey{}, fmt.Errorf("%w: %s", ErrUnhealthy, m.whyUnhealthy())
		}
	}
	return s, nil
}

// whyUnhealthy returns why a member is not healthy.
func (m Surveyed) whyUnhealthy() string {
	name := m.Name
	if name == "" {
		name = HexID(m.ID)
	}
	switch {
	case len(m.ClientURLs) == 0:
		return "member " + name + " was added and has never started"
	case m.Learner:
		return "member " + name + " is a learner"
	case m.Problem != nil:
		return "member " + name + " does not answer: " + m.Problem.Error()
	case m.Status.Leader == 0:
		return "member " + name + " sees no leader"
	}
	return "member " + name + " has the alarm " + strings.Join(m.Alarms, ", ")
}

// Disarmed is an alarm that was disarmed.
type Disarmed struct {
	Member uint64
	Alarm  string // "NOSPACE", "CORRUPT"
}

// Errors returned by Disarm, for errors.Is.
var (
	ErrNoSpace = errors.New("the database is still at its quota: the alarm would return at once")
	ErrCorrupt = errors.New("a member's database is corrupt: replace the member instead of disarming the alarm")
)

// Disarm clears the alarms of a member, given as for Defragment. If member is "", it clears all alarms, including those
// of members that have left, because these also block writes. If a member with a space alarm has a database at its
// quota, it changes nothing and returns ErrNoSpace. If a member with a corruption alarm is still listed, it changes
// nothing and returns ErrCorrupt.
func (c *Client) Disarm(ctx context.Context, member string) ([]Disarmed, error) {
	s, err := c.surveyHealth(ctx)
	if err != nil {
		return nil, err
	}
	if !s.Agreed {
		return nil, fmt.Errorf("%w: no quorum answers, which disarming needs", ErrUnhealthy)
	}
	if s, err = s.onlyMember(member); err != nil {
		return nil, err
	}
	alarms := slices.Clone(s.Orphans)
	for _, m := range s.Members {
		for _, name := range m.Alarms {
			alarms = append(alarms, Alarm{Member: m.ID, Name: name})
		}
	}
	full := slices.ContainsFunc(alarms, func(a Alarm) bool { return a.Name == "NOSPACE" })
	for _, m := range s.Members {
		if slices.Contains(m.Alarms, "CORRUPT") {
			return nil, fmt.Errorf("member %s: %w", m.Name, ErrCorrupt)
		}
		if st := m.Status; full && st != nil && st.Quota > 0 && st.DBSize >= st.Quota {
			return nil, fmt.Errorf("member %s: %w (%d of %d bytes)", m.Name, ErrNoSpace, st.DBSize, st.Quota)
		}
	}
	return c.disarmAlarms(ctx, alarms)
}

func (c *Client) disarmAlarms(ctx context.Context, alarms []Alarm) ([]Disarmed, error) {
	var done []Disarmed
	for _, a := range alarms {
		request := &pb.AlarmRequest{
			Action:   pb.AlarmRequest_DEACTIVATE,
			MemberID: a.Member,
			Alarm:    pb.AlarmType(pb.AlarmType_value[a.Name]),
		}
		err := c.call(ctx, c.connectedURL(), "disarm "+a.Name, func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := pb.NewMaintenanceClient(conn).Alarm(ctx, request)
			return err
		})
		if err != nil {
			return done, err
		}
		done = append(done, Disarmed{Member: a.Member, Alarm: a.Name})
	}
	return done, nil
}

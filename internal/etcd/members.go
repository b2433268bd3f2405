package etcd

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// Member is a member in the cluster's membership list.
type Member struct {
	ID         uint64
	Name       string // "" if added but never started
	PeerURLs   []string
	ClientURLs []string // empty if never started
	Learner    bool
}

// HexID formats a member ID as etcd prints it.
func HexID(id uint64) string { return strconv.FormatUint(id, 16) }

// ParseID parses the output of HexID.
func ParseID(s string) (uint64, error) { return strconv.ParseUint(s, 16, 64) }

// Status is what a member reports about itself.
type Status struct {
	Version string
	DBSize  int64  // bytes, allocated
	InUse   int64  // used bytes of DBSize; Defragment frees the rest
	Quota   int64  // limit of DBSize in bytes; 0 (unknown) before etcd 3.6
	Leader  uint64 // the leader as this member sees it; 0: none
	Learner bool
	Errors  []string // problems it reports: no leader, alarms
	// Revision is the last change that this member has applied.
	Revision int64
}

// Members returns the member list. agreed reports whether a quorum agreed on it. Otherwise it is the last list that the
// connected member knows, which may be outdated.
func (c *Client) Members(ctx context.Context) (members []Member, agreed bool, err error) {
	members, err = c.listMembers(ctx, true)
	if err == nil {
		return members, true, nil
	}
	if errors.Is(err, ErrLearner) || ctx.Err() != nil {
		return nil, false, err
	}
	members, err = c.listMembers(ctx, false)
	return members, false, err
}

func (c *Client) listMembers(ctx context.Context, linearizable bool) ([]Member, error) {
	var answer *pb.MemberListResponse
	err := c.call(ctx, c.connectedURL(), "list members", func(ctx context.Context, conn *grpc.ClientConn) (err error) {
		answer, err = pb.NewClusterClient(conn).MemberList(ctx, &pb.MemberListRequest{Linearizable: linearizable})
		return err
	})
	if err != nil {
		return nil, err
	}
	members := make([]Member, 0, len(answer.Members))
	for _, m := range answer.Members {
		members = append(members, Member{
			ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, Learner: m.IsLearner,
		})
	}
	return members, nil
}

// Status returns the status of one member, from its first client URL.
func (c *Client) Status(ctx context.Context, m Member) (Status, error) {
	return c.statusWithin(ctx, c.answer, m)
}

func (c *Client) statusWithin(ctx context.Context, limit time.Duration, m Member) (Status, error) {
	if len(m.ClientURLs) == 0 {
		return Status{}, errors.New("etcd member " + HexID(m.ID) + " has never started: it has no client URL")
	}
	at := m.ClientURLs[0]
	if m.ID == c.self.Header.GetMemberId() {
		at = c.connectedURL() // already connected
	}
	answer, err := c.readStatus(ctx, limit, at)
	if err != nil {
		return Status{}, err
	}
	return statusOf(answer), nil
}

func (c *Client) readStatus(
	ctx context.Context, limit time.Duration, clientURL string,
) (answer *pb.StatusResponse, err error) {
	err = c.callWithin(ctx, limit, clientURL, "status", func(ctx context.Context, conn *grpc.ClientConn) (err error) {
		answer, err = pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
		return err
	})
	return answer, err
}

func statusOf(s *pb.StatusResponse) Status {
	return Status{
		Version: s.Version, DBSize: s.DbSize, InUse: s.DbSizeInUse, Quota: s.DbSizeQuota, Leader: s.Leader,
		Learner: s.IsLearner,
		Errors:  s.Errors, Revision: s.Header.GetRevision(),
	}
}

// Alarm is a raised alarm.
type Alarm struct {
	Member uint64 // the member that raised it; it may have left since
	Name   string // "NOSPACE", "CORRUPT"
}

// Alarms are all raised alarms, in etcd's order.
type Alarms []Alarm

// alarmsOf returns the names of the alarms that one member has raised.
func (a Alarms) alarmsOf(member uint64) []string {
	var names []string
	for _, alarm := range a {
		if alarm.Member == member {
			names = append(names, alarm.Name)
		}
	}
	return names
}

// alarmsOfUnlisted returns the alarms of members that are no longer listed.
func (a Alarms) alarmsOfUnlisted(members []Member) []Alarm {
	var out []Alarm
	for _, alarm := range a {
		if !slices.ContainsFunc(members, func(m Member) bool { return m.ID == alarm.Member }) {
			out = append(out, alarm)
		}
	}
	return out
}

// Alarms lists the raised alarms. It needs a quorum.
func (c *Client) Alarms(ctx context.Context) (Alarms, error) {
	var answer *pb.AlarmResponse
	err := c.call(ctx, c.connectedURL(), "list alarms", func(ctx context.Context, conn *grpc.ClientConn) (err error) {
		answer, err = pb.NewMaintenanceClient(conn).Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_GET})
		return err
	})
	if err != nil {
		return nil, err
	}
	alarms := make(Alarms, 0, len(answer.Alarms))
	for _, a := range answer.Alarms {
		alarms = append(alarms, Alarm{Member: a.MemberID, Name: a.Alarm.String()})
	}
	return alarms, nil
}

// RemoveMember removes a member from the cluster. It returns an error that wraps ErrNotFound if there is no such
// member. It does not check whether the others keep quorum; the caller must.
func (c *Client) RemoveMember(ctx context.Context, id uint64) error {
	return c.call(ctx, c.connectedURL(), "remove member "+HexID(id),
		func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := pb.NewClusterClient(conn).MemberRemove(ctx, &pb.MemberRemoveRequest{ID: id})
			return err
		})
}

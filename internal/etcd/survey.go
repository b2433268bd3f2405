package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// hashWithin limits the time in which a member hashes its keys, which reads all of them.
const hashWithin = 30 * time.Second

// Survey holds the answers of all members, ordered by ID.
type Survey struct {
	ClusterID uint64
	// Agreed means that a quorum agreed on the member list. Otherwise the list is that of the connected member and may
	// be outdated.
	Agreed  bool
	Members []Surveyed
	// Orphans are alarms of members that are no longer listed. They have the same effect as other alarms.
	Orphans []Alarm
	// Consistent says whether all members that answered have the same keys and values at the same revision.
	Consistent Consistency
}

// Surveyed is a member and its answers.
type Surveyed struct {
	Member
	Status  *Status // nil without an answer
	Problem error   // why there is no answer
	Alarms  []string
	Hash    *Hash // nil if it could not be compared
}

// Hash is the hash of a member's keys.
type Hash struct {
	Hash            uint32
	Revision        int64 // last revision in the hash
	CompactRevision int64 // first revision in the hash; only hashes with the same value are comparable
}

// Consistency is the result of comparing hashes.
type Consistency string

// The results of a comparison. The zero value is NotCompared.
const (
	NotCompared Consistency = ""        // fewer than two members answered, or they compacted in between
	Same        Consistency = "same"    // every member that answered has the same keys
	Different   Consistency = "differs" // the keys of at least one differ: its database is damaged
)

// Healthy reports whether the member answered, is a voter, sees a leader, and has no corruption alarm.
func (m Surveyed) Healthy() bool {
	return m.Status != nil && !m.Learner && m.Status.Leader != 0 && !slices.Contains(m.Alarms, "CORRUPT")
}

// Leads reports whether the member sees itself as the leader.
func (m Surveyed) Leads() bool { return m.Status != nil && m.Status.Leader == m.ID }

// onlyMember returns the survey restricted to one member, by name or ID in hex, or to one that has left but has raised
// an alarm, by ID. For "" it returns the survey unchanged. The error wraps ErrNotFound if there is no such member.
func (s Survey) onlyMember(member string) (Survey, error) {
	if member == "" {
		return s, nil
	}
	var names []string
	for _, m := range s.Members {
		names = append(names, cmp.Or(m.Name, HexID(m.ID)))
	}
	s.Members = slices.DeleteFunc(slices.Clone(s.Members), func(m Surveyed) bool {
		return m.Name != member && HexID(m.ID) != member
	})
	s.Orphans = slices.DeleteFunc(slices.Clone(s.Orphans), func(a Alarm) bool { return HexID(a.Member) != member })
	if len(s.Members)+len(s.Orphans) == 0 {
		return s, fmt.Errorf("%w: %q; its members are %s", ErrNotFound, member, strings.Join(names, ", "))
	}
	return s, nil
}

// Survey reads the member list, the status of every member and, at a common revision, the hash of its keys. A member
// that does not answer is part of the result. Survey returns an error only if it cannot read the list.
func (c *Client) Survey(ctx context.Context) (Survey, error) {
	s, err := c.surveyHealth(ctx)
	if err != nil {
		return Survey{}, err
	}
	c.readHashes(ctx, s.Members)
	s.Consistent = compareHashes(s.Members)
	return s, nil
}

// surveyHealth does the same as Survey without hashes, which cost members much time.
func (c *Client) surveyHealth(ctx context.Context) (Survey, error) {
	members, agreed, err := c.Members(ctx)
	if err != nil {
		return Survey{}, err
	}
	s := Survey{ClusterID: c.self.Header.GetClusterId(), Agreed: agreed, Members: make([]Surveyed, len(members))}
	var alarms Alarms
	if agreed {
		if alarms, err = c.Alarms(ctx); err != nil {
			return Survey{}, err
		}
	}
	s.Orphans = alarms.alarmsOfUnlisted(members)
	var wait sync.WaitGroup
	for i, m := range members {
		wait.Go(func() {
			s.Members[i] = Surveyed{Member: m, Alarms: alarms.alarmsOf(m.ID)}
			if status, err := c.Status(ctx, m); err != nil {
				s.Members[i].Problem = err
			} else {
				s.Members[i].Status = &status
			}
		})
	}
	wait.Wait()
	slices.SortFunc(s.Members, func(a, b Surveyed) int { return strings.Compare(HexID(a.ID), HexID(b.ID)) })
	return s, nil
}

// readHashes asks every member that answered for the hash at the latest common revision.
func (c *Client) readHashes(ctx context.Context, members []Surveyed) {
	var revision int64
	for _, m := range members {
		if m.Status != nil && !m.Learner && (revision == 0 || m.Status.Revision < revision) {
			revision = m.Status.Revision
		}
	}
	var wait sync.WaitGroup
	for i, m := range members {
		if m.Status == nil || m.Learner || revision == 0 {
			continue
		}
		wait.Go(func() {
			if h, err := c.hashKV(ctx, m.Member, revision); err == nil {
				members[i].Hash = &h
			} else {
				members[i].Problem = err
			}
		})
	}
	wait.Wait()
}

func (c *Client) hashKV(ctx context.Context, m Member, revision int64) (Hash, error) {
	var answer *pb.HashKVResponse
	err := c.callWithin(ctx, hashWithin, m.ClientURLs[0], "hash the keys", func(ctx context.Context,
		conn *grpc.ClientConn) (err error) {
		answer, err = pb.NewMaintenanceClient(conn).HashKV(ctx, &pb.HashKVRequest{Revision: revision})
		return err
	})
	if err != nil {
		return Hash{}, err
	}
	return Hash{Hash: answer.Hash, Revision: revision, CompactRevision: answer.CompactRevision}, nil
}

// compareHashes compares the hashes that have the same CompactRevision.
func compareHashes(members []Surveyed) Consistency {
	byCompaction := map[int64][]uint32{}
	for _, m := range members {
		if m.Hash != nil {
			byCompaction[m.Hash.CompactRevision] = append(byCompaction[m.Hash.CompactRevision], m.Hash.Hash)
		}
	}
	result := NotCompared
	for _, hashes := range byCompaction {
		if len(hashes) < 2 {
			continue
		}
		for _, h := range hashes[1:] {
			if h != hashes[0] {
				return Different
			}
		}
		result = Same
	}
	if len(byCompaction) > 1 {
		return NotCompared
	}
	return result
}

// ErrUnhealthy means that nothing was done because a member is not healthy.
var ErrUnhealthy = errors.New("not every member is healthy")

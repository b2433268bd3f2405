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

// hashWithin is how long a member has to hash its keys; it reads all of them.
const hashWithin = 30 * time.Second

// Survey is what the members say, one after the other, in the order of their IDs.
type Survey struct {
	ClusterID uint64
	// Agreed says that a quorum answered; else the members are what the one that was asked last knew.
	Agreed  bool
	Members []Surveyed
	// Orphans are alarms of members that are no longer listed. They count like any other.
	Orphans []Alarm
	// Consistent says whether all members that answered have the same keys at the same revision.
	Consistent Consistency
}

// Surveyed is one member and what it said.
type Surveyed struct {
	Member
	Status  *Status // nil where it did not answer
	Problem error   // why it did not
	Alarms  []string
	Hash    *Hash // nil where there is none to compare
}

// Hash is the hash of a member's keys.
type Hash struct {
	Hash            uint32
	Revision        int64 // up to which it was made
	CompactRevision int64 // from which on; hashes of different ones cannot be compared
}

// Consistency is the result of comparing hashes.
type Consistency string

// The results. The zero value is NotCompared.
const (
	NotCompared Consistency = ""        // fewer than two members answered, or they compacted in between
	Same        Consistency = "same"    // every member that answered has the same keys
	Different   Consistency = "differs" // at least one has other keys: its database is damaged
)

// Healthy reports whether the member answered, is a voter, sees a leader, and has no alarm of corruption.
func (m Surveyed) Healthy() bool {
	return m.Status != nil && !m.Learner && m.Status.Leader != 0 && !slices.Contains(m.Alarms, "CORRUPT")
}

// Leads reports whether the member is the leader, as it sees it.
func (m Surveyed) Leads() bool { return m.Status != nil && m.Status.Leader == m.ID }

// onlyMember is the survey of one member, by its name or its ID in hex, or of one that has left and whose alarm is
// still raised, by its ID; "" is all of it. It is ErrNotFound where there is none.
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

// Survey asks for the membership, and then every member for its status and, at one common revision, for the hash of its
// keys. A member that does not answer is part of the result; an unknown membership is an error.
func (c *Client) Survey(ctx context.Context) (Survey, error) {
	s, err := c.surveyHealth(ctx)
	if err != nil {
		return Survey{}, err
	}
	c.readHashes(ctx, s.Members)
	s.Consistent = compareHashes(s.Members)
	return s, nil
}

// surveyHealth is Survey without the hashes, which are much work for the members.
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

// readHashes asks every member that answered for the hash at the latest revision that all of them have.
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

// compareHashes compares the hashes that can be compared.
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

// ErrUnhealthy means that a member is not healthy, so that the others must not be disturbed.
var ErrUnhealthy = errors.New("not every member is healthy")

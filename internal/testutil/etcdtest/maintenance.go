package etcdtest

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Defragmented returns the names of the defragmented members in order.
func (c *Cluster) Defragmented() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.defragmented)
}

// Raised returns the active alarms.
func (c *Cluster) Raised() []*pb.AlarmMember {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.Alarms)
}

// sizeOf returns 4096 after a defragmentation.
func (s *maintenanceServer) sizeOf() int64 {
	if s.m.Size == 0 || slices.Contains(s.c.Defragmented(), s.m.Name) {
		return 4096
	}
	return s.m.Size
}

func (s *maintenanceServer) Alarm(ctx context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	if s.c.NoQuorum {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if r.Action == pb.AlarmRequest_DEACTIVATE {
		s.c.Alarms = slices.DeleteFunc(slices.Clone(s.c.Alarms), func(a *pb.AlarmMember) bool {
			return a.MemberID == r.MemberID && a.Alarm == r.Alarm
		})
	}
	return &pb.AlarmResponse{Alarms: s.c.Alarms}, nil
}

func (s *maintenanceServer) HashKV(_ context.Context, r *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	if r.Revision > s.m.Revision {
		return nil, rpctypes.ErrGRPCFutureRev
	}
	return &pb.HashKVResponse{Header: &pb.ResponseHeader{MemberId: s.m.ID}, Hash: s.m.Hash, HashRevision: r.Revision},
		nil
}

func (s *maintenanceServer) Defragment(context.Context, *pb.DefragmentRequest) (*pb.DefragmentResponse, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.defragmented = append(s.c.defragmented, s.m.Name)
	return &pb.DefragmentResponse{}, nil
}

// Snapshot sends the database and then the checksum in a separate message, like etcd.
func (s *maintenanceServer) Snapshot(_ *pb.SnapshotRequest, stream pb.Maintenance_SnapshotServer) error {
	const piece, sum = 32 << 10, 32
	content, database := s.c.Snapshot, len(s.c.Snapshot)-sum
	for at := 0; at < database; {
		if s.c.SnapshotEnds > 0 && at >= s.c.SnapshotEnds {
			return nil
		}
		n := min(piece, database-at)
		// #nosec G115 -- not negative
		if err := stream.Send(&pb.SnapshotResponse{
			Blob:           content[at : at+n],
			RemainingBytes: uint64(database - at - n),
		}); err != nil {
			return err
		}
		at += n
	}
	return stream.Send(&pb.SnapshotResponse{Blob: content[database:]})
}

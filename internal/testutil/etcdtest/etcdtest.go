// Package etcdtest is an etcd for tests. Its members speak the real protocol over TLS and answer as configured.
package etcdtest

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"kubeone/internal/etcd"
	"kubeone/internal/testutil/closedport"
)

// Member configures the answers of one member.
type Member struct {
	ID      uint64
	Name    string
	Learner bool
	Leader  uint64 // as this member reports it; 0 means none
	Errors  []string
	Silent  bool // accepts connections and never answers
	Down    bool // accepts no connections
	Busy    int  // number of status requests without an answer
	// Electing is the number of status requests answered without a leader.
	Electing int

	Revision int64  // of its last change
	Hash     uint32 // of its keys
	Quota    int64  // bytes that its database may have
	Size     int64  // bytes of its database; 0 is 4096
}

// Cluster is the members and the state behind the quorum. Change it before the first request.
type Cluster struct {
	Members  []Member
	Alarms   []*pb.AlarmMember
	NoQuorum bool // requests that need a quorum time out
	Electing int  // number of linearizable member lists without an answer
	// Snapshot is the snapshot of every member. It breaks off after SnapshotEnds bytes; 0 means never.
	Snapshot     []byte
	SnapshotEnds int

	creds etcd.Credentials

	listed       atomic.Int64
	mu           sync.Mutex
	addrs        map[uint64]string
	removed      []uint64
	defragmented []string
}

// Start serves every member that is not down, each on its own port, until the test ends.
func Start(t testing.TB, c *Cluster) *Cluster {
	t.Helper()
	ca := newCA(t)
	server, err := tls.X509KeyPair(ca.issueCertificate(t, "server"))
	if err != nil {
		t.Fatal(err)
	}
	cert, key := ca.issueCertificate(t, "client")
	c.creds = etcd.Credentials{CA: ca.pem, Cert: cert, Key: key}
	c.addrs = map[uint64]string{}
	for _, m := range c.Members {
		c.addrs[m.ID] = c.serveMember(t, m, &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{server},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.certPool(),
		})
	}
	return c
}

func (c *Cluster) serveMember(t testing.TB, m Member, config *tls.Config) string {
	t.Helper()
	if m.Down {
		return closedport.Address(t)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	pb.RegisterClusterServer(server, &clusterServer{c: c, m: m})
	pb.RegisterMaintenanceServer(server, &maintenanceServer{c: c, m: m})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// Access connects to the members in order, each through its own dialer.
func (c *Cluster) Access() etcd.Access {
	// Members run in this process, and the machine may be busy. Only for silent members is the timeout short.
	a := etcd.Access{Credentials: c.creds, Answer: time.Minute}
	for _, m := range c.Members {
		if m.Silent || m.Busy > 0 || c.NoQuorum || c.Electing > 0 {
			a.Answer = 4 * time.Second
		}
		a.Via = append(a.Via, etcd.Endpoint{ID: m.Name, Address: c.addrs[m.ID], Dial: (&net.Dialer{}).DialContext})
	}
	return a
}

// Removed returns the IDs of the removed members.
func (c *Cluster) Removed() []uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]uint64(nil), c.removed...)
}

type clusterServer struct {
	pb.UnimplementedClusterServer
	c *Cluster
	m Member
}

func (s *clusterServer) MemberList(ctx context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	if s.m.Learner {
		return nil, rpctypes.ErrGRPCNotSupportedForLearner
	}
	if s.m.Silent || r.Linearizable && (s.c.NoQuorum || s.c.listed.Add(1) <= int64(s.c.Electing)) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	out := &pb.MemberListResponse{Header: &pb.ResponseHeader{MemberId: s.m.ID}}
	for _, m := range s.c.Members {
		one := &pb.Member{
			ID:        m.ID,
			Name:      m.Name,
			IsLearner: m.Learner,
			PeerURLs:  []string{"https://" + m.Name + ":2380"},
		}
		if m.Name != "" {
			one.ClientURLs = []string{"https://" + s.c.addrs[m.ID]}
		}
		out.Members = append(out.Members, one)
	}
	return out, nil
}

func (s *clusterServer) MemberRemove(_ context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	for _, m := range s.c.Members {
		if m.ID == r.ID {
			s.c.mu.Lock()
			defer s.c.mu.Unlock()
			s.c.removed = append(s.c.removed, r.ID)
			return &pb.MemberRemoveResponse{}, nil
		}
	}
	return nil, rpctypes.ErrGRPCMemberNotFound
}

type maintenanceServer struct {
	pb.UnimplementedMaintenanceServer
	c     *Cluster
	m     Member
	asked atomic.Int64 // for its status
}

func (s *maintenanceServer) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	asked := s.asked.Add(1)
	if s.m.Silent || asked <= int64(s.m.Busy) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	leader := s.m.Leader
	if asked <= int64(s.m.Electing) {
		leader = 0
	}
	return &pb.StatusResponse{
		Header: &pb.ResponseHeader{MemberId: s.m.ID, ClusterId: 0xc1, Revision: s.m.Revision}, Version: "3.6.8",
		DbSize: s.sizeOf(), Leader: leader,
		DbSizeInUse: s.m.Size / 2, DbSizeQuota: s.m.Quota,
		IsLearner: s.m.Learner, Errors: s.m.Errors,
	}, nil
}

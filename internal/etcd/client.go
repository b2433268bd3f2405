// Package etcd queries and changes the members of a cluster's etcd, through tunnels of its control-plane hosts.
//
// A Client talks to one voting member, the first that answered. It reaches the others through that member's host, at
// the client URLs they advertise. There is one connection per member, and no retry: every call ends with ctx, and the
// caller decides about failures.
package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// answerWithin bounds one member's answer to one request, unless ctx ends earlier or Access sets another time.
const answerWithin = 1500 * time.Millisecond

// PatientAnswer bounds the answer of a member that must exist but was late before. As Access.Answer it suits callers
// with a single task and enough time.
const PatientAnswer = 5 * time.Second

// Errors for errors.Is.
var (
	ErrNoMember = errors.New("no voting etcd member answered")
	ErrLearner  = errors.New("the member is a learner and does not answer this")
	ErrNotFound = errors.New("no such etcd member")
	ErrSlow     = errors.New(
		"etcd has a quorum, but too few members reported their status in time: they are busy; try again")
)

// Client talks to the members of one etcd. Its methods are safe for concurrent use.
type Client struct {
	via      Endpoint
	creds    credentials.TransportCredentials
	self     *pb.StatusResponse // status of the connected member at Connect
	requests atomic.Int64

	mu    sync.Mutex
	conns map[string]*grpc.ClientConn // by "https://host:port"

	answer, election time.Duration // from Access
}

// Connect returns a client of the first voting member that answers a status request, in the order of Via. Each member
// has one and a half seconds, or what ctx leaves. The error joins the errors of all endpoints and is ErrNoMember. The
// caller closes the client.
func Connect(ctx context.Context, a Access) (*Client, error) {
	config, err := a.Credentials.TLS()
	if err != nil {
		return nil, err
	}
	problems := []error{ErrNoMember}
	for _, via := range a.Via {
		c := &Client{
			via: via, creds: credentials.NewTLS(config), conns: map[string]*grpc.ClientConn{},
			answer: cmp.Or(a.Answer, answerWithin), election: cmp.Or(a.Election, electionWithin),
		}
		if err = c.readOwnStatus(ctx); err == nil {
			return c, nil
		}
		problems = append(problems, fmt.Errorf("%s: %w", via.ID, err), c.Close())
	}
	return nil, errors.Join(problems...)
}

// readOwnStatus reads the status of the connected member.
func (c *Client) readOwnStatus(ctx context.Context) error {
	self, err := c.readStatus(ctx, c.answer, c.connectedURL())
	switch {
	case err != nil:
		return err
	case self.IsLearner:
		return ErrLearner
	}
	c.self = self
	return nil
}

// Via returns the ID of the host whose tunnel is used.
func (c *Client) Via() string { return c.via.ID }

// Greeting returns the connected member's status at Connect.
func (c *Client) Greeting() Status { return statusOf(c.self) }

// Requests returns the number of requests so far.
func (c *Client) Requests() int { return int(c.requests.Load()) }

// Close closes all connections.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var problems []error
	for name, conn := range c.conns {
		problems = append(problems, conn.Close())
		delete(c.conns, name)
	}
	return errors.Join(problems...)
}

// connectTo returns the connection to a client URL, opened on first use.
func (c *Client) connectTo(clientURL string) (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn, ok := c.conns[clientURL]; ok {
		return conn, nil
	}
	u, err := url.Parse(clientURL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("%q is not a client URL of etcd", clientURL)
	}
	creds := c.creds
	if u.Scheme == "http" {
		creds = insecure.NewCredentials()
	}
	conn, err := grpc.NewClient("passthrough:///"+u.Host, grpc.WithTransportCredentials(creds), grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return c.via.Dial(ctx, "tcp", addr)
		}))
	if err != nil {
		return nil, fmt.Errorf("etcd at %s: %w", clientURL, err)
	}
	c.conns[clientURL] = conn
	return conn, nil
}

// call sends one request to the member at a client URL.
func (c *Client) call(ctx context.Context, clientURL, what string,
	request func(context.Context, *grpc.ClientConn) error) error {
	return c.callWithin(ctx, c.answer, clientURL, what, request)
}

func (c *Client) callWithin(ctx context.Context, limit time.Duration, clientURL, what string,
	request func(context.Context, *grpc.ClientConn) error) error {
	conn, err := c.connectTo(clientURL)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c.requests.Add(1)
	if err = request(ctx, conn); err == nil {
		return nil
	}
	if status.Code(err) == codes.DeadlineExceeded {
		err = fmt.Errorf("no answer within %s", limit) // gRPC has its own wording
	}
	return fmt.Errorf("etcd at %s: %s: %w", clientURL, what, translateError(err))
}

// translateError converts the server's errors to this package's.
func translateError(err error) error {
	server := rpctypes.Error(err)
	switch {
	case errors.Is(server, rpctypes.ErrMemberNotFound):
		return ErrNotFound
	case errors.Is(server, rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)):
		return ErrLearner
	}
	return err
}

// connectedURL returns the URL of the connected member.
func (c *Client) connectedURL() string { return "https://" + c.via.Address }

// Package etcd queries and changes the etcd members of a cluster, through tunnels of its control-plane hosts.
//
// A Client is connected to one voting member, the first that answered. It reaches the others through the host of that
// member, at the client URLs that they advertise. It opens one connection per member and does not retry: the caller
// decides what to do after a failure. Every call ends when ctx ends.
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

// answerWithin limits the time for the answer of one member to one request, unless Access sets another limit.
const answerWithin = 1500 * time.Millisecond

// PatientAnswer limits the time for the answer of a member that must exist but did not answer in time before. Callers
// that have only one task and enough time can also use it as Access.Answer.
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

// Connect returns a client connected to the first voting member that answers a status request. It tries the endpoints
// in the order of Via, and waits for each one at most Access.Answer. If none answers, the error wraps ErrNoMember and
// the errors of all endpoints. The caller must close the client.
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

// HostID returns the ID of the host through which the client is connected.
func (c *Client) HostID() string { return c.via.ID }

// Greeting returns the status that the connected member reported at Connect.
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

// connectTo returns the connection to a client URL, and opens it at the first call.
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
		err = fmt.Errorf("no answer within %s", limit) // clearer than the gRPC error
	}
	return fmt.Errorf("etcd at %s: %s: %w", clientURL, what, translateError(err))
}

// translateError returns the error of this package for an error of the etcd server, or the same error if there is none.
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

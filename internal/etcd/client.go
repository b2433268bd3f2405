// Package etcd asks and changes the members of a cluster's etcd, through tunnels of its control-plane hosts.
//
// A Client speaks to one voting member, the first that answered, and reaches the other members through the tunnel of
// that member's host, at the client URLs which they advertise. There is one connection per member and nothing is
// retried: every call ends with ctx, and what to do about a failure is its caller's decision.
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

// answerWithin is how long one member has to answer one request when ctx leaves more time and Access says nothing else.
const answerWithin = 1500 * time.Millisecond

// PatientAnswer is how long a member has that must be there, and did not answer in the usual time; Access.Answer of who
// does one thing, and has the time.
const PatientAnswer = 5 * time.Second

// Errors for errors.Is.
var (
	ErrNoMember = errors.New("no voting etcd member answered")
	ErrLearner  = errors.New("the member is a learner and does not answer this")
	ErrNotFound = errors.New("no such etcd member")
	ErrSlow     = errors.New(
		"etcd's quorum agreed on its members, and too few of them said in time how they are: they are busy; try again")
)

// Client speaks to the members of one etcd. Its methods may be called concurrently.
type Client struct {
	via      Endpoint
	creds    credentials.TransportCredentials
	self     *pb.StatusResponse // of the member it speaks to, as of Connect
	requests atomic.Int64

	mu    sync.Mutex
	conns map[string]*grpc.ClientConn // by "https://host:port"

	answer, election time.Duration // those of Access
}

// Connect returns a client of the first voting member that answers a status request, asked in the order of Via. Each
// has one and a half seconds, or what ctx leaves. The error joins what every endpoint said and is ErrNoMember. The
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

// readOwnStatus asks the member that it is connected to for its status.
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

// Via is the ID of the host whose tunnel is used.
func (c *Client) Via() string { return c.via.ID }

// Greeting is what the member that it speaks to said about itself when it was connected to.
func (c *Client) Greeting() Status { return statusOf(c.self) }

// Requests is how many requests were sent so far.
func (c *Client) Requests() int { return int(c.requests.Load()) }

// Close ends all connections.
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

// connectTo is the connection to a client URL, made on first use.
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

// call makes one request to the member at a client URL.
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
		err = fmt.Errorf("no answer within %s", limit) // gRPC says it in its own words
	}
	return fmt.Errorf("etcd at %s: %s: %w", clientURL, what, translateError(err))
}

// translateError turns the server's own errors into this package's.
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

// connectedURL is the URL of the member that the client was connected to.
func (c *Client) connectedURL() string { return "https://" + c.via.Address }

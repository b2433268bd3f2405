package probe

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/model/observed"
)

// endpointTimeout is how long the API's endpoint may take to answer.
const endpointTimeout = 2 * time.Second

// dialFrom is a place from which the endpoint is asked.
type dialFrom struct {
	name string // for people
	dial dialFunc
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// askEndpoint finds out whether an API server answers where its users look for it: seen from this machine, or from the
// host through which the API is read, whichever succeeds first. It makes a TLS connection to a server that the
// cluster's CA has signed for the endpoint's name, and asks nothing. The second result is why it is No.
func (p *prober) askEndpoint(ctx context.Context, c candidate) (observed.Tri, string) {
	if p.Endpoint == "" {
		return observed.Unknown, ""
	}
	ca := x509.NewCertPool()
	if !ca.AppendCertsFromPEM(cluster.Access{Kubeconfig: c.answer.Credentials.Kubeconfig}.CA()) {
		return observed.Unknown, ""
	}
	ctx, cancel := context.WithTimeout(ctx, endpointTimeout)
	defer cancel()
	err := fromAny(ctx, []Target{c.target}, func(ctx context.Context, dial dialFunc) error {
		connection, err := tlsHandshake(ctx, dial, p.Endpoint, &tls.Config{RootCAs: ca, MinVersion: tls.VersionTLS12})
		if err == nil {
			_ = connection.Close()
		}
		return err
	})
	if err != nil {
		return observed.No, oneLine(err)
	}
	return observed.Yes, ""
}

// readyAt finds an API server that says that it is ready, where the API's users look for it: at the endpoint, and where
// the kubeconfigs of control-plane hosts have it; seen from this machine, or from such a host that answers. It is asked
// when none of the hosts' own API servers has answered, nor calls itself ready, so that nobody takes a cluster for lost
// that others serve. Whoever answers need not prove who it is, and is told nothing: all that comes of it is that less
// is done.
func (p *prober) readyAt(ctx context.Context) string {
	var via []Target
	endpoints := []string{p.Endpoint}
	for _, t := range p.Targets {
		seen := p.answers[t.ID].Host
		if !t.ControlPlane || seen.Reach != observed.Reached || seen.FirstContact != "" {
			continue // whose key nobody has approved has no say
		}
		if seen.APIServer == observed.Yes {
			return "" // by its own word, the host's is ready: nobody takes the cluster for lost
		}
		via = append(via, t)
		for _, server := range []string{seen.Endpoint, seen.AdminEndpoint} {
			if u, err := url.Parse(server); err == nil && u.Port() != "" && len(endpoints) < mostEndpoints {
				endpoints = append(endpoints, u.Host)
			}
		}
	}
	endpoints = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(endpoints))),
		func(e string) bool { return e == "" })
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	ready := make([]bool, len(endpoints))
	var asking sync.WaitGroup
	for i, endpoint := range endpoints {
		p.countRequests(1, 0)
		asking.Go(func() {
			ready[i] = fromAny(ctx, via, func(ctx context.Context, dial dialFunc) error {
				return askReady(ctx, dialFast(dial), endpoint)
			}) == nil
		})
	}
	asking.Wait()
	if i := slices.Index(ready, true); i >= 0 {
		return endpoints[i]
	}
	return ""
}

// mostEndpoints is at how many places an API server is looked for that is ready, and readyTimeout for how long; where
// nothing takes a connection, as at an address that is to come, for no longer than connectTimeout.
const (
	mostEndpoints  = 8
	readyTimeout   = 4 * time.Second
	connectTimeout = time.Second
)

// dialFast gives up a connection that is not made at once.
func dialFast(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		return dial(ctx, network, addr)
	}
}

// fromAny asks from this machine and from all the hosts at once, and is nil as soon as one has succeeded; else it is
// why none has. What goes on when it returns has its context ended.
func fromAny(ctx context.Context, hosts []Target, ask func(context.Context, dialFunc) error) error {
	from := []dialFrom{{"this machine", (&net.Dialer{}).DialContext}}
	for _, t := range hosts {
		from = append(from, dialFrom{t.ID, t.Host.Dial})
	}
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	outcomes := make(chan error, len(from))
	for _, f := range from {
		asking.Go(func() {
			err := ask(ctx, f.dial)
			if err != nil {
				err = fmt.Errorf("from %s: %w", f.name, err)
			}
			outcomes <- err
		})
	}
	var problems []error
	for range from {
		err := <-outcomes
		if err == nil {
			return nil
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// askReady asks an API server whether it is ready. Whoever says so in other words is something else.
func askReady(ctx context.Context, dial dialFunc, address string) error {
	connection, err := tlsHandshake(ctx, dial, address, &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // see readyAt: nothing is told, and a lie has less done
	})
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	defer context.AfterFunc(ctx, func() { _ = connection.SetDeadline(time.Unix(1, 0)) })()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true
	if err := request.Write(connection); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(io.LimitReader(connection, 16<<10)), request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 3))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK || string(body) != "ok" {
		return fmt.Errorf("not ready: %d", answer.StatusCode)
	}
	return nil
}

// tlsHandshake makes a TLS connection to the server, whose name is that in the address.
func tlsHandshake(ctx context.Context, dial dialFunc, address string, config *tls.Config) (*tls.Conn, error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	raw, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	config.ServerName = name
	secure := tls.Client(raw, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return secure, nil
}

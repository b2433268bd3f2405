package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/observed"
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
	err := fromAny(ctx, []Target{c.target}, func(ctx context.Context, dial dialFunc) error {
		return handshake(ctx, dial, p.Endpoint, ca)
	})
	if err != nil {
		return observed.No, oneLine(err)
	}
	return observed.Yes, ""
}

// endpointServes finds out whether an API server at the endpoint says that it is ready: seen from this machine, or from
// a control-plane host that answers. It is asked when none of the hosts' own API servers has answered, so that nobody
// takes a cluster for lost that others serve. Whoever answers need not prove who it is, and is told nothing: all that
// comes of a Yes is that less is done.
func (p *prober) endpointServes(ctx context.Context) observed.Tri {
	if p.Endpoint == "" {
		return observed.Unknown
	}
	var via []Target
	for _, t := range p.Targets {
		if t.ControlPlane && p.answers[t.ID].Host.Reach == observed.Reached {
			via = append(via, t)
		}
	}
	p.count(1, 0)
	return observed.Of(fromAny(ctx, via, func(ctx context.Context, dial dialFunc) error {
		return ready(ctx, dial, p.Endpoint)
	}) == nil)
}

// fromAny asks from this machine and from all the hosts at once, for two seconds at most, and is nil as soon as one has
// succeeded; else it is why none has.
func fromAny(ctx context.Context, hosts []Target, ask func(context.Context, dialFunc) error) error {
	from := []dialFrom{{"this machine", (&net.Dialer{}).DialContext}}
	for _, t := range hosts {
		from = append(from, dialFrom{t.ID, t.Host.Dial})
	}
	ctx, cancel := context.WithTimeout(ctx, endpointTimeout)
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

// ready asks an API server whether it is ready. Whoever says so in other words is something else.
func ready(ctx context.Context, dial dialFunc, address string) error {
	transport := &http.Transport{
		DialContext: dial, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // see endpointServes: nothing is told, and a lie has little done
		},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK || string(body) != "ok" {
		return fmt.Errorf("not ready: %d", answer.StatusCode)
	}
	return nil
}

// handshake makes a TLS connection and ends it.
func handshake(ctx context.Context, dial dialFunc, address string, ca *x509.CertPool) error {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	raw, err := dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = raw.Close() }()
	secure := tls.Client(raw, &tls.Config{RootCAs: ca, ServerName: name, MinVersion: tls.VersionTLS12})
	return secure.HandshakeContext(ctx)
}

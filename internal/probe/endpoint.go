package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
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
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

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
	from := []dialFrom{
		{"this machine", (&net.Dialer{}).DialContext},
		{c.target.ID, c.target.Host.Dial},
	}
	ctx, cancel := context.WithTimeout(ctx, endpointTimeout)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	outcomes := make(chan error, len(from))
	for _, f := range from {
		asking.Go(func() {
			err := handshake(ctx, f.dial, p.Endpoint, ca)
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
			return observed.Yes, ""
		}
		problems = append(problems, err)
	}
	return observed.No, oneLine(errors.Join(problems...))
}

// handshake makes a TLS connection and ends it.
func handshake(ctx context.Context, dial func(ctx context.Context, network, addr string) (net.Conn, error),
	address string, ca *x509.CertPool) error {
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

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
	"strings"
	"sync"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/model/observed"
)

// endpointTimeout limits the time for an answer from the API endpoint.
const endpointTimeout = 2 * time.Second

// dialFrom is a place from which to probe the endpoint.
type dialFrom struct {
	name string // for messages
	dial dialFunc
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// askEndpoint checks whether an API server of this cluster answers at the public endpoint. It tries from this machine
// and from the candidate in parallel, and succeeds if either succeeds. It makes a TLS connection and verifies that the
// certificate is for the endpoint name and signed by the cluster CA. It sends no request. The second result is the
// reason for a No.
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
	err := askFromAny(ctx, []Target{c.target}, func(ctx context.Context, dial dialFunc) error {
		connection, err := tlsHandshake(ctx, dial, p.Endpoint, &tls.Config{RootCAs: ca, MinVersion: tls.VersionTLS12})
		if err == nil {
			_ = connection.Close()
		}
		return err
	})
	if err != nil {
		return observed.No, oneLine(errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))) // of both attempts
	}
	return observed.Yes, ""
}

// findReadyServer returns the address of a ready API server, or "" if it finds none. It tries the endpoint and the
// servers in the kubeconfigs of control-plane hosts, from this machine and from control-plane hosts that answer. It is
// called if no API server on the hosts is ready, so that a cluster served by other machines is not taken for lost. It
// does not verify the certificate of the server, because it sends no data, and a false answer only makes kubeone do
// less.
func (p *prober) findReadyServer(ctx context.Context) string {
	var via []Target
	endpoints := []string{p.Endpoint}
	for _, t := range p.Targets {
		seen := p.answers[t.ID].Host
		if !t.ControlPlane || seen.Reach != observed.Reached || seen.FirstContact != "" {
			continue // hosts without an approved key do not count
		}
		if seen.APIServer == observed.Yes {
			return "" // the API server on the host is ready, so the cluster is not lost
		}
		via = append(via, t)
		for _, server := range []string{seen.Endpoint, seen.AdminEndpoint} {
			if u, err := url.Parse(server); err == nil && u.Port() != "" && len(endpoints) < maxEndpoints {
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
			ready[i] = askFromAny(ctx, via, func(ctx context.Context, dial dialFunc) error {
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

// maxEndpoints limits the addresses to try for a ready API server, and readyTimeout the time. connectTimeout limits the
// time for connecting to an address, which may not be in use yet.
const (
	maxEndpoints   = 8
	readyTimeout   = 4 * time.Second
	connectTimeout = time.Second
)

// dialFast returns a dial function that gives up after connectTimeout.
func dialFast(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		return dial(ctx, network, addr)
	}
}

// askFromAny calls ask in parallel, with a dial function for this machine and one for each host. It returns nil at the
// first success, or all errors if none succeeds. It cancels calls that are still running when it returns.
func askFromAny(ctx context.Context, hosts []Target, ask func(context.Context, dialFunc) error) error {
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

// askReady returns nil if the server at the address says that it is a ready API server. An unusual answer is an error,
// because it comes from another program.
func askReady(ctx context.Context, dial dialFunc, address string) error {
	connection, err := tlsHandshake(ctx, dial, address, &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // see findReadyServer: no data is sent, and a lie only makes kubeone do less
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

// tlsHandshake makes a TLS connection to the server named in the address.
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

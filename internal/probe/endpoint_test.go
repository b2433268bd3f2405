package probe

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kubeone/internal/host"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/closedport"
)

// dialing is a host that only opens connections.
type dialing func(ctx context.Context, network, addr string) (net.Conn, error)

func (d dialing) Run(context.Context, host.Cmd) (host.Result, error) {
	return host.Result{}, errors.New("nothing is run here")
}

func (d dialing) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return d(ctx, network, addr)
}

// kubeconfigOf returns a kubeconfig that trusts the certificate of a test's server.
func kubeconfigOf(s *httptest.Server) []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: c
contexts:
- name: c
  context: {cluster: c, user: u}
clusters:
- name: c
  cluster: {server: "https://127.0.0.1:6443", certificate-authority-data: %s}
users:
- name: u
  user: {token: t}
`, base64.StdEncoding.EncodeToString(ca))
}

// Any ready API server at the endpoint counts; no other answer does.
func TestReadyServerAtEndpointIsFound(t *testing.T) {
	t.Parallel()
	refuses := dialing(func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no way") })
	for name, c := range map[string]struct {
		status int
		body   string
		asked  bool
		ready  bool
	}{
		"ready":           {http.StatusOK, "ok", true, true},
		"without etcd":    {http.StatusInternalServerError, "[-]etcd failed: reason withheld", true, false},
		"not for anybody": {http.StatusUnauthorized, "{}", true, false},
		"a web page":      {http.StatusOK, "<html>ok</html>", true, false},
		"an endless one":  {http.StatusOK, strings.Repeat("ok", 1<<20), true, false},
		"not probed":      {http.StatusOK, "ok", false, false},
	} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" || r.Header.Get("Authorization") != "" {
				t.Errorf("%s: %s was asked, with %v", name, r.URL, r.Header)
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		t.Cleanup(server.Close)
		leads := dialing(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		})
		reached := Answer{Host: observed.Host{Reach: observed.Reached}}
		p := &prober{
			Request: Request{Targets: []Target{
				{ID: "cp-1", Host: refuses, ControlPlane: true}, {ID: "cp-2", Host: leads, ControlPlane: true},
			}}.withDefaults(),
			answers: map[string]Answer{"cp-1": reached, "cp-2": reached},
		}
		const endpoint = "api.invalid:6443" // does not resolve here
		if c.asked {
			p.Endpoint = endpoint
		}
		if got := p.findReadyServer(t.Context()); (got == endpoint) != c.ready || got != "" && got != endpoint {
			t.Errorf("%s: %q", name, got)
		}
		reached.Host.Endpoint, p.Endpoint = "https://old.invalid:6443", ""
		p.answers["cp-2"] = reached
		if got := p.findReadyServer(t.Context()); c.ready && got != "old.invalid:6443" {
			t.Errorf("%s: where a host dials: %q", name, got)
		}
		p.Endpoint = endpoint
		for what, not := range map[string]observed.Host{
			"does not answer": {Reach: observed.Unreachable},
			"nobody approved": {Reach: observed.Reached, FirstContact: "SHA256:new", Endpoint: "https://new.invalid:1"},
			"serves itself":   {Reach: observed.Reached, APIServer: observed.Yes},
		} {
			p.answers["cp-2"] = Answer{Host: not}
			if got := p.findReadyServer(t.Context()); got != "" {
				t.Errorf("%s: it was asked through a host that %s", name, what)
			}
		}
	}
}

// A server that accepts a connection and stays silent delays a probe only within its time.
func TestASilentEndpointIsLeft(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		c, err := silent.Accept()
		cancel()
		if err == nil {
			_, _ = io.Copy(io.Discard, c) // until the other side closes
			_ = c.Close()
		}
	}()
	p := &prober{Request: Request{Endpoint: silent.Addr().String()}.withDefaults()}
	if got := p.findReadyServer(ctx); got != "" {
		t.Errorf("%q is ready", got)
	}
}

// The endpoint is probed from its users' view: an API server behind a tunnel proves nothing about it.
func TestTheEndpointIsAsked(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	listens := server.Listener.Addr().String()
	silent := closedport.Address(t)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plain.Close() })
	go func() {
		for {
			c, err := plain.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("220 another service\r\n"))
			_ = c.Close()
		}
	}()
	refuses := dialing(func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no way") })
	leads := dialing(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, listens)
	})
	for name, c := range map[string]struct {
		endpoint string
		host     dialing
		want     observed.Tri
		says     []string
	}{
		"no endpoint":            {"", leads, observed.Unknown, nil},
		"from this machine":      {listens, refuses, observed.Yes, nil},
		"from the host":          {silent, leads, observed.Yes, nil},
		"from nowhere":           {silent, refuses, observed.No, []string{"from this machine: ", "from cp-1: no way"}},
		"something else answers": {plain.Addr().String(), refuses, observed.No, []string{"tls"}},
	} {
		p := &prober{Request: Request{Endpoint: c.endpoint}.withDefaults()}
		got, why := p.askEndpoint(t.Context(), candidate{
			target: Target{ID: "cp-1", Host: c.host},
			answer: Answer{Credentials: Credentials{Kubeconfig: kubeconfigOf(server)}},
		})
		if got != c.want || (why != "") != (c.want == observed.No) {
			t.Errorf("%s: %q, %q", name, got, why)
		}
		for _, text := range c.says {
			if !strings.Contains(why, text) {
				t.Errorf("%s: want %q in %q", name, text, why)
			}
		}
	}
}

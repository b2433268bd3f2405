package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Endpoint is one way to an API server: usually a control-plane host, reached through its SSH connection.
type Endpoint struct {
	ID      string // the host's identity, for messages
	Address string // host:port as seen from where Dial dials: "127.0.0.1:6443" from the host itself
	// Dial opens the connection; nil means straight from this machine. It must be safe for
	// concurrent use and return when its context ends.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Access is all that is needed to speak to a cluster's API. It holds credentials, so it shows nothing of them when it
// is printed or marshalled.
type Access struct {
	// Kubeconfig is a kubeconfig whose certificates, keys and tokens are inline. One that names files, or a program to
	// run, is refused: it comes from a host and must not reach into the operator's machine.
	Kubeconfig []byte
	// Via are the ways to the API, tried in order. Empty means straight to the kubeconfig's server.
	Via []Endpoint
}

const redacted = "cluster.Access(redacted)"

// String hides the credentials.
func (Access) String() string { return redacted }

// GoString hides the credentials.
func (Access) GoString() string { return redacted }

// Format hides the credentials from every verb.
func (Access) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(redacted)) }

// MarshalText hides the credentials from JSON, YAML and structured logs.
func (Access) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// config reads the kubeconfig's current context. Errors never quote the kubeconfig.
func (a Access) config() (*rest.Config, error) {
	raw, err := clientcmd.Load(a.Kubeconfig)
	if err != nil {
		return nil, errors.New("the kubeconfig is not valid YAML of a kubeconfig")
	}
	if err := inlineOnly(raw); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, "", nil, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	server, err := url.Parse(config.Host)
	if err != nil || server.Scheme != "https" || server.Hostname() == "" {
		return nil, fmt.Errorf("kubeconfig: server %q is not an https address", config.Host)
	}
	return config, nil
}

// inlineOnly refuses what would make this machine run a program or read a file because a kubeconfig says so.
func inlineOnly(raw *clientcmdapi.Config) error {
	for name, user := range raw.AuthInfos {
		switch {
		case user.Exec != nil, user.AuthProvider != nil:
			return fmt.Errorf("kubeconfig: user %q runs a program to log in, which is refused; use "+
				"certificates or a token", name)
		case user.ClientCertificate != "", user.ClientKey != "", user.TokenFile != "":
			return fmt.Errorf("kubeconfig: user %q names files of credentials, which is refused; put them inline", name)
		}
	}
	for name, c := range raw.Clusters {
		switch {
		case c.CertificateAuthority != "":
			return fmt.Errorf("kubeconfig: cluster %q names a file for its CA, which is refused; put it inline", name)
		case c.InsecureSkipTLSVerify:
			return fmt.Errorf("kubeconfig: cluster %q does not verify its server, which is refused; give its CA", name)
		}
	}
	return nil
}

// endpoints returns Via, or the kubeconfig's own server when there is none.
func (a Access) endpoints(config *rest.Config) []Endpoint {
	via := append([]Endpoint(nil), a.Via...)
	if len(via) == 0 {
		via = []Endpoint{{ID: "server", Address: serverAddress(config.Host)}}
	}
	for i := range via {
		if via[i].Dial == nil {
			via[i].Dial = (&net.Dialer{}).DialContext
		}
	}
	return via
}

// serverAddress is the host:port of a server's URL that config has already accepted.
func serverAddress(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return u.Host
}

// hostname is the name that the server's certificate must have.
func hostname(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	return u.Hostname()
}

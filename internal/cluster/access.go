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
	Address string // host:port as Dial reaches it: "127.0.0.1:6443" from the host itself
	// Dial opens the connection; nil means straight from this machine. It must be safe for
	// concurrent use and return when its context ends.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Access is what a client of a cluster's API needs. It holds credentials, and hides them when printed or marshalled.
type Access struct {
	// Kubeconfig is a kubeconfig with inline certificates, keys and tokens. One that names files or a program to run is
	// refused: it comes from a host and must not reach into the operator's machine.
	Kubeconfig []byte
	// TokenFiles says that the kubeconfig was made on this machine and may name a token file. The file is read again
	// regularly, since a pod's service account token is replaced every hour.
	TokenFiles bool
	// Via are the ways to the API, tried in order. Empty is a direct connection to the kubeconfig's server.
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

// AdminKubeconfig returns a kubeconfig for the operator's own programs. It has only the server, CA and credentials of
// the current context, under kubeone's names. It fails for a kubeconfig that is refused here, because it names files or
// a program to run.
func (a Access) AdminKubeconfig(clusterName string) ([]byte, error) {
	raw, err := a.loadKubeconfig()
	if err == nil {
		err = checkInline(raw, false) // the copy is complete without files
	}
	if err != nil {
		return nil, err
	}
	if _, err := newRESTConfig(raw); err != nil {
		return nil, err
	}
	current := raw.Contexts[raw.CurrentContext]
	if current == nil || raw.Clusters[current.Cluster] == nil || raw.AuthInfos[current.AuthInfo] == nil {
		return nil, errors.New("kubeconfig: its current context names no cluster or no user")
	}
	server, user := raw.Clusters[current.Cluster], raw.AuthInfos[current.AuthInfo]
	const admin = "kubernetes-admin"
	out := clientcmdapi.NewConfig()
	out.CurrentContext = admin + "@" + clusterName
	out.Contexts[out.CurrentContext] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: admin}
	out.Clusters[clusterName] = &clientcmdapi.Cluster{
		Server: server.Server, CertificateAuthorityData: server.CertificateAuthorityData,
	}
	out.AuthInfos[admin] = &clientcmdapi.AuthInfo{
		ClientCertificateData: user.ClientCertificateData, ClientKeyData: user.ClientKeyData, Token: user.Token,
	}
	return clientcmd.Write(*out)
}

// CA returns the CA certificate for the API's certificate, in PEM; nil if the kubeconfig cannot be used.
func (a Access) CA() []byte {
	config, err := a.restConfig()
	if err != nil {
		return nil
	}
	return config.CAData
}

// loadKubeconfig reads the kubeconfig. Errors never quote it.
func (a Access) loadKubeconfig() (*clientcmdapi.Config, error) {
	raw, err := clientcmd.Load(a.Kubeconfig)
	if err != nil {
		return nil, errors.New("the kubeconfig is not valid YAML of a kubeconfig")
	}
	return raw, checkInline(raw, a.TokenFiles)
}

// restConfig reads the kubeconfig's current context.
func (a Access) restConfig() (*rest.Config, error) {
	raw, err := a.loadKubeconfig()
	if err != nil {
		return nil, err
	}
	return newRESTConfig(raw)
}

func newRESTConfig(raw *clientcmdapi.Config) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, "", nil, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	server, err := url.Parse(config.Host)
	if err != nil || server.Scheme != "https" || server.Hostname() == "" {
		return nil, fmt.Errorf("kubeconfig: server %q is not an https address", config.Host)
	}
	if len(config.CAData) == 0 {
		return nil, errors.New("kubeconfig: it has no CA, so the server cannot be verified; add certificate-authority-data")
	}
	return config, nil
}

// checkInline refuses a kubeconfig that would make this machine run a program or read a file.
func checkInline(raw *clientcmdapi.Config, tokenFiles bool) error {
	for name, user := range raw.AuthInfos {
		switch {
		case user.Exec != nil, user.AuthProvider != nil:
			return fmt.Errorf("kubeconfig: user %q runs a program to log in, which is refused; use "+
				"certificates or a token", name)
		case user.ClientCertificate != "", user.ClientKey != "", user.TokenFile != "" && !tokenFiles:
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

// endpointList returns Via, or the kubeconfig's own server when there is none.
func (a Access) endpointList(config *rest.Config) []Endpoint {
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

// serverAddress returns the host:port of a server URL that restConfig has accepted.
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

// serverName returns the name that the server's certificate must have.
func serverName(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	return u.Hostname()
}

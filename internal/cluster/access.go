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

// Endpoint is one route to an API server. Usually it leads to a control-plane host through its SSH connection.
type Endpoint struct {
	ID      string // the host's identity, for messages
	Address string // host:port to pass to Dial, such as "127.0.0.1:6443" if Dial connects from the host itself
	// Dial opens the connection; nil connects directly from this machine. It must be safe for concurrent use and return
	// when its context ends.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Access contains the credentials and endpoints for a client of the cluster API. It hides the credentials when it is
// printed or marshaled.
type Access struct {
	// Kubeconfig is a kubeconfig with inline certificates, keys and tokens. A kubeconfig that refers to files or runs a
	// program is rejected: it comes from a host and must not read files or run programs on the machine of the operator.
	Kubeconfig []byte
	// TokenFiles says that the kubeconfig was created on this machine and may refer to a token file. The file is read
	// again regularly, because the service account token of a pod is replaced every hour.
	TokenFiles bool
	// Via are the routes to the API, tried in order. If it is empty, the client connects directly to the server in the
	// kubeconfig.
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

// AdminKubeconfig returns a kubeconfig for other programs that the operator runs, such as kubectl. It contains only the
// server, CA and credentials of the current context, under the names that kubeone uses. It fails for a kubeconfig that
// refers to files or runs a program.
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
		return nil, errors.New("kubeconfig: the current context does not refer to an existing cluster and user")
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

// CA returns the CA certificate that verifies the API server, in PEM. It returns nil if the kubeconfig cannot be used.
func (a Access) CA() []byte {
	config, err := a.restConfig()
	if err != nil {
		return nil
	}
	return config.CAData
}

// loadKubeconfig parses the kubeconfig. Its errors never quote the content.
func (a Access) loadKubeconfig() (*clientcmdapi.Config, error) {
	raw, err := clientcmd.Load(a.Kubeconfig)
	if err != nil {
		return nil, errors.New("the kubeconfig cannot be parsed")
	}
	return raw, checkInline(raw, a.TokenFiles)
}

// restConfig returns the client configuration for the current context of the kubeconfig.
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
		return nil, errors.New("kubeconfig: certificate-authority-data is missing, so the server cannot be verified")
	}
	return config, nil
}

// checkInline returns an error for a kubeconfig that would make this machine run a program or read a file. It allows
// token files if tokenFiles is true.
func checkInline(raw *clientcmdapi.Config, tokenFiles bool) error {
	for name, user := range raw.AuthInfos {
		switch {
		case user.Exec != nil, user.AuthProvider != nil:
			return fmt.Errorf("kubeconfig: user %q runs a program to log in, which is not allowed; "+
				"use certificates or a token", name)
		case user.ClientCertificate != "", user.ClientKey != "", user.TokenFile != "" && !tokenFiles:
			return fmt.Errorf("kubeconfig: user %q refers to credential files, which is not allowed; embed them", name)
		}
	}
	for name, c := range raw.Clusters {
		switch {
		case c.CertificateAuthority != "":
			return fmt.Errorf("kubeconfig: cluster %q refers to a CA file, which is not allowed; embed the CA", name)
		case c.InsecureSkipTLSVerify:
			return fmt.Errorf("kubeconfig: cluster %q does not verify its server; add certificate-authority-data", name)
		}
	}
	return nil
}

// endpointList returns the endpoints to try: Via, otherwise the server in the kubeconfig. Each has a Dial function.
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

// serverName returns the name that the server certificate must contain.
func serverName(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	return u.Hostname()
}

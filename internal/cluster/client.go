// Package cluster is a client of the cluster API. It combines the packages in this folder, such as those for join
// tokens, kubelet certificates, nodes, drains, the cluster record, rollouts and server-side apply.
//
// Every operation is idempotent and waits for conditions by watching. It retries transient failures until its context
// ends, because API servers restart while a cluster is being built. Errors are of type *apicall.Error and contain the
// operation, the node and a class. The package makes no decisions; it carries out the plan.
package cluster

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/certificates"
	"kubeone/internal/cluster/drain"
	"kubeone/internal/cluster/helm"
	"kubeone/internal/cluster/inventory"
	"kubeone/internal/cluster/jointoken"
	"kubeone/internal/cluster/machines"
	"kubeone/internal/cluster/nodes"
	"kubeone/internal/cluster/record"
	"kubeone/internal/cluster/rollout"
	"kubeone/internal/cluster/rootca"
	"kubeone/internal/cluster/secrets"
	"kubeone/internal/cluster/settings"
	"kubeone/internal/cluster/ssa"
	"kubeone/internal/locks/leaselock"
)

// Client is a client of one cluster. It is safe for concurrent use.
type Client struct {
	Kubernetes kubernetes.Interface
	Dynamic    dynamic.Interface
	// REST is the configuration for other clients, which then connect through the same endpoints. It contains
	// credentials.
	REST *rest.Config

	certificates.Approver
	drain.Drainer
	helm.Installer
	inventory.Keeper
	jointoken.Issuer
	leaselock.Locker
	machines.CredentialStore
	machines.Definer
	machines.Returner
	nodes.Nodes
	record.Store
	rollout.Waiter
	rootca.Publisher
	secrets.Rewriter
	settings.Setter
	*ssa.Applier

	dial    *dialer
	http    *http.Transport
	limited *deadlineTransport
}

// Connect prepares a client. The first request opens a connection through the first endpoint in access.Via that
// answers. TLS always verifies the server against the CA in the kubeconfig. Proxies from the environment are not used.
// The caller must close the client.
func Connect(access Access) (*Client, error) { return connectClient(access, defaultLimits()) }

func connectClient(access Access, l limits) (*Client, error) {
	config, err := access.restConfig()
	if err != nil {
		return nil, apicall.Wrap("connect to the cluster", "", err)
	}
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, apicall.Wrap("connect to the cluster", "", fmt.Errorf("certificates in the kubeconfig: %w", err))
	}
	if secure == nil { // without CA and certificates, use the system CAs and a token
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	secure.NextProtos = []string{"h2", "http/1.1"}
	if secure.ServerName == "" {
		secure.ServerName = serverName(config.Host)
	}
	d := newDialer(access.endpointList(config), secure, l)
	tuneConfig(config, d)
	return newClient(config, d)
}

// tuneConfig sets the limits and dialers shared by all clients.
func tuneConfig(config *rest.Config, d *dialer) {
	config.QPS = -1 // no client-side limit: the API server has priority and fairness
	config.UserAgent = "kubeone"
	config.WarningHandler = rest.NoWarnings{}
	config.Dial = d.dialPlain
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
}

func newClient(config *rest.Config, d *dialer) (*Client, error) {
	base := newHTTPTransport(d)
	limited := &deadlineTransport{base: base, timeout: d.limits.request}
	wrapped, err := rest.HTTPWrappersForConfig(config, limited)
	if err != nil {
		return nil, apicall.Wrap("connect to the cluster", "", err)
	}
	hc := &http.Client{Transport: wrapped}
	typed := rest.CopyConfig(config)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	kube, err := kubernetes.NewForConfigAndClient(typed, hc)
	if err != nil {
		return nil, apicall.Wrap("connect to the cluster", "", err)
	}
	dyn, err := dynamic.NewForConfigAndClient(config, hc)
	if err != nil {
		return nil, apicall.Wrap("connect to the cluster", "", err)
	}
	c := New(kube, dyn)
	c.REST, c.dial, c.http, c.limited = config, d, base, limited
	c.Installer = helm.Installer{Config: config}
	return c, nil
}

// New returns a Client that uses existing clients. The caller closes them. Its REST is nil, so it cannot change Helm
// releases.
func New(kube kubernetes.Interface, dyn dynamic.Interface) *Client {
	applier := ssa.New(kube, dyn)
	return &Client{
		Kubernetes: kube, Dynamic: dyn,
		Approver:        certificates.Approver{Kubernetes: kube},
		Drainer:         drain.Drainer{Kubernetes: kube},
		Keeper:          inventory.Keeper{Kubernetes: kube, Applier: applier},
		Issuer:          jointoken.Issuer{Kubernetes: kube},
		Locker:          leaselock.Locker{Kubernetes: kube},
		CredentialStore: machines.CredentialStore{Kubernetes: kube},
		Definer:         machines.Definer{Applier: applier},
		Returner:        machines.Returner{Kubernetes: kube, Dynamic: dyn},
		Nodes:           nodes.Nodes{Kubernetes: kube},
		Store:           record.Store{Kubernetes: kube},
		Publisher:       rootca.Publisher{Kubernetes: kube},
		Waiter:          rollout.Waiter{Kubernetes: kube},
		Rewriter:        secrets.Rewriter{Dynamic: dyn},
		Setter:          settings.Setter{Kubernetes: kube},
		Applier:         applier,
	}
}

// Requests returns the number of requests so far, without those through REST. It is 0 for a client of New.
func (c *Client) Requests() int {
	if c.limited == nil {
		return 0
	}
	return int(c.limited.sent.Load())
}

// Close closes all connections, including those of watches. The client must not be used afterwards.
func (c *Client) Close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
		c.dial.closeAll()
	}
}

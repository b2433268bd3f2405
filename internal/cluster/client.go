// Package cluster speaks to a cluster's API server, and joins the packages below it, each of which does one thing
// there: join tokens, kubelets' certificates, nodes, drains, the cluster's own record, roll-outs, and
// server-side apply.
//
// Every operation is idempotent, retries transient failures itself until its context ends (API servers restart while a
// cluster is being built), and waits for conditions by watching. Errors are *apicall.Error, with what was done, to
// which node, and a class. Nothing here decides anything: what to do is in the plan.
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

// Client speaks to one cluster. It is safe for concurrent use.
type Client struct {
	Kubernetes kubernetes.Interface
	Dynamic    dynamic.Interface
	// REST is the configuration, for clients that must be built otherwise; it dials through the endpoints too. It
	// holds credentials.
	REST *rest.Config

	certificates.Approver
	drain.Drainer
	jointoken.Issuer
	leaselock.Locker
	machines.CredentialStore
	machines.Returner
	nodes.Nodes
	record.Store
	rollout.Waiter
	rootca.Publisher
	secrets.Rewriter
	settings.Setter
	*ssa.Applier

	dial *dialer
	http *http.Transport
}

// Connect prepares a client; no connection is made before the first request. A request goes to the first endpoint of
// access.Via that answers; TLS always checks that it is the server that the kubeconfig names. Proxies of the
// environment are not used. The caller closes the client.
func Connect(access Access) (*Client, error) { return connectClient(access, usualLimits()) }

func connectClient(access Access, l limits) (*Client, error) {
	config, err := access.restConfig()
	if err != nil {
		return nil, apicall.Wrap("connect to the cluster", "", err)
	}
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, apicall.Wrap("connect to the cluster", "", fmt.Errorf("certificates of the kubeconfig: %w", err))
	}
	if secure == nil { // neither CA nor certificates: the system's CAs, and a token
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

// tuneConfig sets what all our clients share.
func tuneConfig(config *rest.Config, d *dialer) {
	config.QPS = -1 // the API server's own fairness is enough; waiting here only makes an apply slower
	config.UserAgent = "kubeone"
	config.WarningHandler = rest.NoWarnings{}
	config.Dial = d.dialPlain
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
}

func newClient(config *rest.Config, d *dialer) (*Client, error) {
	base := newHTTPTransport(d)
	wrapped, err := rest.HTTPWrappersForConfig(config, &timed{base: base, timeout: d.limits.request})
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
	c.REST, c.dial, c.http = config, d, base
	return c, nil
}

// New makes a client of clients that somebody else made and ends. Its REST is nil.
func New(kube kubernetes.Interface, dyn dynamic.Interface) *Client {
	return &Client{
		Kubernetes: kube, Dynamic: dyn,
		Approver:        certificates.Approver{Kubernetes: kube},
		Drainer:         drain.Drainer{Kubernetes: kube},
		Issuer:          jointoken.Issuer{Kubernetes: kube},
		Locker:          leaselock.Locker{Kubernetes: kube},
		CredentialStore: machines.CredentialStore{Kubernetes: kube},
		Returner:        machines.Returner{Kubernetes: kube, Dynamic: dyn},
		Nodes:           nodes.Nodes{Kubernetes: kube},
		Store:           record.Store{Kubernetes: kube},
		Publisher:       rootca.Publisher{Kubernetes: kube},
		Waiter:          rollout.Waiter{Kubernetes: kube},
		Rewriter:        secrets.Rewriter{Dynamic: dyn},
		Setter:          settings.Setter{Kubernetes: kube},
		Applier:         ssa.New(kube, dyn),
	}
}

// Close ends all connections, watches included. The client must not be used afterwards.
func (c *Client) Close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
		c.dial.closeAll()
	}
}

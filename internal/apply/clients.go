package apply

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/addons/resources"
	"kubeone/internal/cluster"
	"kubeone/internal/cluster/certificates"
	"kubeone/internal/cluster/drain"
	"kubeone/internal/cluster/helm"
	"kubeone/internal/cluster/inventory"
	"kubeone/internal/cluster/record"
	"kubeone/internal/cluster/settings"
	"kubeone/internal/etcd"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/nodename"
	"kubeone/internal/model/observed"
)

// API is the part of the Kubernetes API that steps use. *cluster.Client implements it and documents each method. Its
// methods retry transient errors and are safe for concurrent use.
type API interface {
	// CreateJoinToken creates a token for the Node of the claim. It returns an error if the host must not use that
	// name.
	CreateJoinToken(ctx context.Context, runID string, claim nodename.Claim, ttl time.Duration) (token, id string,
		err error)
	RevokeJoinToken(ctx context.Context, id string) error
	RevokeJoinTokens(ctx context.Context, runID string) error

	WaitNode(ctx context.Context, node string) error
	WaitNodeReady(ctx context.Context, node string) error
	SetNodeMeta(ctx context.Context, node string, labels, annotations map[string]string, taints []desired.Taint) error
	Drain(ctx context.Context, node string, opts drain.Options) error
	Uncordon(ctx context.Context, node string) error
	WaitNodeVersion(ctx context.Context, node, kubelet, containerd string) error
	WaitLeading(ctx context.Context) error
	WaitNodeSilent(ctx context.Context, node string) error
	DeleteNode(ctx context.Context, node string) error
	DeleteMachines(ctx context.Context) error
	// WaitHostsFree waits until all Machine hosts are returned, for at most within.
	WaitHostsFree(ctx context.Context, within time.Duration) error

	// ApplyAddon and RemoveAddon are the methods of inventory.Keeper.
	ApplyAddon(ctx context.Context, change inventory.Change) error
	RemoveAddon(ctx context.Context, addon string, objects []observed.AddonObject) error
	// ApplyRelease and RemoveRelease are the methods of helm.Installer.
	ApplyRelease(ctx context.Context, r helm.Release) error
	RemoveRelease(ctx context.Context, namespace, name string, timeout time.Duration) error
	// DefineKinds is the method of machines.Definer.
	DefineKinds(ctx context.Context) error
	// Create creates a missing object; Merge applies a merge patch.
	Create(ctx context.Context, o *unstructured.Unstructured) error
	Merge(ctx context.Context, o *unstructured.Unstructured, patch []byte) error
	// SetKubeProxy changes the configuration and kubeconfig of kube-proxy, and restarts its pods if either changed.
	SetKubeProxy(ctx context.Context, change settings.Change) error
	// RemoveKubeProxy deletes kube-proxy as kubeadm applied it.
	RemoveKubeProxy(ctx context.Context) error
	// PublishEndpoint writes the API endpoint, "host:port", and the certificate names to the objects that joining hosts
	// read.
	PublishEndpoint(ctx context.Context, endpoint string, names []string) error
	// ScaleDNS calls want with the current number of DNS servers and sets the number to the result.
	ScaleDNS(ctx context.Context, want func(have int32) int32) error
	// RewriteSecrets writes every Secret back unchanged. It calls tell with the number written so far.
	RewriteSecrets(ctx context.Context, tell func(written int)) error
	// RenewTokenSecrets renews the tokens in Secrets that were signed with one of the dropped keys.
	RenewTokenSecrets(ctx context.Context, dropped []string, tell func(namespace, name string)) error
	// TrimExtensionCAs removes all keys of an authority except the given ones from the trust of extension API servers.
	TrimExtensionCAs(ctx context.Context, authority string, trusted []string) error
	WaitRollout(ctx context.Context, w resources.Workload) (excused []string, err error)
	WaitDeploymentAvailable(ctx context.Context, namespace, name string) error
	UpdateRecord(ctx context.Context, change func(*record.Record) error) error
	// PublishCAs, AwaitRootCAs and UnawarePods are the methods of rootca.Publisher.
	PublishCAs(ctx context.Context, pem []byte) error
	AwaitRootCAs(ctx context.Context, keys []string) error
	UnawarePods(ctx context.Context, keys []string) (pods []string, err error)
	// SaveHostCredentials stores these credentials for Machine hosts, if the cluster supports Machines.
	SaveHostCredentials(ctx context.Context, c desired.Credentials) error

	// ServeApprovals approves kubelet certificates until ctx ends; ApprovePending does so once.
	ServeApprovals(ctx context.Context, expected certificates.Expected, tell func(certificates.Decision))
	ApprovePending(ctx context.Context, expected certificates.Expected, tell func(certificates.Decision)) error
	// RemoveAutoApproval stops the controller manager from approving the first certificate of Nodes.
	RemoveAutoApproval(ctx context.Context) error
	Close()
}

// Etcd is the part of an etcd connection that steps use. *etcd.Client implements it.
type Etcd interface {
	Observe(ctx context.Context) (observed.Etcd, error)
	RemoveMember(ctx context.Context, id uint64) error
	Close() error
}

// Connectors open the connections for a run. The zero value opens real ones.
type Connectors struct {
	API  func(cluster.Access) (API, error)                // nil: cluster.Connect
	Etcd func(context.Context, etcd.Access) (Etcd, error) // nil: etcd.Connect
}

func (c Connectors) connectAPI(a *cluster.Access) (API, error) {
	if a == nil {
		return nil, errors.New("the API of the cluster cannot be reached")
	}
	if c.API != nil {
		return c.API(*a)
	}
	client, err := cluster.Connect(*a)
	if err != nil {
		return nil, err // never wrap a nil client in a non-nil API
	}
	return client, nil
}

func (c Connectors) connectEtcd(ctx context.Context, a *etcd.Access) (Etcd, error) {
	if a == nil {
		return nil, errors.New("etcd cannot be reached")
	}
	if c.Etcd != nil {
		return c.Etcd(ctx, *a)
	}
	client, err := etcd.Connect(ctx, *a)
	if err != nil {
		return nil, err // never wrap a nil client in a non-nil Etcd
	}
	return client, nil
}

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
	"kubeone/internal/cluster/record"
	"kubeone/internal/cluster/settings"
	"kubeone/internal/cluster/ssa"
	"kubeone/internal/etcd"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/nodename"
	"kubeone/internal/model/observed"
)

// API is what steps need of the Kubernetes API. *cluster.Client is one, and says what each method does; its methods
// retry what is transient themselves and may be called concurrently.
type API interface {
	// CreateJoinToken makes a token with which the claim's Node may join, if the host may be that.
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
	// WaitHostsFree waits until the hosts of Machines are returned, for that long at most.
	WaitHostsFree(ctx context.Context, within time.Duration) error

	Apply(ctx context.Context, objects []unstructured.Unstructured) (ssa.Result, error)
	// Create makes an object that is not there; Merge changes one by a merge patch; Delete deletes objects.
	Create(ctx context.Context, o *unstructured.Unstructured) error
	Merge(ctx context.Context, o *unstructured.Unstructured, patch []byte) error
	Delete(ctx context.Context, objects []unstructured.Unstructured) error
	// SetKubeProxy changes kube-proxy's configuration and kubeconfig, and has its pods begin anew if they changed.
	SetKubeProxy(ctx context.Context, change settings.Change) error
	// PublishEndpoint names the API's endpoint, "host:port", in the objects by which hosts that join find it, and the
	// names for which certificates are made.
	PublishEndpoint(ctx context.Context, endpoint string, names []string) error
	// ScaleDNS makes the number of DNS servers what want says of the number that there is.
	ScaleDNS(ctx context.Context, want func(have int32) int32) error
	// RewriteSecrets writes every Secret again as it is, and tells how many by now.
	RewriteSecrets(ctx context.Context, tell func(written int)) error
	// RenewTokenSecrets has tokens in Secrets made anew that one of those keys has signed.
	RenewTokenSecrets(ctx context.Context, dropped []string, tell func(namespace, name string)) error
	// TrimExtensionCAs has extension API servers trust these keys of an authority alone.
	TrimExtensionCAs(ctx context.Context, authority string, trusted []string) error
	WaitRollout(ctx context.Context, w resources.Workload) (excused []string, err error)
	WaitDeploymentAvailable(ctx context.Context, namespace, name string) error
	UpdateRecord(ctx context.Context, change func(*record.Record) error) error
	// NameCAs, AwaitRootCAs and Unaware are those of rootca.Publisher.
	NameCAs(ctx context.Context, pem []byte) error
	AwaitRootCAs(ctx context.Context, keys []string) error
	Unaware(ctx context.Context, keys []string) (pods []string, err error)
	// KeepHostCredentials has the hosts of Machines, where the cluster may have such, given these credentials.
	KeepHostCredentials(ctx context.Context, c desired.Credentials) error

	// ServeApprovals approves kubelets' certificates until ctx ends; ApprovePending does so once.
	ServeApprovals(ctx context.Context, expected certificates.Expected, tell func(certificates.Decision))
	ApprovePending(ctx context.Context, expected certificates.Expected, tell func(certificates.Decision)) error
	// RemoveAutoApproval has the cluster's controllers approve no Node's first certificate.
	RemoveAutoApproval(ctx context.Context) error
	Close()
}

// Etcd is what steps need of a connection to etcd. *etcd.Client is one.
type Etcd interface {
	Observe(ctx context.Context) (observed.Etcd, error)
	RemoveMember(ctx context.Context, id uint64) error
	Close() error
}

// Connectors make a run's connections. The zero value makes real ones.
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
		return nil, err // and not an API that holds a nil client
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
		return nil, err // and not an Etcd that holds a nil client
	}
	return client, nil
}

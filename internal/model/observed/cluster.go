package observed

import (
	"slices"
	"strings"
)

// API is what the Kubernetes API said, through the control-plane host that answered.
type API struct {
	// Reached is Yes if an API server answered with kubeone's credentials, No if hosts have credentials and no API
	// server answered, and Unknown if no host could be reached or none has credentials.
	Reached   Tri    `json:"reached,omitempty"`
	Problem   string `json:"problem,omitempty"`
	Via       string `json:"via,omitempty"` // the ID of the host that the requests went through
	Version   string `json:"version,omitempty"`
	ClusterID string `json:"clusterID,omitempty"` // the UID of the kube-system namespace

	Nodes       []Node `json:"nodes,omitempty"`
	Pods        []Pod  `json:"pods,omitempty"` // in kube-system, and of network plugins
	PendingCSRs int    `json:"pendingCSRs,omitempty"`
	// ServingRequests lists kubelets' well-formed requests for serving certificates.
	ServingRequests []ServingRequest `json:"servingRequests,omitempty"`
	// Endpoint is the API's address according to kubeadm, "host:port", for which the certificates were made; "" if
	// unknown.
	Endpoint string `json:"endpoint,omitempty"`
	// EndpointAnswers reports whether an API server answered at the manifest's endpoint, as seen from the operator's
	// machine or a control-plane host; Unknown if that was not checked. EndpointProblem is why not.
	EndpointAnswers Tri    `json:"endpointAnswers,omitempty"`
	EndpointProblem string `json:"endpointProblem,omitempty"`
	// ReadyAt is where an API server reports that it is ready, "host:port", if no host's API answers: the manifest's
	// endpoint, or one that control-plane hosts dial. Being ready takes an etcd with a quorum. The server may belong to
	// another cluster. "" if there is none.
	ReadyAt string `json:"readyAt,omitempty"`
	// AutoApproval is Yes if any join token gives any Node's certificate: a rule of kubeadm's.
	AutoApproval Tri `json:"autoApproval,omitempty"`
	// Addons holds the digest of each addon as last applied, by name; an addon that was never applied is missing.
	Addons map[string]string `json:"addons,omitempty"`
	// Inventories holds the objects of each applied addon, by its name. Addons that kubeone applied before it kept
	// inventories have none. Nil if they were not read, which decisions about one host do not need.
	Inventories map[string]Inventory `json:"inventories,omitempty"`
	// HelmReleases holds the Helm releases that kubeone installed, and those in the manifest that others installed, by
	// "namespace/name". Nil if they were not read.
	HelmReleases map[string]HelmRelease `json:"helmReleases,omitempty"`
	// APIVersions lists the API versions and kinds that charts find in the cluster, such as "apps/v1" and
	// "apps/v1/Deployment", sorted. Nil if no Helm release is desired.
	APIVersions []string `json:"apiVersions,omitempty"`
	// Compared holds the results for the components whose objects were compared with the desired ones, by component; Helm
	// releases by "namespace/name". A component that was not compared is missing.
	Compared map[string]Comparison `json:"compared,omitempty"`
	// Record is kubeone's record in the cluster; nil if there is none.
	Record *Record `json:"record,omitempty"`
	Lease  *Lock   `json:"lease,omitempty"`
	// ExtensionCAs holds the keys of the CAs that extension API servers trust for clients and the front proxy, by
	// authority; nil if they were not read, which only rotations of CAs do.
	ExtensionCAs map[string][]string `json:"extensionCAs,omitempty"`
	// Pool is nil if the API has no Machines or they were not read, which decisions about one host do not need.
	Pool *Pool `json:"pool,omitempty"`
}

// Inventory lists the objects of an applied addon.
type Inventory struct {
	Objects []AddonObject `json:"objects,omitempty"`
	Problem string        `json:"problem,omitempty"` // why it cannot be read; Objects is empty then
}

// HelmRelease is the last revision of a Helm release.
type HelmRelease struct {
	Revision int    `json:"revision,omitempty"`
	Status   string `json:"status,omitempty"` // "deployed", "failed", "pending-upgrade"
	Chart    string `json:"chart,omitempty"`  // the name of the chart
	Version  string `json:"version,omitempty"`
	// Managed says that kubeone installed the release. Source and Values are then the digests of desired.HelmRelease
	// that it was installed with.
	Managed bool   `json:"managed,omitempty"`
	Source  string `json:"source,omitempty"`
	Values  string `json:"values,omitempty"`
	Objects int    `json:"objects,omitempty"` // number of objects, without hooks
	Problem string `json:"problem,omitempty"` // why its content cannot be read
}

// ReleaseDeployed is the status of a Helm release whose last operation succeeded.
const ReleaseDeployed = "deployed"

// Interrupted reports whether an operation on the release was interrupted, or is going on.
func (r HelmRelease) Interrupted() bool { return strings.HasPrefix(r.Status, "pending-") }

// AddonObject identifies an object of an addon.
type AddonObject struct {
	APIVersion string `json:"apiVersion"` // as applied
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Foreign says that the object existed before the addon was applied. It is changed, but never deleted.
	Foreign bool `json:"foreign,omitempty"`
}

// Group returns the API group; "" is the core group.
func (o AddonObject) Group() string {
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// Key identifies the object in any version of its API.
func (o AddonObject) Key() string { return o.Group() + "/" + o.Kind + "/" + o.Namespace + "/" + o.Name }

// String returns "Kind namespace/name", as Difference.Object.
func (o AddonObject) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// HoldsOthers reports whether deleting the object would also delete objects or data that the addon may not own: what is
// in a namespace, the objects of a custom kind, a volume.
func (o AddonObject) HoldsOthers() bool {
	switch o.Kind {
	case "Namespace", "CustomResourceDefinition", "PersistentVolumeClaim", "PersistentVolume":
		return true
	}
	return false
}

// ServingRequest is a kubelet's undecided request for a serving certificate.
type ServingRequest struct {
	Node  string   `json:"node"`  // that requests it
	Names []string `json:"names"` // requested names and addresses
}

// Comparison is how a component's objects differ from the desired ones.
type Comparison struct {
	// Applying the component again fixes Differences; writing its settings fixes Settings.
	Differences []Difference `json:"differences,omitempty"`
	Settings    []Difference `json:"settings,omitempty"`
	Problem     string       `json:"problem,omitempty"` // why they could not be compared
	// Late says that the API was too slow or too busy, so that the next comparison may succeed.
	Late bool `json:"late,omitempty"`
}

// Difference is an object that differs from the desired one.
type Difference struct {
	Object  string   `json:"object"`            // "DaemonSet kube-system/kube-proxy"
	Missing bool     `json:"missing,omitempty"` // it does not exist
	Fields  []string `json:"fields,omitempty"`  // paths of some fields that differ, sorted
}

// String returns the difference in words.
func (d Difference) String() string {
	if d.Missing {
		return d.Object + " is missing"
	}
	return d.Object + " differs in " + strings.Join(d.Fields, ", ")
}

// Node is a Node object.
type Node struct {
	Name           string            `json:"name"`
	Addresses      []string          `json:"addresses,omitempty"`
	MachineID      string            `json:"machineID,omitempty"` // as its kubelet reports it
	Ready          Tri               `json:"ready"`               // also Unknown if the kubelet stopped reporting
	Unschedulable  bool              `json:"unschedulable,omitempty"`
	ControlPlane   bool              `json:"controlPlane,omitempty"`
	KubeletVersion string            `json:"kubeletVersion,omitempty"` // without v
	Runtime        string            `json:"runtime,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Annotations    map[string]string `json:"annotations,omitempty"`
	Taints         []Taint           `json:"taints,omitempty"`
}

// CordonAnnotation on a Node says that a run cordoned it; its value is the run's ID. Only such a Node is uncordoned: an
// operator's cordon stays.
const CordonAnnotation = "kubeone.k8c.io/cordoned-by"

// TaintsAnnotation on a Node lists the taints that come from the manifest, as "key:Effect,…".
const TaintsAnnotation = "kubeone.k8c.io/taints"

// Taint is a taint of a Node.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Pod is a pod that the cluster itself needs.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node,omitempty"`
	App       string `json:"app,omitempty"` // its k8s-app, component or app label
	Ready     Tri    `json:"ready"`
	Restarts  int    `json:"restarts,omitempty"`
	Image     string `json:"image,omitempty"` // of its first container
	// Address is the pod's own; "" if the pod uses its host's, or has none yet.
	Address string `json:"address,omitempty"`
}

// The keys of the cluster record, which is a ConfigMap.
const (
	RecordCluster         = "cluster"
	RecordManifestDigest  = "manifestDigest"
	RecordManifest        = "manifest"
	RecordRunID           = "runID"
	RecordNodes           = "nodes"
	RecordFormerEndpoints = "formerEndpoints"
	RecordHardening       = "hardening"
	RecordAddons          = "addons"
	RecordHistory         = "history"
)

// Record is what the last successful run left in the cluster.
type Record struct {
	Cluster        string `json:"cluster"`
	ManifestDigest string `json:"manifestDigest"`
	Manifest       string `json:"-"` // without secrets
	RunID          string `json:"runID,omitempty"`
	// Nodes holds the Node names of the manifest's hosts, by host ID, as of that run.
	Nodes map[string]string `json:"nodes,omitempty"`
	// FormerEndpoints lists former names and addresses of the API that its certificates keep.
	FormerEndpoints []string `json:"formerEndpoints,omitempty"`
	// Hardening is the value that the cluster was made with; "" if it was never set.
	Hardening string `json:"hardening,omitempty"`
	// Unreadable holds the keys whose text no run wrote, and why. Their content is unknown: the fields above, and
	// API.Addons, are zero.
	Unreadable map[string]string `json:"unreadable,omitempty"`
}

// IsUnreadable reports whether there is a record with one of these keys unreadable.
func (r *Record) IsUnreadable(keys ...string) bool {
	return r != nil && slices.ContainsFunc(keys, func(key string) bool { return r.Unreadable[key] != "" })
}

// Etcd is what the members said.
type Etcd struct {
	Reached Tri      `json:"reached,omitempty"` // as API.Reached
	Problem string   `json:"problem,omitempty"`
	Members []Member `json:"members,omitempty"`
	Orphans []Alarm  `json:"orphanedAlarms,omitempty"` // of members that are no longer listed
}

// Alarm is an alarm of an etcd member.
type Alarm struct {
	Member string `json:"member"` // hex
	Name   string `json:"alarm"`  // NOSPACE, CORRUPT
}

// Member is one member of etcd.
type Member struct {
	ID       string   `json:"id"` // hex
	Name     string   `json:"name,omitempty"`
	PeerURLs []string `json:"peerURLs,omitempty"`
	Learner  bool     `json:"learner,omitempty"`
	Healthy  Tri      `json:"healthy"` // it answered a status call without errors
	Leader   bool     `json:"leader,omitempty"`
	Alarms   []string `json:"alarms,omitempty"`
	Version  string   `json:"version,omitempty"`
	DBSize   int64    `json:"dbSize,omitempty"`
}

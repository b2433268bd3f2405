package observed

import (
	"slices"
	"strings"
)

// API is what the Kubernetes API said, through whichever control-plane host answered.
type API struct {
	// Reached is Yes when some API server answered with our credentials, No when hosts have credentials and none
	// answered, Unknown when nobody could be asked (no host reached, or no host has credentials).
	Reached   Tri    `json:"reached,omitempty"`
	Problem   string `json:"problem,omitempty"`
	Via       string `json:"via,omitempty"` // the ID of the host through which it was asked
	Version   string `json:"version,omitempty"`
	ClusterID string `json:"clusterID,omitempty"` // the UID of the kube-system namespace

	Nodes       []Node `json:"nodes,omitempty"`
	Pods        []Pod  `json:"pods,omitempty"` // of kube-system, and of network plugins
	PendingCSRs int    `json:"pendingCSRs,omitempty"`
	// ServingRequests are those of them that are well formed, by which kubelets ask for serving certificates.
	ServingRequests []ServingRequest `json:"servingRequests,omitempty"`
	// Endpoint is where kubeadm has everybody look for the API, "host:port", with which the certificates were made; ""
	// where it did not say.
	Endpoint string `json:"endpoint,omitempty"`
	// EndpointAnswers is whether an API server answered where the manifest has its users look for it, seen from the
	// operator's machine or from a control-plane host; Unknown where nobody has asked. EndpointProblem is why not.
	EndpointAnswers Tri    `json:"endpointAnswers,omitempty"`
	EndpointProblem string `json:"endpointProblem,omitempty"`
	// ReadyAt is searched for where the API of none of the hosts answers: the manifest's endpoint, or one that
	// control-plane hosts dial, "host:port", at which an API server says that it is ready. That takes an etcd with a
	// quorum. Nobody vouches for it that the server is this cluster's. "" if there is none.
	ReadyAt string `json:"readyAt,omitempty"`
	// AutoApproval is Yes when whoever has a join token gets any Node's certificate: a rule of kubeadm's.
	AutoApproval Tri `json:"autoApproval,omitempty"`
	// Addons is the digest of each addon as last applied by us, by name; one that was never applied is missing.
	Addons map[string]string `json:"addons,omitempty"`
	// Compared is what was found of each component whose objects were compared with what they must be, by its name;
	// one that was not compared is missing.
	Compared map[string]Comparison `json:"compared,omitempty"`
	// Record is our own record in the cluster; nil if there is none.
	Record *Record `json:"record,omitempty"`
	Lease  *Lock   `json:"lease,omitempty"`
	// ExtensionCAs are the keys of the CAs by which extension API servers know clients and the front proxy, by the name
	// of the authority; nil if nobody has asked: who rotates no CA does not.
	ExtensionCAs map[string][]string `json:"extensionCAs,omitempty"`
	// Pool is nil where the API has no Machines, and where nobody has searched for them: who looks after one host does
	// not.
	Pool *Pool `json:"pool,omitempty"`
}

// ServingRequest is a kubelet's request for a serving certificate on which nobody has decided.
type ServingRequest struct {
	Node  string   `json:"node"`  // that asks
	Names []string `json:"names"` // and addresses that it asks for
}

// Comparison is how a component's objects differ from what they must be.
type Comparison struct {
	// Differences go away when the component is applied again, Settings when these are set.
	Differences []Difference `json:"differences,omitempty"`
	Settings    []Difference `json:"settings,omitempty"`
	Problem     string       `json:"problem,omitempty"` // why they could not be compared
	// Late says that the next look may be able to: the API was too slow, or too busy.
	Late bool `json:"late,omitempty"`
}

// Difference is an object that is not as it must be.
type Difference struct {
	Object  string   `json:"object"`            // "DaemonSet kube-system/kube-proxy"
	Missing bool     `json:"missing,omitempty"` // there is none
	Fields  []string `json:"fields,omitempty"`  // paths of some of those that differ, sorted
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
	MachineID      string            `json:"machineID,omitempty"` // by its kubelet's word
	Ready          Tri               `json:"ready"`               // Unknown too when the kubelet stopped reporting
	Unschedulable  bool              `json:"unschedulable,omitempty"`
	ControlPlane   bool              `json:"controlPlane,omitempty"`
	KubeletVersion string            `json:"kubeletVersion,omitempty"` // without v
	Runtime        string            `json:"runtime,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Annotations    map[string]string `json:"annotations,omitempty"`
	Taints         []Taint           `json:"taints,omitempty"`
}

// CordonAnnotation on a Node says that it was closed for pods by a run of ours, whose ID is its value. Only such a Node
// is opened again: one that a person has cordoned stays so.
const CordonAnnotation = "kubeone.k8c.io/cordoned-by"

// TaintsAnnotation on a Node says which of its taints are the manifest's, as "key:Effect,…".
const TaintsAnnotation = "kubeone.k8c.io/taints"

// Taint is a node's taint.
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
	// Address is the pod's own; "" for one that has its host's, or none yet.
	Address string `json:"address,omitempty"`
}

// The keys of the cluster's record, which is a ConfigMap.
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
	// Nodes are the names of the Nodes of the manifest's hosts, by host ID, as of that run.
	Nodes map[string]string `json:"nodes,omitempty"`
	// FormerEndpoints are names and addresses at which the API was to be found before, and that its certificates keep.
	FormerEndpoints []string `json:"formerEndpoints,omitempty"`
	// Hardening is what the cluster was made with; "" for a cluster of which nobody has said anything.
	Hardening string `json:"hardening,omitempty"`
	// Unreadable are the keys whose text is not what a run writes, and why. What they say is not known: the fields
	// above, and API.Addons, are zero.
	Unreadable map[string]string `json:"unreadable,omitempty"`
}

// IsUnreadable reports whether there is a record, and what one of its keys says cannot be read.
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

// Alarm is one that a member of etcd raised.
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

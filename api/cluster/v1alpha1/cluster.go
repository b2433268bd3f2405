package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Cluster is the control plane of a cluster: its versions and its configuration.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cl,categories=all
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the group of KEP-3"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.kubernetesVersion`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.apiEndpoints[0].host`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.controlPlane.ready`
// +kubebuilder:printcolumn:name="Wanted",type=integer,JSONPath=`.status.controlPlane.wanted`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired state.
	// +required
	Spec ClusterSpec `json:"spec"`
	// Status is the observed state.
	// +optional
	Status ClusterStatus `json:"status,omitzero"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}

// ClusterSpec is the desired state of a Cluster.
type ClusterSpec struct {
	ClusterConfiguration `json:",inline"`
	// ProviderSpec are the settings of kubeone itself.
	// +required
	ProviderSpec ClusterProviderSpec `json:"providerSpec"`
	// Approval says whether the controller carries out its plans at once. Manual means that it writes a plan to
	// status.pendingPlan and waits for the annotation cluster.k8s.io/approved-plan. If unset, it is Automatic.
	// +optional
	Approval Approval `json:"approval,omitempty"`
}

// Approval says whether the controller of a Cluster carries out its plans at once.
//
// +kubebuilder:validation:Enum=Automatic;Manual
type Approval string

// The approvals.
const (
	// AutomaticApproval means that plans are carried out at once.
	AutomaticApproval Approval = "Automatic"
	// ManualApproval means that a person approves each plan.
	ManualApproval Approval = "Manual"
)

// ClusterConfiguration is the configuration of the control plane, in the names of kubeadm's ClusterConfiguration
// (kubeadm.k8s.io/v1beta4). It has those fields that kubeone carries out.
type ClusterConfiguration struct {
	// KubernetesVersion is the version of the control plane, such as 1.36.3, and of kubelets whose Machines have no
	// version of their own. A cluster is upgraded one minor version at a time, and not downgraded.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`
	KubernetesVersion string `json:"kubernetesVersion"`
	// ControlPlaneEndpoint is the address where clients reach the API: a name or an address, and a port after a colon.
	// An IPv6 address is in brackets. If unset, it is the address of the first control-plane host, and port 6443.
	// +optional
	// +kubebuilder:validation:MaxLength=261
	ControlPlaneEndpoint string `json:"controlPlaneEndpoint,omitempty"`
	// ClusterNetwork are the networks of the cluster. They cannot change later.
	// +optional
	ClusterNetwork ClusterNetwork `json:"clusterNetwork,omitzero"`
	// APIServer configures kube-apiserver.
	// +optional
	APIServer APIServer `json:"apiServer,omitzero"`
	// ControllerManager configures kube-controller-manager.
	// +optional
	ControllerManager ControlPlaneComponent `json:"controllerManager,omitzero"`
	// Scheduler configures kube-scheduler.
	// +optional
	Scheduler ControlPlaneComponent `json:"scheduler,omitzero"`
	// Etcd configures etcd.
	// +optional
	Etcd Etcd `json:"etcd,omitzero"`
	// DNS configures the cluster's DNS server.
	// +optional
	DNS DNS `json:"dns,omitzero"`
	// Proxy configures kube-proxy.
	// +optional
	Proxy Proxy `json:"proxy,omitzero"`
	// ImageRepository is a registry host, with an optional path. It replaces the registry host of every image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ImageRepository string `json:"imageRepository,omitempty"`
	// CertificateValidityPeriod is the lifetime of certificates, as a Go duration. If unset, it is 8760h.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	CertificateValidityPeriod string `json:"certificateValidityPeriod,omitempty"`
	// CACertificateValidityPeriod is the lifetime of the cluster's CAs, as a Go duration. If unset, it is 87600h.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	CACertificateValidityPeriod string `json:"caCertificateValidityPeriod,omitempty"`
}

// ClusterNetwork are the networks of a cluster.
type ClusterNetwork struct {
	// Services is the network of Services.
	// +optional
	Services NetworkRanges `json:"services,omitzero"`
	// Pods is the network of pods.
	// +optional
	Pods NetworkRanges `json:"pods,omitzero"`
	// ServiceDomain is the cluster's DNS domain. If unset, it is cluster.local.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceDomain string `json:"serviceDomain,omitempty"`
}

// NetworkRanges are the ranges of a network.
type NetworkRanges struct {
	// CIDRBlocks are an IPv4 range, an IPv6 range, or one of each.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=64
	CIDRBlocks []string `json:"cidrBlocks,omitempty"`
}

// ControlPlaneComponent configures a component of the control plane.
type ControlPlaneComponent struct {
	// ExtraArgs are flags of the component, without dashes. They override kubeone's, at your own risk.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	ExtraArgs []Arg `json:"extraArgs,omitempty"`
}

// APIServer configures kube-apiserver.
type APIServer struct {
	// ExtraArgs are flags of the component, without dashes. They override kubeone's, at your own risk.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	ExtraArgs []Arg `json:"extraArgs,omitempty"`
	// CertSANs are further DNS names and addresses in the API server's certificate.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	CertSANs []string `json:"certSANs,omitempty"`
}

// Arg is a flag of a component.
type Arg struct {
	// Name is the name of the flag, without dashes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Value is its value.
	// +required
	// +kubebuilder:validation:MaxLength=8192
	Value string `json:"value"`
}

// Etcd configures etcd.
type Etcd struct {
	// Local configures the etcd on the control-plane hosts.
	// +optional
	Local *LocalEtcd `json:"local,omitempty"`
}

// LocalEtcd configures the etcd on the control-plane hosts.
type LocalEtcd struct {
	// ExtraArgs are flags of etcd, without dashes: quota-backend-bytes, auto-compaction-mode and
	// auto-compaction-retention.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ExtraArgs []Arg `json:"extraArgs,omitempty"`
}

// DNS configures the cluster's DNS server.
type DNS struct {
	// ImageRepository is the repository of the image coredns. It overrides imageRepository.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ImageRepository string `json:"imageRepository,omitempty"`
}

// Proxy configures kube-proxy.
type Proxy struct {
	// Disabled installs no kube-proxy.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// ClusterProviderSpec are the settings of kubeone itself.
type ClusterProviderSpec struct {
	// Value is a KubeOneCluster (kubeone.k8c.io/v1beta2) without the fields that the Cluster and its Machines have.
	// +required
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *runtime.RawExtension `json:"value"`
}

// ClusterStatus is the observed state of a Cluster.
type ClusterStatus struct {
	// APIEndpoints are the addresses where clients reach the API.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	APIEndpoints []APIEndpoint `json:"apiEndpoints,omitempty"`
	// Versions are the observed versions of components. During an upgrade a component has more than one.
	// +optional
	// +listType=map
	// +listMapKey=component
	// +kubebuilder:validation:MaxItems=16
	Versions []ComponentVersions `json:"versions,omitempty"`
	// ControlPlane counts the control-plane hosts.
	// +optional
	ControlPlane *ControlPlaneCount `json:"controlPlane,omitempty"`
	// Phase summarizes the status for people. Programs should not use it.
	// +optional
	Phase ClusterPhase `json:"phase,omitempty"`
	// ErrorReason is the reason, for programs, why the Cluster cannot get into its desired state until its spec changes
	// or a person acts. It is cleared with its cause. Passing failures are Events and conditions only.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ErrorReason *string `json:"errorReason,omitempty"`
	// ErrorMessage explains errorReason to people.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ErrorMessage *string `json:"errorMessage,omitempty"`
	// ProviderStatus are kubeone's notes.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
	// PendingPlan is a plan that waits for approval.
	// +optional
	PendingPlan *PendingPlan `json:"pendingPlan,omitempty"`
	// ObservedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are the latest observations.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// APIEndpoint is an address of the API.
type APIEndpoint struct {
	// Host is a name or an address.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`
	// Port is the TCP port.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}

// ComponentVersions are the observed versions of a component.
type ComponentVersions struct {
	// Component is the name of the component, such as kube-apiserver.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Component string `json:"component"`
	// Versions are its versions, the oldest first.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	Versions []string `json:"versions"`
}

// ControlPlaneCount counts the control-plane hosts.
type ControlPlaneCount struct {
	// Ready is the number of healthy control-plane hosts.
	// +required
	Ready int32 `json:"ready"`
	// Wanted is the number of Machines with the role Master.
	// +required
	Wanted int32 `json:"wanted"`
}

// PendingPlan is a plan that waits for approval.
type PendingPlan struct {
	// Digest identifies the plan. The annotation cluster.k8s.io/approved-plan with this value approves it.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest"`
	// Text is the plan as kubeone plan prints it.
	// +required
	// +kubebuilder:validation:MaxLength=262144
	Text string `json:"text"`
}

// ClusterPhase is a phase in the lifecycle of a Cluster.
//
// +kubebuilder:validation:Enum=Running;Updating;AwaitingApproval;Failed
type ClusterPhase string

// The phases.
const (
	// ClusterRunning means that the cluster is in its desired state.
	ClusterRunning ClusterPhase = "Running"
	// ClusterUpdating means that it is being changed.
	ClusterUpdating ClusterPhase = "Updating"
	// ClusterAwaitingApproval means that it has a pendingPlan.
	ClusterAwaitingApproval ClusterPhase = "AwaitingApproval"
	// ClusterFailed means that it has an errorReason.
	ClusterFailed ClusterPhase = "Failed"
)

package v1alpha1

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Machine is one host that becomes a Node.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ma,categories=all
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the group of KEP-3"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.providerSpec.value.cloudProvider`
// +kubebuilder:printcolumn:name="Kubelet",type=string,JSONPath=`.status.versions.kubelet`
// +kubebuilder:printcolumn:name="Want",type=string,JSONPath=`.spec.versions.kubelet`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Error",type=string,priority=1,JSONPath=`.status.errorMessage`
// +kubebuilder:selectablefield:JSONPath=`.spec.providerSpec.value.cloudProvider`
// +kubebuilder:selectablefield:JSONPath=`.status.nodeRef.name`
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired state.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || has(self.providerID) && self.providerID == oldSelf.providerID",message="providerID is immutable"
	// +kubebuilder:validation:XValidation:rule="self.providerSpec.value.cloudProvider == oldSelf.providerSpec.value.cloudProvider",message="cloudProvider is immutable: delete the Machine and create another one"
	Spec MachineSpec `json:"spec"`
	// Status is the observed state.
	// +optional
	Status MachineStatus `json:"status,omitzero"`
}

// MachineList is a list of Machines.
//
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}

// MachineSpec is the desired state of a Machine.
//
// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.labels) || !self.metadata.labels.exists(key, key.matches('^(node-role[.]kubernetes[.]io|machine-controller|kubeone[.]k8c[.]io|cluster[.]k8s[.]io|kubeadm[.]alpha[.]kubernetes[.]io)(/|$)|^(beta[.])?kubernetes[.]io/(os|arch)$|^kubernetes[.]io/hostname$'))",fieldPath=".metadata.labels",message="keys of node-role.kubernetes.io, kubeone.k8c.io, cluster.k8s.io, kubeadm.alpha.kubernetes.io and machine-controller, and kubernetes.io/hostname, os and arch, are reserved: a Machine cannot set them"
// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.annotations) || !self.metadata.annotations.exists(key, key.matches('^(node-role[.]kubernetes[.]io|machine-controller|kubeone[.]k8c[.]io|cluster[.]k8s[.]io|kubeadm[.]alpha[.]kubernetes[.]io)(/|$)|^(beta[.])?kubernetes[.]io/(os|arch)$|^kubernetes[.]io/hostname$'))",fieldPath=".metadata.annotations",message="keys of node-role.kubernetes.io, kubeone.k8c.io, cluster.k8s.io, kubeadm.alpha.kubernetes.io and machine-controller, and kubernetes.io/hostname, os and arch, are reserved: a Machine cannot set them"
// +kubebuilder:validation:XValidation:rule="!has(self.taints) || !self.taints.exists(taint, taint.key.matches('^(node-role[.]kubernetes[.]io|machine-controller|kubeone[.]k8c[.]io|cluster[.]k8s[.]io|kubeadm[.]alpha[.]kubernetes[.]io)(/|$)|^(beta[.])?kubernetes[.]io/(os|arch)$|^kubernetes[.]io/hostname$|^(node|node[.]cloudprovider)[.]kubernetes[.]io(/|$)'))",fieldPath=".taints",message="keys of node-role.kubernetes.io, node.kubernetes.io, node.cloudprovider.kubernetes.io, kubeone.k8c.io, cluster.k8s.io, kubeadm.alpha.kubernetes.io and machine-controller, and kubernetes.io/hostname, os and arch, are reserved: a Machine cannot set them"
// +kubebuilder:validation:XValidation:rule="self.providerSpec.value.cloudProvider == 'static' || has(self.versions) && has(self.versions.kubelet)",fieldPath=".versions",message="kubelet is required"
// +kubebuilder:validation:XValidation:rule="self.providerSpec.value.cloudProvider == 'static' || !has(self.roles) || !('Master' in self.roles)",fieldPath=".roles",message="only a Machine of the provider static can have the role Master"
type MachineSpec struct {
	// ObjectMeta has the labels and annotations of the Machine's Node. Those removed here are also removed from the Node;
	// those that others set on the Node stay. The name is ignored: a Node has the name of its host.
	// +optional
	ObjectMeta ObjectMeta `json:"metadata,omitzero"`
	// Taints are the taints of the Machine's Node. A taint removed from the Node is added again; a taint removed here is
	// also removed from the Node. Taints that others, such as Kubernetes, set on the Node stay.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=64
	Taints []Taint `json:"taints,omitempty"`
	// ProviderSpec is the provider of the machine, with its settings.
	// +required
	ProviderSpec ProviderSpec `json:"providerSpec"`
	// Versions are the desired versions.
	// +optional
	Versions MachineVersionInfo `json:"versions,omitzero"`
	// Roles are the roles of the machine in the cluster. Node means a worker, as does an empty list. Master means a
	// control-plane host without other pods, and Master with Node one with other pods. Only a Machine of the provider
	// static can be a control-plane host.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	Roles []MachineRole `json:"roles,omitempty"`
	// ProviderID identifies the machine for a cloud's controllers. No provider of this version sets or reads it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID *string `json:"providerID,omitempty"`
}

// Taint is a taint of a Node, with the fields of the type in core/v1.
//
// +kubebuilder:validation:XValidation:rule="self.key.indexOf('/') <= 253",message="the DNS name in a taint's key has at most 253 characters"
type Taint struct {
	// Key is the taint's key.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	Key string `json:"key"`
	// Value is the taint's value.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	Value string `json:"value,omitempty"`
	// Effect is the effect on pods that do not tolerate the taint.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`
	// TimeAdded is copied to the Node.
	// +optional
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
}

// MachineRole is a role of a machine in a cluster.
//
// +kubebuilder:validation:Enum=Node;Master
type MachineRole string

// The roles.
const (
	// NodeRole is the role of a machine that runs pods.
	NodeRole MachineRole = "Node"
	// MasterRole is the role of a control-plane host.
	MasterRole MachineRole = "Master"
)

// ProviderStatic is the provider of Machines whose specs describe existing hosts. The Cluster reconciles them.
const ProviderStatic = "static"

// ObjectMeta is the metadata of objects created from a template.
//
// +kubebuilder:object:generate=false
type ObjectMeta struct {
	// Name is accepted and ignored.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// GenerateName is accepted and ignored.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	GenerateName string `json:"generateName,omitempty"`
	// Namespace is accepted and ignored.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`
	// CreationTimestamp is accepted and ignored.
	// +optional
	// +nullable
	CreationTimestamp *metav1.Time `json:"creationTimestamp,omitempty"`
	// Labels are the labels of the object.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && key.indexOf('/') <= 253)",message="a label's key is a name of at most 63 letters, digits, '-', '_' and '.', after a DNS name and '/' if it has one"
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// Annotations are the annotations of the object.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?([.][A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && key.indexOf('/') <= 253)",message="an annotation's key is a name of at most 63 letters, digits, '-', '_' and '.', after a DNS name and '/' if it has one"
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
}

// DeepCopyInto copies m to out. The generator does not support maps with named value types, which the schemas need.
func (m *ObjectMeta) DeepCopyInto(out *ObjectMeta) {
	*out = *m
	out.CreationTimestamp = m.CreationTimestamp.DeepCopy()
	out.Labels, out.Annotations = maps.Clone(m.Labels), maps.Clone(m.Annotations)
}

// LabelValue is a label's value.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
type LabelValue = string

// AnnotationValue is an annotation's value.
//
// +kubebuilder:validation:MaxLength=4096
type AnnotationValue = string

// ProviderSpec is the provider of a machine, with its settings.
type ProviderSpec struct {
	// Value is the provider, with its settings.
	// +required
	Value ProviderConfig `json:"value"`
}

// ProviderConfig is a provider and its settings, in the format of machine-controller.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ProviderConfig struct {
	// CloudProvider is the provider's name, such as ssh.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	CloudProvider string `json:"cloudProvider"`
	// CloudProviderSpec are the provider's settings. The provider defines the fields.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	CloudProviderSpec *runtime.RawExtension `json:"cloudProviderSpec,omitempty"`
	// OperatingSystem is the operating system of the new machine. The provider ssh, whose hosts already have one,
	// refuses this field and those below.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	OperatingSystem string `json:"operatingSystem,omitempty"`
	// OperatingSystemSpec are settings of the operating system.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	OperatingSystemSpec *runtime.RawExtension `json:"operatingSystemSpec,omitempty"`
	// SSHPublicKeys are the keys that may log in to the new machine.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	SSHPublicKeys []string `json:"sshPublicKeys,omitempty"`
	// Network is the static network of the new machine.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Network *runtime.RawExtension `json:"network,omitempty"`
	// CAPublicKey is the SSH CA whose certificates may log in to the new machine.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	CAPublicKey string `json:"caPublicKey,omitempty"`
	// OverwriteCloudConfig is the cloud-config of the new machine, instead of the provider's.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	OverwriteCloudConfig string `json:"overwriteCloudConfig,omitempty"`
}

// MachineVersionInfo has the versions of the software on a machine.
type MachineVersionInfo struct {
	// Kubelet is the kubelet's version, such as 1.36.3. It may be up to three minor versions older than the API servers,
	// but not newer. Required, except for the provider static: without a version, the kubelet has that of the Cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`
	Kubelet string `json:"kubelet,omitempty"`
	// ContainerRuntime is the container runtime. If unset, the provider chooses one when it creates the machine, and does
	// not change it afterwards.
	// +optional
	ContainerRuntime *ContainerRuntimeInfo `json:"containerRuntime,omitempty"`
	// ControlPlane is the version of the control plane on a machine with the role Master. If set, it must be that of the
	// Cluster. Other Machines ignore it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ControlPlane string `json:"controlPlane,omitempty"`
}

// ContainerRuntimeInfo is a container runtime.
type ContainerRuntimeInfo struct {
	// Name is the name of the container runtime, such as containerd.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Version is its version, such as 2.1.4. If unset, the provider chooses one when it creates the machine.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^v?[0-9]+\.[0-9]+(\.[0-9]+)?(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`
	Version string `json:"version,omitempty"`
}

// MachineStatus is the observed state of a Machine.
type MachineStatus struct {
	// NodeRef is the Machine's Node, once it exists.
	// +optional
	NodeRef *corev1.ObjectReference `json:"nodeRef,omitempty"`
	// LastUpdated is the time of the last update of the status.
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`
	// Versions are the observed versions.
	// +optional
	Versions *MachineVersionInfo `json:"versions,omitempty"`
	// ErrorReason is the reason, for programs, why the Machine cannot succeed until its spec changes. It is cleared with
	// its cause. Passing failures are Events and conditions only.
	// +optional
	ErrorReason *MachineStatusError `json:"errorReason,omitempty"`
	// ErrorMessage explains errorReason to people.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ErrorMessage *string `json:"errorMessage,omitempty"`
	// ProviderStatus are the provider's notes. The provider defines the fields.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
	// Addresses are the machine's addresses and names.
	// +optional
	// +listType=atomic
	Addresses []corev1.NodeAddress `json:"addresses,omitempty"`
	// Phase summarizes the status for people. Programs should not use it.
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`
	// ObservedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are the latest observations.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MachinePhase is a phase in the lifecycle of a Machine.
//
// +kubebuilder:validation:Enum=Pending;Provisioning;Running;Updating;Deleting;Failed
type MachinePhase string

// The phases.
const (
	// Pending means that the Machine has no host yet.
	Pending MachinePhase = "Pending"
	// Provisioning means that its host is not a ready Node yet.
	Provisioning MachinePhase = "Provisioning"
	// Running means that it is a Node. The condition Ready says whether the Node is ready.
	Running MachinePhase = "Running"
	// Updating means that it is being changed in place.
	Updating MachinePhase = "Updating"
	// Deleting means that it is being drained and returned.
	Deleting MachinePhase = "Deleting"
	// Failed means that it has an errorReason.
	Failed MachinePhase = "Failed"
)

// MachineStatusError is the reason of a terminal error.
type MachineStatusError string

// The terminal errors.
const (
	// InvalidConfiguration means that no provider can carry out the spec.
	InvalidConfiguration MachineStatusError = "InvalidConfiguration"
	// UnsupportedChange means that the provider can make a change neither in place nor by replacement.
	UnsupportedChange MachineStatusError = "UnsupportedChange"
	// InsufficientResources means that the provider has no more such machines.
	InsufficientResources MachineStatusError = "InsufficientResources"
	// CreateError means that the machine could not be created.
	CreateError MachineStatusError = "CreateError"
	// UpdateError means that the machine could not be changed.
	UpdateError MachineStatusError = "UpdateError"
	// DeleteError means that the machine could not be returned.
	DeleteError MachineStatusError = "DeleteError"
)

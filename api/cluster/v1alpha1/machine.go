package v1alpha1

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Machine is one host that is to be a Node.
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
	// Spec is what is wanted.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || has(self.providerID) && self.providerID == oldSelf.providerID",message="a machine's providerID does not change"
	// +kubebuilder:validation:XValidation:rule="self.providerSpec.value.cloudProvider == oldSelf.providerSpec.value.cloudProvider",message="a machine stays with its provider: delete it, and create another one"
	Spec MachineSpec `json:"spec"`
	// Status is what is so.
	// +optional
	Status MachineStatus `json:"status,omitzero"`
}

// MachineList is several Machines.
//
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}

// MachineSpec is what a machine shall be.
//
// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.labels) || !self.metadata.labels.exists(key, key.matches('^(node-role[.]kubernetes[.]io|machine-controller|kubeone[.]k8c[.]io|cluster[.]k8s[.]io|kubeadm[.]alpha[.]kubernetes[.]io)(/|$)|^(beta[.])?kubernetes[.]io/(os|arch)$|^kubernetes[.]io/hostname$'))",fieldPath=".metadata.labels",message="keys of node-role.kubernetes.io, kubeone.k8c.io, cluster.k8s.io, kubeadm.alpha.kubernetes.io and machine-controller, and kubernetes.io/hostname, os and arch, are not a Machine's to give"
// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.annotations) || !self.metadata.annotations.exists(key, key.matches('^(node-role[.]kubernetes[.]io|machine-controller|kubeone[.]k8c[.]io|cluster[.]k8s[.]io|kubeadm[.]alpha[.]kubernetes[.]io)(/|$)|^(beta[.])?kubernetes[.]io/(os|arch)$|^kubernetes[.]io/hostname$'))",fieldPath=".metadata.annotations",message="keys of node-role.kubernetes.io, kubeone.k8c.io, cluster.k8s.io, kubeadm.alpha.kubernetes.io and machine-controller, and kubernetes.io/hostname, os and arch, are not a Machine's to give"
// +kubebuilder:validation:XValidation:rule="!has(self.taints) || !self.taints.exists(taint, taint.key.matches('^(node-role[.]kubernetes[.]io|machine-controller|kubeone[.]k8c[.]io|cluster[.]k8s[.]io|kubeadm[.]alpha[.]kubernetes[.]io)(/|$)|^(beta[.])?kubernetes[.]io/(os|arch)$|^kubernetes[.]io/hostname$|^(node|node[.]cloudprovider)[.]kubernetes[.]io(/|$)'))",fieldPath=".taints",message="keys of node-role.kubernetes.io, node.kubernetes.io, node.cloudprovider.kubernetes.io, kubeone.k8c.io, cluster.k8s.io, kubeadm.alpha.kubernetes.io and machine-controller, and kubernetes.io/hostname, os and arch, are not a Machine's to give"
type MachineSpec struct {
	// ObjectMeta is labels and annotations that its Node gets. They are the Machine's: what is removed here is removed
	// from the Node, and what others put there stays. Its name is ignored: a Node has the name of its host.
	// +optional
	ObjectMeta ObjectMeta `json:"metadata,omitzero"`
	// Taints is the taints that its Node gets, and keeps: one that somebody removes is added again, and one that is
	// removed here is removed from the Node. What others put there stays, as Kubernetes itself taints Nodes.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=64
	Taints []Taint `json:"taints,omitempty"`
	// ProviderSpec says where the machine comes from.
	// +required
	ProviderSpec ProviderSpec `json:"providerSpec"`
	// Versions is the versions that it runs.
	// +required
	Versions MachineVersionInfo `json:"versions"`
	// Roles is what the machine does in the cluster: Node for a worker, which is also what no role means. A control
	// plane is not made of Machines yet.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1
	Roles []MachineRole `json:"roles,omitempty"`
	// ProviderID names the machine to a cloud's controllers. No provider of this version sets or reads it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID *string `json:"providerID,omitempty"`
}

// Taint is a taint of a Node, with the fields of Kubernetes' own type.
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
	// Effect is what the taint does to pods that do not tolerate it.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`
	// TimeAdded is accepted as tools write it, and written to the Node as it is.
	// +optional
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
}

// MachineRole is what a machine does in a cluster.
//
// +kubebuilder:validation:Enum=Node
type MachineRole string

// NodeRole is a worker's role.
const NodeRole MachineRole = "Node"

// ObjectMeta is the metadata of what is made from a template.
//
// +kubebuilder:object:generate=false
type ObjectMeta struct {
	// Name is accepted as others write it, and not used.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// GenerateName is accepted as others write it, and not used.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	GenerateName string `json:"generateName,omitempty"`
	// Namespace is accepted as others write it, and not used.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`
	// CreationTimestamp is accepted as tools write it, and not used.
	// +optional
	// +nullable
	CreationTimestamp *metav1.Time `json:"creationTimestamp,omitempty"`
	// Labels is labels.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && key.indexOf('/') <= 253)",message="a label's key is a name of at most 63 letters, digits, '-', '_' and '.', after a DNS name and '/' if it has one"
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// Annotations is annotations.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?([.][A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && key.indexOf('/') <= 253)",message="an annotation's key is a name of at most 63 letters, digits, '-', '_' and '.', after a DNS name and '/' if it has one"
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
}

// DeepCopyInto makes out a copy. The generator knows no maps whose values have a name, which their schemas need.
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

// ProviderSpec says where a machine comes from.
type ProviderSpec struct {
	// Value is the provider, and what it is told.
	// +required
	Value ProviderConfig `json:"value"`
}

// ProviderConfig is the envelope that machine-controller's manifests have.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ProviderConfig struct {
	// CloudProvider is the provider's name, such as ssh.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	CloudProvider string `json:"cloudProvider"`
	// CloudProviderSpec is what the provider is told; its fields are the provider's.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	CloudProviderSpec *runtime.RawExtension `json:"cloudProviderSpec,omitempty"`
	// OperatingSystem is the operating system that the machine is to have. The provider ssh, whose hosts have one,
	// refuses this and all that follows.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	OperatingSystem string `json:"operatingSystem,omitempty"`
	// OperatingSystemSpec is settings of the operating system.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	OperatingSystemSpec *runtime.RawExtension `json:"operatingSystemSpec,omitempty"`
	// SSHPublicKeys is the keys that may log in to a machine that is created.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	SSHPublicKeys []string `json:"sshPublicKeys,omitempty"`
	// Network is the static network of a machine that is created.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Network *runtime.RawExtension `json:"network,omitempty"`
	// CAPublicKey is the key whose certificates may log in to a machine that is created.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	CAPublicKey string `json:"caPublicKey,omitempty"`
	// OverwriteCloudConfig is the cloud-config of a machine that is created, instead of the provider's.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	OverwriteCloudConfig string `json:"overwriteCloudConfig,omitempty"`
}

// MachineVersionInfo is versions of what runs on a machine.
type MachineVersionInfo struct {
	// Kubelet is the kubelet's version, such as 1.36.3. It may be up to three minors older than the API servers, and
	// not newer.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`
	Kubelet string `json:"kubelet"`
	// ContainerRuntime is the container runtime; left out, the provider chooses one when it makes the machine, and does
	// not change it afterwards.
	// +optional
	ContainerRuntime *ContainerRuntimeInfo `json:"containerRuntime,omitempty"`
	// ControlPlane is the version of the control plane on a machine that has one. It is ignored.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ControlPlane string `json:"controlPlane,omitempty"`
}

// ContainerRuntimeInfo is a container runtime.
type ContainerRuntimeInfo struct {
	// Name is its name, such as containerd.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Version is its version, such as 2.1.4; left out, the provider chooses one when it makes the machine.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^v?[0-9]+\.[0-9]+(\.[0-9]+)?(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`
	Version string `json:"version,omitempty"`
}

// MachineStatus is what a machine is.
type MachineStatus struct {
	// NodeRef is its Node, once there is one.
	// +optional
	NodeRef *corev1.ObjectReference `json:"nodeRef,omitempty"`
	// LastUpdated is when this was last written.
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`
	// Versions is the versions that it was seen to run.
	// +optional
	Versions *MachineVersionInfo `json:"versions,omitempty"`
	// ErrorReason is why nothing will become of the machine as long as its spec stays as it is: a word for programs. It
	// is cleared when the cause is gone. What passes by itself is an Event and a condition, and never here.
	// +optional
	ErrorReason *MachineStatusError `json:"errorReason,omitempty"`
	// ErrorMessage says the same to people.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ErrorMessage *string `json:"errorMessage,omitempty"`
	// ProviderStatus is what the provider notes; its fields are the provider's.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
	// Addresses is the machine's addresses and names.
	// +optional
	// +listType=atomic
	Addresses []corev1.NodeAddress `json:"addresses,omitempty"`
	// Phase is one word for people. No program decides by it.
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`
	// ObservedGeneration is the generation of the spec that all this is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions is the same in the form of conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MachinePhase is where a machine is in its life.
//
// +kubebuilder:validation:Enum=Pending;Provisioning;Running;Updating;Deleting;Failed
type MachinePhase string

// The phases.
const (
	// Pending has no host yet.
	Pending MachinePhase = "Pending"
	// Provisioning has a host that is not a ready Node yet.
	Provisioning MachinePhase = "Provisioning"
	// Running is a Node, ready or not: the condition Ready says which.
	Running MachinePhase = "Running"
	// Updating is being changed in place.
	Updating MachinePhase = "Updating"
	// Deleting is being drained and returned.
	Deleting MachinePhase = "Deleting"
	// Failed has an errorReason.
	Failed MachinePhase = "Failed"
)

// MachineStatusError is a terminal error, in a word.
type MachineStatusError string

// The terminal errors.
const (
	// InvalidConfiguration is a spec that cannot be carried out by anybody.
	InvalidConfiguration MachineStatusError = "InvalidConfiguration"
	// UnsupportedChange is a change that the provider can make neither in place nor by replacement.
	UnsupportedChange MachineStatusError = "UnsupportedChange"
	// InsufficientResources is a provider that has no more machines of this kind.
	InsufficientResources MachineStatusError = "InsufficientResources"
	// CreateError is a machine that could not be made.
	CreateError MachineStatusError = "CreateError"
	// UpdateError is a machine that could not be changed.
	UpdateError MachineStatusError = "UpdateError"
	// DeleteError is a machine that could not be returned.
	DeleteError MachineStatusError = "DeleteError"
)

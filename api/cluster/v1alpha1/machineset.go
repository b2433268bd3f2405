package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MachineSet keeps a number of Machines of one template.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:shortName=ms,categories=all
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the group of KEP-3"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Kubelet",type=string,JSONPath=`.spec.template.spec.versions.kubelet`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MachineSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +required
	Spec MachineSetSpec `json:"spec"`
	// Status is what is so.
	// +optional
	Status MachineSetStatus `json:"status,omitzero"`
}

// MachineSetList is several MachineSets.
//
// +kubebuilder:object:root=true
type MachineSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineSet `json:"items"`
}

// MachineSetSpec is the machines that are wanted.
//
// +kubebuilder:validation:XValidation:rule="self.selector == oldSelf.selector",message="a selector does not change: create another object"
type MachineSetSpec struct {
	// Replicas is how many. The replicas of a set that a MachineDeployment owns are the deployment's.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty"`
	// MinReadySeconds is how many seconds a Node must have been ready until its Machine counts as available.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
	// DeletePolicy says which go first when there are too many, after those that do not work: Newest, Oldest, or
	// Random, which leaves it to the controller.
	// +optional
	// +kubebuilder:default=Random
	// +kubebuilder:validation:Enum=Random;Newest;Oldest
	DeletePolicy string `json:"deletePolicy,omitempty"`
	// Selector selects the set's Machines by their labels, which the template must have. It does not change.
	// +required
	Selector metav1.LabelSelector `json:"selector"`
	// Template is what its Machines are made from. Another template is for new Machines only.
	// +required
	Template MachineTemplateSpec `json:"template"`
	// HealthCheck says when a Machine is replaced because it does not work.
	// +optional
	HealthCheck *MachineHealthCheck `json:"healthCheck,omitempty"`
}

// MachineTemplateSpec is what Machines are made from.
type MachineTemplateSpec struct {
	// ObjectMeta is the labels and annotations of the Machines.
	// +optional
	ObjectMeta ObjectMeta `json:"metadata,omitzero"`
	// Spec is their spec.
	// +required
	Spec MachineSpec `json:"spec"`
}

// MachineHealthCheck says when a Machine is replaced because it does not work. It is an extension of ours.
type MachineHealthCheck struct {
	// NodeStartupTimeoutSeconds is how many seconds a Machine has to become a ready Node. 0 is for ever.
	// +optional
	// +kubebuilder:default=1200
	// +kubebuilder:validation:Minimum=0
	NodeStartupTimeoutSeconds *int32 `json:"nodeStartupTimeoutSeconds,omitempty"`
	// NotReadyTimeoutSeconds is for how many seconds a Node may be not ready, or gone, until its Machine is replaced.
	// 0 is for ever.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	NotReadyTimeoutSeconds *int32 `json:"notReadyTimeoutSeconds,omitempty"`
	// MaxUnhealthy is how many Machines of the set, or which share of its replicas, may be unhealthy at the same time
	// so that they are still replaced: with more, something else is wrong, and nothing is deleted for that reason. One
	// whose Node was whole and is not ready counts at once. A share is rounded down, but one Machine is always
	// replaced.
	// +optional
	// +kubebuilder:default="40%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="a number, or a share such as 40%"
	MaxUnhealthy *intstr.IntOrString `json:"maxUnhealthy,omitempty"`
}

// MachineSetStatus is the machines that there are.
type MachineSetStatus struct {
	// Replicas is how many there are; those that are being deleted are not counted.
	Replicas int32 `json:"replicas"`
	// FullyLabeledReplicas is how many have the labels of the template.
	// +optional
	FullyLabeledReplicas int32 `json:"fullyLabeledReplicas,omitempty"`
	// ReadyReplicas is how many have a ready Node.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// AvailableReplicas is how many have had one for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// ObservedGeneration is the generation of the spec that all this is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// LabelSelector is the selector as a text, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
	// ErrorReason is why nothing will become of the set as long as its spec stays as it is.
	// +optional
	ErrorReason *MachineStatusError `json:"errorReason,omitempty"`
	// ErrorMessage says the same to people.
	// +optional
	ErrorMessage *string `json:"errorMessage,omitempty"`
	// Conditions is the same in the form of conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MachineSet maintains a number of Machines from one template.
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
	// Spec is the desired state.
	// +required
	Spec MachineSetSpec `json:"spec"`
	// Status is the observed state.
	// +optional
	Status MachineSetStatus `json:"status,omitzero"`
}

// MachineSetList is a list of MachineSets.
//
// +kubebuilder:object:root=true
type MachineSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineSet `json:"items"`
}

// MachineSetSpec is the desired state of a MachineSet.
//
// +kubebuilder:validation:XValidation:rule="self.selector == oldSelf.selector",message="selector is immutable: create another object"
type MachineSetSpec struct {
	// Replicas is the number of Machines. A MachineDeployment sets it for the sets that it owns.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty"`
	// MinReadySeconds is the number of seconds that a Node must be ready before its Machine counts as available.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
	// DeletePolicy is the order in which surplus Machines are deleted, after unhealthy ones: Newest, Oldest, or Random,
	// which leaves the order to the controller.
	// +optional
	// +kubebuilder:default=Random
	// +kubebuilder:validation:Enum=Random;Newest;Oldest
	DeletePolicy string `json:"deletePolicy,omitempty"`
	// Selector selects the set's Machines by labels, which the template must have. It is immutable.
	// +required
	Selector metav1.LabelSelector `json:"selector"`
	// Template is the template of Machines. A change applies to new Machines only.
	// +required
	Template MachineTemplateSpec `json:"template"`
	// HealthCheck sets when unhealthy Machines are replaced.
	// +optional
	HealthCheck *MachineHealthCheck `json:"healthCheck,omitempty"`
}

// MachineTemplateSpec is a template of Machines.
//
// +kubebuilder:validation:XValidation:rule="self.spec.providerSpec.value.cloudProvider != 'static'",message="a Machine of the provider static describes one host: it cannot have a template"
type MachineTemplateSpec struct {
	// ObjectMeta has the labels and annotations of the Machines.
	// +optional
	ObjectMeta ObjectMeta `json:"metadata,omitzero"`
	// Spec is the spec of the Machines.
	// +required
	Spec MachineSpec `json:"spec"`
}

// MachineHealthCheck sets when unhealthy Machines are replaced. It is not part of KEP-3.
type MachineHealthCheck struct {
	// NodeStartupTimeoutSeconds is the number of seconds in which a Machine must become a ready Node. 0 means no limit.
	// +optional
	// +kubebuilder:default=1200
	// +kubebuilder:validation:Minimum=0
	NodeStartupTimeoutSeconds *int32 `json:"nodeStartupTimeoutSeconds,omitempty"`
	// NotReadyTimeoutSeconds is the number of seconds that a Node may be unready or missing before its Machine is
	// replaced. 0 means no limit.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	NotReadyTimeoutSeconds *int32 `json:"notReadyTimeoutSeconds,omitempty"`
	// MaxUnhealthy is the maximum number, or percentage of replicas, of unhealthy Machines that are replaced. If more are
	// unhealthy, the cause is likely elsewhere, and none is deleted. A Machine counts as soon as its ready Node becomes
	// unready. Percentages are rounded down, but one Machine is always replaced.
	// +optional
	// +kubebuilder:default="40%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be a number, or a percentage such as 40%"
	MaxUnhealthy *intstr.IntOrString `json:"maxUnhealthy,omitempty"`
}

// MachineSetStatus is the observed state of a MachineSet.
type MachineSetStatus struct {
	// Replicas is the number of Machines, without those being deleted.
	Replicas int32 `json:"replicas"`
	// FullyLabeledReplicas is the number of Machines with the labels of the template.
	// +optional
	FullyLabeledReplicas int32 `json:"fullyLabeledReplicas,omitempty"`
	// ReadyReplicas is the number of Machines with a ready Node.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// AvailableReplicas is the number of Machines whose Node has been ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// ObservedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// LabelSelector is the selector as text, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
	// ErrorReason is the reason, for programs, why the set cannot succeed until its spec changes.
	// +optional
	ErrorReason *MachineStatusError `json:"errorReason,omitempty"`
	// ErrorMessage explains errorReason to people.
	// +optional
	ErrorMessage *string `json:"errorMessage,omitempty"`
	// Conditions are the latest observations.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

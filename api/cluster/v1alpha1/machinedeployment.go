package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MachineDeployment maintains a number of Machines, and rolls out changes of their template.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:shortName=md,categories=all
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the group of KEP-3"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.template.spec.providerSpec.value.cloudProvider`
// +kubebuilder:printcolumn:name="Kubelet",type=string,JSONPath=`.spec.template.spec.versions.kubelet`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MachineDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired state.
	// +required
	Spec MachineDeploymentSpec `json:"spec"`
	// Status is the observed state.
	// +optional
	Status MachineDeploymentStatus `json:"status,omitzero"`
}

// MachineDeploymentList is a list of MachineDeployments.
//
// +kubebuilder:object:root=true
type MachineDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineDeployment `json:"items"`
}

// MachineDeploymentSpec is the desired state of a MachineDeployment.
//
// +kubebuilder:validation:XValidation:rule="self.selector == oldSelf.selector",message="selector is immutable: create another object"
type MachineDeploymentSpec struct {
	// Replicas is the number of Machines.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty"`
	// Selector selects the deployment's Machines by labels, which the template must have. It is immutable.
	// +required
	Selector metav1.LabelSelector `json:"selector"`
	// Template is the template of Machines. A change of versions or of providerSpec is rolled out. A change of labels,
	// annotations and taints is written to the existing Machines.
	// +required
	Template MachineTemplateSpec `json:"template"`
	// Strategy sets how a changed template is rolled out.
	// +optional
	// +kubebuilder:default={}
	Strategy *MachineDeploymentStrategy `json:"strategy,omitempty"`
	// MinReadySeconds is the number of seconds that a Node must be ready before its Machine counts as available.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
	// RevisionHistoryLimit is the number of former templates that are kept for a rollback.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// Paused stops the rollout. The number of Machines is still maintained.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// ProgressDeadlineSeconds is the number of seconds without progress after which a condition reports the rollout as
	// failed. The rollout continues nevertheless.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// HealthCheck sets when unhealthy Machines are replaced.
	// +optional
	HealthCheck *MachineHealthCheck `json:"healthCheck,omitempty"`
}

// MachineDeploymentStrategy sets how a changed template is rolled out.
type MachineDeploymentStrategy struct {
	// Type is RollingUpdate, or OnDelete, which replaces a Machine only after it was deleted.
	// +optional
	// +kubebuilder:default=RollingUpdate
	// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
	Type string `json:"type,omitempty"`
	// RollingUpdate has the limits of a rolling update.
	// +optional
	// +kubebuilder:default={}
	RollingUpdate *MachineRollingUpdateDeployment `json:"rollingUpdate,omitempty"`
}

// MachineRollingUpdateDeployment has the limits of a rolling update.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.maxSurge) && has(self.maxUnavailable) && [self.maxSurge, self.maxUnavailable].all(x, x == 0 || x == '0%'))",message="maxSurge and maxUnavailable must not both be 0"
type MachineRollingUpdateDeployment struct {
	// MaxUnavailable is the maximum number, or percentage of replicas, of Machines that the rollout makes unavailable.
	// Percentages are rounded down.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be a number, or a percentage such as 25%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxSurge is the maximum number, or percentage of replicas, of additional Machines. Percentages are rounded up.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be a number, or a percentage such as 25%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// MachineDeploymentStatus is the observed state of a MachineDeployment.
type MachineDeploymentStatus struct {
	// ObservedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas is the number of Machines, without those being deleted.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// UpdatedReplicas is the number of Machines that match the template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
	// ReadyReplicas is the number of Machines with a ready Node.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// AvailableReplicas is the number of Machines whose Node has been ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// UnavailableReplicas is the number of desired Machines that are missing or not available.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`
	// LabelSelector is the selector as text, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
	// Conditions are the latest observations.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MachineDeployment keeps a number of Machines, and brings them from one template to the next.
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
	// Spec is what is wanted.
	// +required
	Spec MachineDeploymentSpec `json:"spec"`
	// Status is what is so.
	// +optional
	Status MachineDeploymentStatus `json:"status,omitzero"`
}

// MachineDeploymentList is several MachineDeployments.
//
// +kubebuilder:object:root=true
type MachineDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineDeployment `json:"items"`
}

// MachineDeploymentSpec is the machines that are wanted, and how they become what they shall be.
//
// +kubebuilder:validation:XValidation:rule="self.selector == oldSelf.selector",message="a selector does not change: create another object"
type MachineDeploymentSpec struct {
	// Replicas is how many.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty"`
	// Selector selects the deployment's Machines by their labels, which the template must have. It does not change.
	// +required
	Selector metav1.LabelSelector `json:"selector"`
	// Template is what the Machines are made from. Other versions or another providerSpec are rolled out; other labels,
	// annotations and taints are written to the Machines that there are.
	// +required
	Template MachineTemplateSpec `json:"template"`
	// Strategy is how another template is rolled out.
	// +optional
	// +kubebuilder:default={}
	Strategy *MachineDeploymentStrategy `json:"strategy,omitempty"`
	// MinReadySeconds is how many seconds a Node must have been ready until its Machine counts as available.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
	// RevisionHistoryLimit is how many former templates are kept to go back to.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// Paused stops the roll-out; the number of Machines is still kept.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// ProgressDeadlineSeconds is how many seconds a roll-out may come no further until its condition says that it has
	// failed. It goes on all the same.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// HealthCheck says when a Machine is replaced because it does not work.
	// +optional
	HealthCheck *MachineHealthCheck `json:"healthCheck,omitempty"`
}

// MachineDeploymentStrategy is how another template is rolled out.
type MachineDeploymentStrategy struct {
	// Type is RollingUpdate, or OnDelete, which replaces a Machine when somebody has deleted it.
	// +optional
	// +kubebuilder:default=RollingUpdate
	// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
	Type string `json:"type,omitempty"`
	// RollingUpdate is the limits of a rolling update.
	// +optional
	// +kubebuilder:default={}
	RollingUpdate *MachineRollingUpdateDeployment `json:"rollingUpdate,omitempty"`
}

// MachineRollingUpdateDeployment is the limits of a rolling update.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.maxSurge) && has(self.maxUnavailable) && [self.maxSurge, self.maxUnavailable].all(x, x == 0 || x == '0%'))",message="maxSurge and maxUnavailable are not both 0: nothing could begin"
type MachineRollingUpdateDeployment struct {
	// MaxUnavailable is how many Machines, or which share of the replicas, may be unavailable because of the roll-out.
	// A share is rounded down.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="a number, or a share such as 25%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxSurge is how many Machines there may be beyond the replicas, or which share of them. A share is rounded up.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="a number, or a share such as 25%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// MachineDeploymentStatus is the machines that there are.
type MachineDeploymentStatus struct {
	// ObservedGeneration is the generation of the spec that all this is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas is how many there are; those that are being deleted are not counted.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// UpdatedReplicas is how many are what the template says.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
	// ReadyReplicas is how many have a ready Node.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// AvailableReplicas is how many have had one for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// UnavailableReplicas is how many of the wanted ones are missing or not available.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`
	// LabelSelector is the selector as a text, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
	// Conditions is the same in the form of conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Host is a machine that exists and is reached over SSH. A Machine of the provider ssh may have it. Its name is the
// host's name, and the name of the Node that it becomes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=all
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.spec.address`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Machine",type=string,JSONPath=`.status.claim.name`
// +kubebuilder:printcolumn:name="Domain",type=string,JSONPath=`.spec.failureDomain`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Host struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is how it is reached.
	// +required
	Spec HostSpec `json:"spec"`
	// Status is who has it.
	// +optional
	Status HostStatus `json:"status,omitzero"`
}

// HostList is several Hosts.
//
// +kubebuilder:object:root=true
type HostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Host `json:"items"`
}

// HostSpec is how a host is reached.
type HostSpec struct {
	// Address is the address or name at which its SSH server answers.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z.:-]+$`
	Address string `json:"address"`
	// PrivateAddress is the address that its Node has; left out, it is the address.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:Pattern=`^[0-9A-Fa-f.:]+$`
	PrivateAddress string `json:"privateAddress,omitempty"`
	// Port is the SSH server's.
	// +optional
	// +kubebuilder:default=22
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// User logs in, and is root or may use sudo without a password.
	// +optional
	// +kubebuilder:default=root
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_.-]*$`
	User string `json:"user,omitempty"`
	// HostKeys are its SSH server's public keys, such as "ssh-ed25519 AAAA…". It must show one of these.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=1024
	HostKeys []string `json:"hostKeys"`
	// FailureDomain is what fails together: a rack, a room, a hypervisor. Machines are spread over them.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	FailureDomain string `json:"failureDomain,omitempty"`
	// Bastion is the machine to go through.
	// +optional
	Bastion *Bastion `json:"bastion,omitempty"`
}

// Bastion is a machine to go through, with the same key.
type Bastion struct {
	// Address is where it answers.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z.:-]+$`
	Address string `json:"address"`
	// Port is its SSH server's.
	// +optional
	// +kubebuilder:default=22
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// User logs in there.
	// +optional
	// +kubebuilder:default=root
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_.-]*$`
	User string `json:"user,omitempty"`
	// HostKeys are its SSH server's public keys.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=1024
	HostKeys []string `json:"hostKeys"`
}

// HostStatus is who has a host.
type HostStatus struct {
	// State is where the host is in its life. A Host without one is free.
	// +optional
	// +kubebuilder:default=Free
	State HostState `json:"state,omitempty"`
	// Claim is the Machine that has it, or had it and has not returned it.
	// +optional
	Claim *HostClaim `json:"claim,omitempty"`
	// Message says to people why it is in this state.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// RetryAfter is when a host that has failed is tried again.
	// +optional
	RetryAfter *metav1.Time `json:"retryAfter,omitempty"`
	// Settings is there while the host is given other settings, or has refused them.
	// +optional
	Settings *HostSettings `json:"settings,omitempty"`
}

// HostSettings is what becomes of other settings that the cluster's record has.
type HostSettings struct {
	// Revision is a digest of these settings.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Revision string `json:"revision"`
	// State is Changing while it is the host's turn to get them, and Refused once it has taken them back.
	// +required
	State HostSettingsState `json:"state"`
	// Message is why it has refused them.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// HostSettingsState is what becomes of other settings on a host.
//
// +kubebuilder:validation:Enum=Changing;Refused
type HostSettingsState string

// The states of settings.
const (
	// SettingsChanging says that it is the host's turn.
	SettingsChanging HostSettingsState = "Changing"
	// SettingsRefused says that a component did not start with them, and the host has again what it had.
	SettingsRefused HostSettingsState = "Refused"
)

// HostState is where a host is in its life.
//
// +kubebuilder:validation:Enum=Free;Claimed;Joined;Returning;Failed
type HostState string

// The states.
const (
	// HostFree is a host that a Machine may have.
	HostFree HostState = "Free"
	// HostClaimed is one that is being made a Machine's Node.
	HostClaimed HostState = "Claimed"
	// HostJoined is a Machine's Node.
	HostJoined HostState = "Joined"
	// HostReturning has a Machine that is gone, or is going: it is free once it has answered, and is bare.
	HostReturning HostState = "Returning"
	// HostFailed is one that could not be made a Node. It is tried again later.
	HostFailed HostState = "Failed"
)

// HostClaim names a Machine.
type HostClaim struct {
	// Namespace is the Machine's.
	// +required
	Namespace string `json:"namespace"`
	// Name is the Machine's.
	// +required
	Name string `json:"name"`
	// UID is the Machine's. The host has it in its own note.
	// +required
	UID types.UID `json:"uid"`
}

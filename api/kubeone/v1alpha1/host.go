package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Host is an existing machine that is reached over SSH. A Machine of the provider ssh can claim it. Its name is also
// the name of its Node.
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
	// Spec sets how the host is reached.
	// +required
	Spec HostSpec `json:"spec"`
	// Status is the observed state.
	// +optional
	Status HostStatus `json:"status,omitzero"`
}

// HostList is a list of Hosts.
//
// +kubebuilder:object:root=true
type HostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Host `json:"items"`
}

// HostSpec sets how a host is reached.
type HostSpec struct {
	// Address is the address or name of its SSH server.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z.:-]+$`
	Address string `json:"address"`
	// PrivateAddress is the address of its Node. If unset, it is the address.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:Pattern=`^[0-9A-Fa-f.:]+$`
	PrivateAddress string `json:"privateAddress,omitempty"`
	// Port is the port of the SSH server.
	// +optional
	// +kubebuilder:default=22
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// User is the login user: root, or a user with sudo without a password.
	// +optional
	// +kubebuilder:default=root
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_.-]*$`
	User string `json:"user,omitempty"`
	// HostKeys are the public keys of its SSH server, such as "ssh-ed25519 AAAA…". The host must present one of them.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=1024
	HostKeys []string `json:"hostKeys"`
	// FailureDomain is a group of hosts that fail together, such as a rack, a room or a hypervisor. Machines are spread
	// over failure domains.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	FailureDomain string `json:"failureDomain,omitempty"`
	// Bastion is the jump host.
	// +optional
	Bastion *Bastion `json:"bastion,omitempty"`
}

// Bastion is a jump host. It accepts the same SSH key as the host.
type Bastion struct {
	// Address is the address or name of its SSH server.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z.:-]+$`
	Address string `json:"address"`
	// Port is the port of its SSH server.
	// +optional
	// +kubebuilder:default=22
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// User is the login user.
	// +optional
	// +kubebuilder:default=root
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_.-]*$`
	User string `json:"user,omitempty"`
	// HostKeys are the public keys of its SSH server.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=1024
	HostKeys []string `json:"hostKeys"`
}

// HostStatus is the observed state of a host.
type HostStatus struct {
	// State is the state of the host. A Host without a state is free.
	// +optional
	// +kubebuilder:default=Free
	State HostState `json:"state,omitempty"`
	// Claim is the Machine that has claimed the host and not returned it.
	// +optional
	Claim *HostClaim `json:"claim,omitempty"`
	// Message explains the state to people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// RetryAfter is the time of the next attempt with a failed host.
	// +optional
	RetryAfter *metav1.Time `json:"retryAfter,omitempty"`
	// Settings is set while the host gets other settings, and after it has refused them.
	// +optional
	Settings *HostSettings `json:"settings,omitempty"`
}

// HostSettings is the progress of other settings from the cluster's record on a host.
type HostSettings struct {
	// Revision is a digest of these settings.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Revision string `json:"revision"`
	// State is Changing while the host gets the settings, and Refused after it has reverted them.
	// +required
	State HostSettingsState `json:"state"`
	// Message is the reason why the host refused them.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// HostSettingsState is the state of other settings on a host.
//
// +kubebuilder:validation:Enum=Changing;Refused
type HostSettingsState string

// The states of settings.
const (
	// SettingsChanging means that the host gets the settings.
	SettingsChanging HostSettingsState = "Changing"
	// SettingsRefused means that a component did not start with them, and the host reverted them.
	SettingsRefused HostSettingsState = "Refused"
)

// HostState is the state of a host.
//
// +kubebuilder:validation:Enum=Free;Claimed;Joined;Returning;Failed
type HostState string

// The states.
const (
	// HostFree means that a Machine may claim the host.
	HostFree HostState = "Free"
	// HostClaimed means that it is becoming a Machine's Node.
	HostClaimed HostState = "Claimed"
	// HostJoined means that it is a Machine's Node.
	HostJoined HostState = "Joined"
	// HostReturning means that its Machine is deleted. The host is free once it has answered, and is bare.
	HostReturning HostState = "Returning"
	// HostFailed means that it could not become a Node. The controllers try again later.
	HostFailed HostState = "Failed"
)

// HostClaim names a Machine.
type HostClaim struct {
	// Namespace is the namespace of the Machine.
	// +required
	Namespace string `json:"namespace"`
	// Name is the name of the Machine.
	// +required
	Name string `json:"name"`
	// UID is the UID of the Machine. The host stores it, too.
	// +required
	UID types.UID `json:"uid"`
}

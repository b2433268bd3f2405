// Package v1alpha1 is what a cluster of kubeone has besides the machines of KEP-3: Host, a machine that exists and that
// Machines of the provider ssh may have.
//
// +kubebuilder:object:generate=true
// +groupName=kubeone.k8c.io
package v1alpha1

// Package v1alpha1 is the API group kubeone.k8c.io. Its only kind is Host, an existing machine that Machines of the
// provider ssh can claim.
//
// +kubebuilder:object:generate=true
// +groupName=kubeone.k8c.io
package v1alpha1

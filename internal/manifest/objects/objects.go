// Package objects converts a manifest into a Cluster and its Machines, and back. Both are the same desired state in two
// forms, so a conversion loses nothing but the order of taints.
//
// A Cluster has the fields of kubeadm's ClusterConfiguration; everything else that a manifest says is in its
// providerSpec.value, as a manifest without those fields. A Machine of the provider static is a host of the manifest.
package objects

import (
	"maps"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/api/kubeone/v1beta2"
)

// Namespace is the namespace of all objects.
const Namespace = "kube-system"

// Objects are a Cluster and what belongs to it.
type Objects struct {
	Cluster Cluster
	// Machines are those of the provider static: the hosts of the manifest.
	Machines []Machine
	// Others are the other objects of the Machine API: MachineDeployments, MachineSets, Machines and Hosts.
	Others []map[string]any
}

// KeepMetadata gives the Cluster and the Machines the names, labels and annotations of other ones for the same hosts,
// and the Cluster the approval.
func (o *Objects) KeepMetadata(from Objects) {
	o.Cluster.Metadata, o.Cluster.Spec.Approval = keptMetadata(from.Cluster.Metadata), from.Cluster.Spec.Approval
	for i := range o.Machines {
		host := o.Machines[i].Spec.ProviderSpec.Value.CloudProviderSpec
		for _, m := range from.Machines {
			other := m.Spec.ProviderSpec.Value.CloudProviderSpec
			if host.PublicAddress != "" && host.PublicAddress == other.PublicAddress ||
				host.PrivateAddress != "" && host.PrivateAddress == other.PrivateAddress {
				o.Machines[i].Metadata = keptMetadata(m.Metadata)
			}
		}
	}
}

// lastApplied is the annotation in which kubectl keeps what it applied.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func keptMetadata(m Metadata) Metadata {
	out := Metadata{Name: m.Name, Namespace: Namespace, Labels: m.Labels, Annotations: maps.Clone(m.Annotations)}
	for _, name := range []string{lastApplied, v1alpha1.ApprovedPlanAnnotation, v1alpha1.AllowDeletionAnnotation} {
		delete(out.Annotations, name)
	}
	return out
}

// Cluster is a v1alpha1.Cluster whose providerSpec.value is decoded.
type Cluster struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Metadata   Metadata    `json:"metadata"`
	Spec       ClusterSpec `json:"spec"`
	// Status is what a cluster has written. It is ignored.
	Status v1beta2.Raw `json:"status,omitempty"`
}

// Metadata is the metadata of an object. Only the name and the namespace have a meaning here; the other fields are
// those of an object that was read from a cluster.
type Metadata struct {
	Name                       string            `json:"name"`
	Namespace                  string            `json:"namespace,omitempty"`
	Labels                     map[string]string `json:"labels,omitempty"`
	Annotations                map[string]string `json:"annotations,omitempty"`
	UID                        string            `json:"uid,omitempty"`
	ResourceVersion            string            `json:"resourceVersion,omitempty"`
	Generation                 int64             `json:"generation,omitempty"`
	CreationTimestamp          string            `json:"creationTimestamp,omitempty"`
	DeletionTimestamp          string            `json:"deletionTimestamp,omitempty"`
	DeletionGracePeriodSeconds int64             `json:"deletionGracePeriodSeconds,omitempty"`
	Finalizers                 []string          `json:"finalizers,omitempty"`
	ManagedFields              []v1beta2.Raw     `json:"managedFields,omitempty"`
}

// ClusterSpec is a v1alpha1.ClusterSpec whose providerSpec.value is decoded.
type ClusterSpec struct {
	v1alpha1.ClusterConfiguration `json:",inline"`

	ProviderSpec ClusterProviderSpec `json:"providerSpec"`
	// Approval has no meaning in a manifest.
	Approval v1alpha1.Approval `json:"approval,omitempty"`
}

// ClusterProviderSpec is a v1alpha1.ClusterProviderSpec whose value is decoded.
type ClusterProviderSpec struct {
	Value v1beta2.KubeOneCluster `json:"value"`
}

// Machine is a v1alpha1.Machine of the provider static whose settings are decoded.
type Machine struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Metadata   Metadata    `json:"metadata"`
	Spec       MachineSpec `json:"spec"`
	// Status is what a cluster has written. It is ignored.
	Status v1beta2.Raw `json:"status,omitempty"`
}

// MachineSpec is a v1alpha1.MachineSpec whose providerSpec.value is decoded.
type MachineSpec struct {
	Metadata     NodeMetadata                `json:"metadata,omitzero"`
	Taints       []v1beta2.Taint             `json:"taints,omitempty"`
	ProviderSpec MachineProviderSpec         `json:"providerSpec"`
	Versions     v1alpha1.MachineVersionInfo `json:"versions,omitzero"`
	Roles        []v1alpha1.MachineRole      `json:"roles,omitempty"`
}

// NodeMetadata are the labels and annotations of a Machine's Node.
type NodeMetadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// MachineProviderSpec is the provider of a Machine, with its settings.
type MachineProviderSpec struct {
	Value MachineProvider `json:"value"`
}

// MachineProvider is the provider static: the host itself.
type MachineProvider struct {
	CloudProvider     string             `json:"cloudProvider"`
	CloudProviderSpec v1beta2.HostConfig `json:"cloudProviderSpec"`
}

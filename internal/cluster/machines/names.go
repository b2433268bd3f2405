// Package machines deletes the Machines in a cluster and waits until the controllers, which run in another process,
// have returned their hosts. This must happen before the cluster is reset. It also stores the credentials for these
// hosts.
package machines

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
)

// Namespace and Lease identify the controllers' Lease.
const (
	Namespace = "kubeone-system"
	Lease     = "kubeone-controller"
)

// Clusters returns the resource of Clusters.
func Clusters() schema.GroupVersionResource { return v1alpha1.GroupVersion().WithResource("clusters") }

// Deployments returns the resource of MachineDeployments.
func Deployments() schema.GroupVersionResource {
	return v1alpha1.GroupVersion().WithResource("machinedeployments")
}

// Sets returns the resource of MachineSets.
func Sets() schema.GroupVersionResource { return v1alpha1.GroupVersion().WithResource("machinesets") }

// Machines returns the resource of Machines.
func Machines() schema.GroupVersionResource { return v1alpha1.GroupVersion().WithResource("machines") }

// Hosts returns the resource of Hosts.
func Hosts() schema.GroupVersionResource { return kubeone.GroupVersion().WithResource("hosts") }

// RevisionAnnotation contains the revision of a definition. kubeone sets it on the definitions of these kinds.
const RevisionAnnotation = "kubeone.k8c.io/definitions-revision"

// Revision returns the revision of a definition that kubeone applied. Ours is false if another program created the
// definition: machine-controller also uses the group cluster.k8s.io.
func Revision(definition metav1.Object) (revision int, ours bool) {
	revision, err := strconv.Atoi(definition.GetAnnotations()[RevisionAnnotation])
	return revision, err == nil
}

// Definitions returns the resource of CustomResourceDefinitions.
func Definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
}

// DefinitionNames returns the names of the CustomResourceDefinitions for these kinds.
func DefinitionNames() []string {
	var out []string
	for _, kind := range []schema.GroupVersionResource{Clusters(), Machines(), Sets(), Deployments(), Hosts()} {
		out = append(out, kind.GroupResource().String())
	}
	return out
}

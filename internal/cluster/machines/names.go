// Package machines deletes the Machines of a cluster, and waits until their hosts are returned: what comes before the
// cluster itself ends. Returning them is the work of the controllers, package manager's, which run elsewhere.
package machines

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
)

// Namespace and Lease are where the process of controllers says that it works.
const (
	Namespace = "kubeone-system"
	Lease     = "kubeone-controller"
)

// Deployments are MachineDeployments, as the API serves them.
func Deployments() schema.GroupVersionResource {
	return v1alpha1.GroupVersion().WithResource("machinedeployments")
}

// Sets are MachineSets.
func Sets() schema.GroupVersionResource { return v1alpha1.GroupVersion().WithResource("machinesets") }

// Machines are Machines.
func Machines() schema.GroupVersionResource { return v1alpha1.GroupVersion().WithResource("machines") }

// Hosts are the hosts of the pool.
func Hosts() schema.GroupVersionResource { return kubeone.GroupVersion().WithResource("hosts") }

// RevisionAnnotation is on each definition of these kinds, with its revision.
const RevisionAnnotation = "kubeone.k8c.io/definitions-revision"

// Revision is the revision of a definition that kubeone has applied. It is false for another program's definition:
// cluster.k8s.io is machine-controller's group, too.
func Revision(definition metav1.Object) (revision int, ours bool) {
	revision, err := strconv.Atoi(definition.GetAnnotations()[RevisionAnnotation])
	return revision, err == nil
}

// Definitions are CustomResourceDefinitions.
func Definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
}

// DefinitionNames are the names of the definitions of these kinds.
func DefinitionNames() []string {
	var out []string
	for _, kind := range []schema.GroupVersionResource{Machines(), Sets(), Deployments(), Hosts()} {
		out = append(out, kind.GroupResource().String())
	}
	return out
}

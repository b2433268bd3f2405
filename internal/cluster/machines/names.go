// Package machines deletes the Machines of a cluster, and waits until their hosts are returned: what comes before the
// cluster itself ends. Returning them is the work of the controllers, package manager's, which run elsewhere.
package machines

import (
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

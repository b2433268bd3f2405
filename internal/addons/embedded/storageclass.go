package embedded

import (
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

// provisioners are the CSI drivers of clouds that need no parameters in a StorageClass, by the cloud's name in the
// manifest. The names are those that the projects of the drivers register.
var provisioners = map[string]string{
	"aws":          "ebs.csi.aws.com",
	"azure":        "disk.csi.azure.com",
	"digitalocean": "dobs.csi.digitalocean.com",
	"gce":          "pd.csi.storage.gke.io",
	"hetzner":      "csi.hetzner.cloud",
	"kubevirt":     "csi.kubevirt.io",
	"openstack":    "cinder.csi.openstack.org",
	"vsphere":      "csi.vsphere.vmware.com",
}

// CloudStorageClass returns the default StorageClass for the CSI driver of a cloud, and whether there is one.
func CloudStorageClass(cloud string) (resources.Object, bool) {
	provisioner, found := provisioners[cloud]
	return resources.Object{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
		"metadata": map[string]any{
			"name": "standard",
			"labels": map[string]any{
				"app.kubernetes.io/managed-by": "kubeone", "kubeone.io/addon": desired.StorageClassAddon,
			},
			"annotations": map[string]any{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		"provisioner":          provisioner,
		"reclaimPolicy":        "Delete",
		"allowVolumeExpansion": true,
		"volumeBindingMode":    "WaitForFirstConsumer", // a volume is in the zone of its Node
	}, found
}

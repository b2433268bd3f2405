package v1beta2

import "strings"

// Providers returns the names of the cloud providers that are set, sorted.
func (c *CloudProviderSpec) Providers() []string {
	return named(map[string]bool{
		"none": c.None != nil, "aws": c.AWS != nil, "azure": c.Azure != nil, "digitalocean": c.DigitalOcean != nil,
		"gce": c.GCE != nil, "hetzner": c.Hetzner != nil, "kubevirt": c.Kubevirt != nil, "nutanix": c.Nutanix != nil,
		"openstack": c.Openstack != nil, "equinixmetal": c.EquinixMetal != nil,
		"vmwareCloudDirector": c.VMwareCloudDirector != nil, "vsphere": c.Vsphere != nil,
	})
}

func (f *findings) cloudProvider(c *KubeOneCluster) {
	const path = "cloudProvider"
	p := c.CloudProvider
	switch chosen := p.Providers(); {
	case len(chosen) == 0:
		f.missing(path, "for hosts without a cloud provider, write cloudProvider: {none: {}}")
	case len(chosen) > 1:
		f.errorf(path, "keep one of them", "sets %d providers (%s); only one is allowed", len(chosen),
			strings.Join(chosen, ", "))
	}
	if p.None != nil && c.MachineController != nil && isFalse(c.MachineController.Deploy) {
		for i := range c.DynamicWorkers {
			f.warnf(Item("dynamicWorkers", i), "create it with kubeone config machinedeployments | kubectl apply -f -",
				"apply does not create it, because machineController.deploy is false")
		}
	}
	if p.None != nil && c.OperatingSystemManager != nil && !isOff(c.OperatingSystemManager.Deploy) {
		f.errorf("operatingSystemManager", "set deploy: false, or remove it",
			"has no effect without a cloud provider")
	}
	if p.EquinixMetal != nil {
		f.errorf(path+".equinixmetal", "write cloudProvider: {none: {}}", "is not supported: Equinix Metal ended in 2026")
	}
	if p.External && p.None != nil {
		f.errorf(path+".external", "remove it", "needs a cloud whose controller manager initializes the Nodes")
	}
	if p.External && p.VMwareCloudDirector != nil {
		f.errorf(path+".external", "remove it", "is not supported for vmwareCloudDirector")
	}
	if p.CSIConfig != "" && p.Vsphere == nil {
		f.errorf(path+".csiConfig", "remove it: other storage drivers read cloudConfig or credentials",
			"is supported only for vsphere")
	}
}

func isFalse(deploy *bool) bool { return deploy != nil && !*deploy }

func isOff(deploy *bool) bool {
	return deploy == nil || !*deploy
}

// Choose sets the provider with that name, as Providers returns it, and reports whether the name is known.
func (c *CloudProviderSpec) Choose(name string) bool {
	switch name {
	case "none":
		c.None = &NoneSpec{}
	case "aws":
		c.AWS = &AWSSpec{}
	case "azure":
		c.Azure = &AzureSpec{}
	case "digitalocean":
		c.DigitalOcean = &DigitalOceanSpec{}
	case "gce":
		c.GCE = &GCESpec{}
	case "hetzner":
		c.Hetzner = &HetznerSpec{}
	case "kubevirt":
		c.Kubevirt = &KubevirtSpec{}
	case "nutanix":
		c.Nutanix = &NutanixSpec{}
	case "openstack":
		c.Openstack = &OpenstackSpec{}
	case "equinixmetal":
		c.EquinixMetal = &EquinixMetalSpec{}
	case "vmwareCloudDirector":
		c.VMwareCloudDirector = &VMwareCloudDirectorSpec{}
	case "vsphere":
		c.Vsphere = &VsphereSpec{}
	default:
		return false
	}
	return true
}

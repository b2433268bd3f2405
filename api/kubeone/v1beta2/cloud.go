package v1beta2

// CloudProviderSpec names the cloud that the hosts run on: exactly one provider.
type CloudProviderSpec struct {
	// None is for hosts on no cloud, or on any cloud without integration.
	None *NoneSpec `json:"none,omitempty"`
	// AWS is Amazon Web Services.
	AWS *AWSSpec `json:"aws,omitempty" carried:"with external"`
	// Azure is Microsoft Azure.
	Azure *AzureSpec `json:"azure,omitempty" carried:"with external"`
	// DigitalOcean is DigitalOcean.
	DigitalOcean *DigitalOceanSpec `json:"digitalocean,omitempty" carried:"with external"`
	// GCE is Google Compute Engine.
	GCE *GCESpec `json:"gce,omitempty" carried:"with external"`
	// Hetzner is Hetzner Cloud.
	Hetzner *HetznerSpec `json:"hetzner,omitempty" carried:"with external"`
	// Kubevirt are virtual machines in another Kubernetes cluster.
	Kubevirt *KubevirtSpec `json:"kubevirt,omitempty" carried:"with external"`
	// Nutanix is Nutanix.
	Nutanix *NutanixSpec `json:"nutanix,omitempty" carried:"with external"`
	// Openstack is OpenStack.
	Openstack *OpenstackSpec `json:"openstack,omitempty" carried:"with external"`
	// EquinixMetal is Equinix Metal, which ended in 2026. It is refused.
	EquinixMetal *EquinixMetalSpec `json:"equinixmetal,omitempty" carried:"no"`
	// VMwareCloudDirector is VMware Cloud Director.
	VMwareCloudDirector *VMwareCloudDirectorSpec `json:"vmwareCloudDirector,omitempty" carried:"no"`
	// Vsphere is VMware vSphere.
	Vsphere *VsphereSpec `json:"vsphere,omitempty" carried:"with external"`

	// External installs the cloud's controller manager and storage driver. It cannot be changed in an existing cluster.
	External bool `json:"external,omitempty"`
	// DisableBundledCSIDrivers leaves out the cloud's storage driver.
	DisableBundledCSIDrivers bool `json:"disableBundledCSIDrivers,omitempty"`
	// CloudConfig is the configuration file of the cloud's controller manager: required for azure, openstack and vsphere
	// with external, optional for aws.
	CloudConfig string `json:"cloudConfig,omitempty" carried:"with external" secret:"true" lines:"yes"`
	// CSIConfig is the configuration file of the cloud's storage driver; vSphere only. Other drivers read cloudConfig or
	// credentials.
	CSIConfig string `json:"csiConfig,omitempty" carried:"with external" secret:"true" lines:"yes"`
	// SecretProviderClassName is the SecretProviderClass that holds the cloud's credentials.
	SecretProviderClassName string `json:"secretProviderClassName,omitempty" carried:"no"`
}

// NoneSpec has no settings.
type NoneSpec struct{}

// AWSSpec has no settings.
type AWSSpec struct{}

// AzureSpec has no settings.
type AzureSpec struct{}

// DigitalOceanSpec has no settings.
type DigitalOceanSpec struct{}

// GCESpec has no settings.
type GCESpec struct{}

// NutanixSpec has no settings.
type NutanixSpec struct{}

// EquinixMetalSpec has no settings.
type EquinixMetalSpec struct{}

// VsphereSpec has no settings.
type VsphereSpec struct{}

// HetznerSpec configures Hetzner Cloud.
type HetznerSpec struct {
	// NetworkID is the private network's ID or name.
	NetworkID string `json:"networkID,omitempty"`
	// ControlPlane is the control plane's load balancer.
	ControlPlane *HetznerControlPlane `json:"controlPlane,omitempty" carried:"no"`
}

// HetznerControlPlane is the control plane's load balancer.
type HetznerControlPlane struct {
	// LoadBalancer is the load balancer that is created.
	LoadBalancer *HetznerLoadBalancer `json:"loadBalancer,omitempty"`
}

// HetznerLoadBalancer is a load balancer of Hetzner Cloud.
type HetznerLoadBalancer struct {
	// Name is its name.
	Name string `json:"name,omitempty"`
	// Type is its type, such as lb11.
	Type string `json:"type,omitempty"`
	// Location is its location, such as nbg1.
	Location string `json:"location,omitempty"`
	// PublicIP gives it a public address.
	PublicIP *bool `json:"publicIP,omitempty"`
	// Labels are its labels.
	Labels map[string]string `json:"labels,omitempty"`
}

// KubevirtSpec configures KubeVirt.
type KubevirtSpec struct {
	// InfraNamespace is the namespace of the virtual machines in the other cluster.
	InfraNamespace string `json:"infraNamespace,omitempty" carried:"no"`
	// ZoneAndRegionEnabled takes region and zone labels over from the other cluster.
	ZoneAndRegionEnabled *bool `json:"zoneAndRegionEnabled,omitempty" carried:"no"`
	// LoadBalancerEnabled lets the cloud's controller manager create load balancers.
	LoadBalancerEnabled *bool `json:"loadBalancerEnabled,omitempty" carried:"no"`
	// ControlPlane is the control plane's load balancer.
	ControlPlane *KubevirtControlPlane `json:"controlPlane,omitempty" carried:"no"`
}

// KubevirtControlPlane is the control plane's load balancer.
type KubevirtControlPlane struct {
	// LoadBalancer is the Service that is created.
	LoadBalancer *KubevirtLoadBalancer `json:"loadBalancer,omitempty"`
}

// KubevirtLoadBalancer is a Service in the other cluster.
type KubevirtLoadBalancer struct {
	// Name is its name.
	Name string `json:"name,omitempty"`
	// ServiceType is its type.
	ServiceType string `json:"serviceType,omitempty"`
	// Annotations are its annotations.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// OpenstackSpec configures OpenStack.
type OpenstackSpec struct {
	// ControlPlane is the control plane's load balancer.
	ControlPlane *OpenstackControlPlane `json:"controlPlane,omitempty" carried:"no"`
}

// OpenstackControlPlane is the control plane's load balancer.
type OpenstackControlPlane struct {
	// LoadBalancer is a load balancer that exists already.
	LoadBalancer *OpenstackLoadBalancer `json:"loadBalancer,omitempty"`
}

// OpenstackLoadBalancer is a load balancer of OpenStack.
type OpenstackLoadBalancer struct {
	// Name is its name.
	Name string `json:"name,omitempty"`
	// PoolID is the pool that hosts are added to.
	PoolID string `json:"poolID,omitempty"`
}

// VMwareCloudDirectorSpec configures VMware Cloud Director.
type VMwareCloudDirectorSpec struct {
	// VApp is the virtual machines' vApp.
	VApp string `json:"vApp,omitempty"`
	// StorageProfile is the disks' storage profile.
	StorageProfile string `json:"storageProfile,omitempty"`
}

package objects

import (
	"fmt"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/api/kubeone/v1beta2"
)

// ClusterIndex is the index of the Cluster in a Source or Problem. Machines have their indexes in Objects. Those of the
// other objects follow.
const ClusterIndex = -1

// Source says that the part of a manifest at or below To is the part of an object at or below From.
type Source struct {
	Object   int
	From, To string
}

// Problem is a mistake in an object, which has no form in a manifest.
type Problem struct {
	Object  int
	Path    string // in the object
	Message string
	Hint    string
}

// Paths of the settings of a provider in objects.
const (
	valuePath = "spec.providerSpec.value"
	hostPath  = valuePath + ".cloudProviderSpec"
)

// Converted is the manifest of objects.
type Converted struct {
	Manifest *v1beta2.KubeOneCluster
	// Sources say where the parts of the manifest come from. A later Source takes precedence over an earlier one.
	Sources []Source
	// Rest are the objects that a manifest cannot express.
	Rest     []map[string]any
	Problems []Problem
}

// Manifest returns the manifest of the objects. It neither fills in defaults nor validates.
func (o Objects) Manifest() Converted {
	c := &converter{manifest: o.Cluster.Spec.ProviderSpec.Value}
	c.manifest.APIVersion, c.manifest.Kind = v1beta2.APIVersion, v1beta2.Kind
	c.checkType(o.Cluster.Spec.ProviderSpec.Value)
	c.move(valuePath, "")
	c.refuseMovedFields()
	c.manifest.Name = o.Cluster.Metadata.Name
	c.move("metadata.name", "name")
	switch o.Cluster.Spec.Approval {
	case "", v1alpha1.AutomaticApproval, v1alpha1.ManualApproval:
	default:
		c.addProblem("spec.approval", "the approvals are Automatic and Manual", "%q is not supported",
			o.Cluster.Spec.Approval)
	}
	c.addConfiguration(o.Cluster.Spec.ClusterConfiguration)
	for i, m := range o.Machines {
		c.object = i + 1
		c.addMachine(m, o.Cluster.Spec.KubernetesVersion)
	}
	var rest []map[string]any
	for i, other := range o.Others {
		c.object = len(o.Machines) + i + 1
		if !c.addDynamicWorkers(other) {
			rest = append(rest, other)
		}
	}
	return Converted{Manifest: &c.manifest, Sources: c.sources, Rest: rest, Problems: c.problems}
}

// addDynamicWorkers adds a MachineDeployment to dynamicWorkers. It returns false if a manifest cannot express it.
func (c *converter) addDynamicWorkers(object map[string]any) bool {
	worker, ok := dynamicWorkerOf(&c.manifest, object)
	if !ok {
		return false
	}
	c.move("", v1beta2.Item("dynamicWorkers", len(c.manifest.DynamicWorkers)))
	c.manifest.DynamicWorkers = append(c.manifest.DynamicWorkers, worker)
	return true
}

// converter builds a manifest from objects.
type converter struct {
	manifest v1beta2.KubeOneCluster
	object   int // plus one, so that the zero converter is at the Cluster
	sources  []Source
	problems []Problem
}

func (c *converter) move(from, to string) {
	c.sources = append(c.sources, Source{Object: c.object - 1, From: from, To: to})
}

func (c *converter) addProblem(path, hint, format string, args ...any) {
	c.problems = append(c.problems, Problem{
		Object: c.object - 1, Path: path, Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

func (c *converter) checkType(value v1beta2.KubeOneCluster) {
	for _, field := range []struct{ name, value, want string }{
		{"apiVersion", value.APIVersion, v1beta2.APIVersion}, {"kind", value.Kind, v1beta2.Kind},
	} {
		switch field.value {
		case field.want:
		case "":
			c.addProblem(valuePath+"."+field.name, "write "+field.name+": "+field.want, "is required")
		default:
			c.addProblem(valuePath+"."+field.name, "write "+field.name+": "+field.want, "%q is not supported", field.value)
		}
	}
}

// movedField is a field of a manifest that a Cluster or its Machines have under another name.
type movedField struct {
	path  string
	value reflect.Value
	to    string
}

// movedFields returns the fields of a manifest that its Cluster and Machines have. Fields below a nil pointer are
// missing.
func movedFields(m *v1beta2.KubeOneCluster) []movedField {
	field := func(path string, pointer any, to string) movedField {
		return movedField{path, reflect.ValueOf(pointer).Elem(), to}
	}
	n := &m.ClusterNetwork
	out := []movedField{
		field("name", &m.Name, "metadata.name"),
		field("versions", &m.Versions, "spec.kubernetesVersion"),
		field("apiEndpoint", &m.APIEndpoint, "spec.controlPlaneEndpoint and spec.apiServer.certSANs"),
		field("controlPlane.hosts", &m.ControlPlane.Hosts, "Machines with the role Master"),
		field("staticWorkers", &m.StaticWorkers, "Machines with the role Node"),
		field("dynamicWorkers", &m.DynamicWorkers, "MachineDeployments"),
		field("controlPlaneComponents", &m.ControlPlaneComponents, "extraArgs in spec"),
		field("clusterNetwork.podSubnet", &n.PodSubnet, "spec.clusterNetwork.pods"),
		field("clusterNetwork.podSubnetIPv6", &n.PodSubnetIPv6, "spec.clusterNetwork.pods"),
		field("clusterNetwork.serviceSubnet", &n.ServiceSubnet, "spec.clusterNetwork.services"),
		field("clusterNetwork.serviceSubnetIPv6", &n.ServiceSubnetIPv6, "spec.clusterNetwork.services"),
		field("clusterNetwork.serviceDomainName", &n.ServiceDomainName, "spec.clusterNetwork.serviceDomain"),
		field("certificateAuthority.certificateValidityPeriod", &m.CertificateAuthority.CertificateValidityPeriod,
			"spec.certificateValidityPeriod"),
		field("certificateAuthority.caCertificateValidityPeriod", &m.CertificateAuthority.CACertificateValidityPeriod,
			"spec.caCertificateValidityPeriod"),
	}
	if n.KubeProxy != nil {
		out = append(out, field("clusterNetwork.kubeProxy.skipInstallation", &n.KubeProxy.SkipInstallation,
			"spec.proxy.disabled"))
	}
	if r := m.RegistryConfiguration; r != nil {
		out = append(out, field("registryConfiguration.overwriteRegistry", &r.OverwriteRegistry, "spec.imageRepository"))
	}
	if dns := m.Features.CoreDNS; dns != nil {
		out = append(out, field("features.coreDNS.imageRepository", &dns.ImageRepository, "spec.dns.imageRepository"))
	}
	return out
}

// refuseMovedFields reports fields of providerSpec.value that the Cluster and its Machines have.
func (c *converter) refuseMovedFields() {
	for _, f := range movedFields(&c.manifest) {
		if !f.value.IsZero() {
			c.addProblem(valuePath+"."+f.path, "", "belongs in %s", f.to)
			f.value.SetZero()
		}
	}
}

// addConfiguration adds the fields of the Cluster's spec.
func (c *converter) addConfiguration(k v1alpha1.ClusterConfiguration) {
	m := &c.manifest
	m.Versions.Kubernetes = k.KubernetesVersion
	c.move("spec.kubernetesVersion", "versions.kubernetes")
	c.addEndpoint(k.ControlPlaneEndpoint)
	m.APIEndpoint.AlternativeNames = k.APIServer.CertSANs
	c.move("spec.apiServer.certSANs", "apiEndpoint.alternativeNames")
	n := &m.ClusterNetwork
	c.addRanges("pods", k.ClusterNetwork.Pods, "podSubnet", &n.PodSubnet, &n.PodSubnetIPv6)
	c.addRanges("services", k.ClusterNetwork.Services, "serviceSubnet", &n.ServiceSubnet, &n.ServiceSubnetIPv6)
	n.ServiceDomainName = k.ClusterNetwork.ServiceDomain
	c.move("spec.clusterNetwork.serviceDomain", "clusterNetwork.serviceDomainName")
	if k.Proxy.Disabled {
		if n.KubeProxy == nil {
			n.KubeProxy = &v1beta2.KubeProxyConfig{}
		}
		n.KubeProxy.SkipInstallation = true
		c.move("spec.proxy.disabled", "clusterNetwork.kubeProxy.skipInstallation")
	}
	if k.ImageRepository != "" {
		if m.RegistryConfiguration == nil {
			m.RegistryConfiguration = &v1beta2.RegistryConfiguration{}
		}
		m.RegistryConfiguration.OverwriteRegistry = k.ImageRepository
		c.move("spec.imageRepository", "registryConfiguration.overwriteRegistry")
	}
	if k.DNS.ImageRepository != "" {
		if m.Features.CoreDNS == nil {
			m.Features.CoreDNS = &v1beta2.CoreDNS{}
		}
		m.Features.CoreDNS.ImageRepository = k.DNS.ImageRepository
		c.move("spec.dns.imageRepository", "features.coreDNS.imageRepository")
	}
	m.CertificateAuthority.CertificateValidityPeriod = k.CertificateValidityPeriod
	c.move("spec.certificateValidityPeriod", "certificateAuthority.certificateValidityPeriod")
	m.CertificateAuthority.CACertificateValidityPeriod = k.CACertificateValidityPeriod
	c.move("spec.caCertificateValidityPeriod", "certificateAuthority.caCertificateValidityPeriod")
	c.addComponents(k)
}

// addEndpoint adds the address of the API: a host, or a host and a port.
func (c *converter) addEndpoint(endpoint string) {
	const path = "spec.controlPlaneEndpoint"
	c.move(path, "apiEndpoint")
	c.move(path, "apiEndpoint.host")
	c.move(path, "apiEndpoint.port")
	if endpoint == "" {
		return
	}
	e := &c.manifest.APIEndpoint
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil { // without a port
		e.Host = strings.TrimSuffix(strings.TrimPrefix(endpoint, "["), "]")
		return
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		c.addProblem(path, "write HOST:PORT", "%q is not a port", port)
	}
	e.Host, e.Port = host, int(number)
}

// addRanges adds an IPv4 range and an IPv6 range.
func (c *converter) addRanges(name string, r v1alpha1.NetworkRanges, field string, v4, v6 *string) {
	list := "spec.clusterNetwork." + name + ".cidrBlocks"
	c.move(list, "clusterNetwork."+field)
	c.move(list, "clusterNetwork."+field+"IPv6")
	for i, block := range r.CIDRBlocks {
		target, to, family := v4, "clusterNetwork."+field, "IPv4"
		if strings.Contains(block, ":") {
			target, to, family = v6, "clusterNetwork."+field+"IPv6", "IPv6"
		}
		path := v1beta2.Item(list, i)
		if *target != "" {
			c.addProblem(path, "list at most one range of each family", "is a second %s range", family)
			continue
		}
		*target = block
		c.move(path, to)
	}
}

// Flags that a manifest has fields for.
const (
	featureGatesFlag = "feature-gates"
	quotaFlag        = "quota-backend-bytes"
	compactionMode   = "auto-compaction-mode"
	compactionFlag   = "auto-compaction-retention"
)

func (c *converter) addComponents(k v1alpha1.ClusterConfiguration) {
	out := v1beta2.ControlPlaneComponents{
		APIServer:         c.newComponent("apiServer", k.APIServer.ExtraArgs),
		ControllerManager: c.newComponent("controllerManager", k.ControllerManager.ExtraArgs),
		Scheduler:         c.newComponent("scheduler", k.Scheduler.ExtraArgs),
		Etcd:              c.newEtcd(k.Etcd.Local),
	}
	if out != (v1beta2.ControlPlaneComponents{}) {
		c.manifest.ControlPlaneComponents = &out
	}
}

func (c *converter) newComponent(name string, args []v1alpha1.Arg) *v1beta2.ControlPlaneComponentConfig {
	list, to := "spec."+name+".extraArgs", "controlPlaneComponents."+name
	c.move("spec."+name, to)
	out := v1beta2.ControlPlaneComponentConfig{}
	for i, arg := range args {
		path := v1beta2.Item(list, i)
		if arg.Name == featureGatesFlag {
			c.addFeatureGates(path+".value", arg.Value, to+".featureGates", &out)
			continue
		}
		if _, twice := out.Flags[arg.Name]; twice {
			c.addProblem(path, "remove one of them", "the flag %s is listed twice", arg.Name)
		}
		if out.Flags == nil {
			out.Flags = map[string]string{}
		}
		out.Flags[arg.Name] = arg.Value
		c.move(path, v1beta2.Child(to+".flags", arg.Name))
	}
	if len(args) == 0 {
		return nil
	}
	return &out
}

// addFeatureGates adds the feature gates of a flag: a list of NAME=true and NAME=false with commas between them.
func (c *converter) addFeatureGates(path, list, to string, out *v1beta2.ControlPlaneComponentConfig) {
	c.move(path, to)
	if out.FeatureGates != nil {
		c.addProblem(path, "remove one of them", "the flag %s is listed twice", featureGatesFlag)
	}
	out.FeatureGates = map[string]bool{}
	for gate := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(gate), "=")
		enabled, err := strconv.ParseBool(value)
		if _, twice := out.FeatureGates[name]; twice || err != nil {
			c.addProblem(path, "list each one once, as NAME=true or NAME=false", "%q is not a list of feature gates", list)
			return
		}
		out.FeatureGates[name] = enabled
	}
}

func (c *converter) newEtcd(local *v1alpha1.LocalEtcd) *v1beta2.EtcdConfig {
	const to = "controlPlaneComponents.etcd"
	c.move("spec.etcd", to)
	if local == nil || len(local.ExtraArgs) == 0 {
		return nil
	}
	out := v1beta2.EtcdConfig{}
	seen := map[string]bool{}
	for i, arg := range local.ExtraArgs {
		path := v1beta2.Item("spec.etcd.local.extraArgs", i)
		if seen[arg.Name] {
			c.addProblem(path, "remove one of them", "the flag %s is listed twice", arg.Name)
		}
		seen[arg.Name] = true
		switch arg.Name {
		case quotaFlag:
			size, err := strconv.ParseInt(arg.Value, 10, 64)
			if err != nil {
				c.addProblem(path+".value", "write a number of bytes", "%q is not a number", arg.Value)
			}
			out.QuotaBackendBytes = size
			c.move(path, to+".quotaBackendBytes")
		case compactionMode:
			out.AutoCompactionMode = arg.Value
			c.move(path, to+".autoCompactionMode")
		case compactionFlag:
			out.AutoCompactionRetention = arg.Value
			c.move(path, to+".autoCompactionRetention")
		default:
			c.addProblem(path+".name", "the flags are "+strings.Join([]string{quotaFlag, compactionMode, compactionFlag}, ", "),
				"%q is not supported", arg.Name)
		}
	}
	return &out
}

// controlPlaneTaint returns the taint that keeps pods without a toleration away from control-plane hosts.
func controlPlaneTaint() v1beta2.Taint {
	return v1beta2.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}
}

// addMachine adds the host of a Machine, with the role that the Machine has.
func (c *converter) addMachine(m Machine, version string) {
	hosts, to := &c.manifest.StaticWorkers.Hosts, "staticWorkers.hosts"
	isMaster := slices.Contains(m.Spec.Roles, v1alpha1.MasterRole)
	if isMaster {
		hosts, to = &c.manifest.ControlPlane.Hosts, "controlPlane.hosts"
	}
	to = v1beta2.Item(to, len(*hosts))
	c.move(hostPath, to)
	host := m.Spec.ProviderSpec.Value.CloudProviderSpec
	if host.Versions != (v1beta2.HostVersions{}) {
		c.addProblem(hostPath+".versions", "", "belongs in spec.versions")
	}
	host.Labels = c.mergeMetadata("labels", to, m.Spec.Metadata.Labels, host.Labels)
	host.Annotations = c.mergeMetadata("annotations", to, m.Spec.Metadata.Annotations, host.Annotations)
	host.Taints = c.mergeTaints(m.Spec, to+".taints")
	host.Versions = c.newVersions(m.Spec, to, isMaster, version)
	c.checkMachine(m)
	*hosts = append(*hosts, host)
}

// mergeTaints returns the taints of a Node: those of the Machine's spec, those of its provider, which may have keys
// that the API refuses in a Machine, and that of a control-plane host without other pods.
func (c *converter) mergeTaints(spec MachineSpec, to string) []v1beta2.Taint {
	provider := spec.ProviderSpec.Value.CloudProviderSpec.Taints
	out := slices.Concat([]v1beta2.Taint{}, spec.Taints, provider)
	c.move("spec.taints", to)
	for i := range provider {
		c.move(v1beta2.Item(hostPath+".taints", i), v1beta2.Item(to, len(spec.Taints)+i))
	}
	if slices.Contains(spec.Roles, v1alpha1.MasterRole) && !slices.Contains(spec.Roles, v1alpha1.NodeRole) {
		out = append(out, controlPlaneTaint())
	}
	return out
}

func (c *converter) checkMachine(m Machine) {
	for i, role := range m.Spec.Roles {
		switch {
		case role != v1alpha1.MasterRole && role != v1alpha1.NodeRole:
			c.addProblem(v1beta2.Item("spec.roles", i), "the roles are Master and Node", "%q is not supported", role)
		case slices.Contains(m.Spec.Roles[:i], role):
			c.addProblem(v1beta2.Item("spec.roles", i), "remove one of them", "%q is listed twice", role)
		}
	}
}

// mergeMetadata returns the labels or annotations of a Node: those of the Machine's spec, and those of its provider,
// which may have keys that the API refuses in a Machine.
func (c *converter) mergeMetadata(name, to string, spec, provider map[string]string) map[string]string {
	c.move("spec.metadata."+name, to+"."+name)
	if len(spec)+len(provider) == 0 {
		return nil
	}
	out := map[string]string{}
	for key, value := range provider {
		out[key] = value
		c.move(v1beta2.Child(hostPath+"."+name, key), v1beta2.Child(to+"."+name, key))
	}
	for key, value := range spec {
		if _, twice := provider[key]; twice {
			c.addProblem(v1beta2.Child(hostPath+"."+name, key), "remove one of them", "is also in spec.metadata.%s", name)
		}
		out[key] = value
	}
	return out
}

// newVersions returns the versions of a worker. The whole control plane has the version of the Cluster.
func (c *converter) newVersions(spec MachineSpec, to string, isMaster bool, version string) v1beta2.HostVersions {
	v := spec.Versions
	if isMaster {
		for _, field := range []struct{ name, value string }{{"kubelet", v.Kubelet}, {"controlPlane", v.ControlPlane}} {
			if field.value != "" && plainVersion(field.value) != plainVersion(version) {
				c.addProblem("spec.versions."+field.name, "remove it; spec.kubernetesVersion of the Cluster upgrades them all",
					"%s is not the version of the Cluster, %s", field.value, version)
			}
		}
		if v.ContainerRuntime != nil {
			c.addProblem("spec.versions.containerRuntime", "remove it",
				"a control-plane host has no containerd version of its own")
		}
		return v1beta2.HostVersions{}
	}
	out := v1beta2.HostVersions{Kubernetes: v.Kubelet}
	c.move("spec.versions", to+".versions")
	c.move("spec.versions.kubelet", to+".versions.kubernetes")
	if r := v.ContainerRuntime; r != nil {
		if r.Name != runtimeName {
			c.addProblem("spec.versions.containerRuntime.name", "the container runtime is containerd",
				"%q is not supported", r.Name)
		}
		out.Containerd = r.Version
		c.move("spec.versions.containerRuntime.version", to+".versions.containerd")
	}
	return out
}

// runtimeName is the name of the container runtime.
const runtimeName = "containerd"

func plainVersion(v string) string { return strings.TrimPrefix(v, "v") }

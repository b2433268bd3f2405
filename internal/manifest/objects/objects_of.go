package objects

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/api/kubeone/v1beta2"
)

// Of returns the Cluster and the Machines of a manifest with defaults. It does not change the manifest.
func Of(m *v1beta2.KubeOneCluster) (Objects, error) {
	value, err := Clone(m)
	if err != nil {
		return Objects{}, err
	}
	apiVersion := v1alpha1.GroupVersion().String()
	out := Objects{Cluster: Cluster{
		APIVersion: apiVersion, Kind: "Cluster", Metadata: Metadata{Name: m.Name, Namespace: Namespace},
		Spec: ClusterSpec{ClusterConfiguration: newConfiguration(m), ProviderSpec: ClusterProviderSpec{Value: *value}},
	}}
	removeMovedFields(&out.Cluster.Spec.ProviderSpec.Value)
	names := map[string]bool{}
	for _, list := range []struct {
		hosts []v1beta2.HostConfig
		role  v1alpha1.MachineRole
	}{{m.ControlPlane.Hosts, v1alpha1.MasterRole}, {m.StaticWorkers.Hosts, v1alpha1.NodeRole}} {
		for i := range list.hosts {
			machine := newMachine(list.hosts[i], list.role)
			machine.APIVersion, machine.Kind = apiVersion, "Machine"
			machine.Metadata = Metadata{Name: uniqueName(machineName(list.hosts[i]), names), Namespace: Namespace}
			out.Machines = append(out.Machines, machine)
		}
	}
	out.Others, err = MachineDeployments(m)
	return out, err
}

// Clone returns a deep copy of a manifest.
func Clone(m *v1beta2.KubeOneCluster) (*v1beta2.KubeOneCluster, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("copy the manifest: %w", err)
	}
	out := &v1beta2.KubeOneCluster{}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("copy the manifest: %w", err)
	}
	return out, nil
}

// Documents returns the objects as JSON values, without empty fields: first the Cluster.
func (o Objects) Documents() ([]map[string]any, error) {
	cluster, err := newDocument(o.Cluster)
	if err != nil {
		return nil, err
	}
	spec, _ := cluster["spec"].(map[string]any)
	provider, _ := spec["providerSpec"].(map[string]any)
	value, _ := provider["value"].(map[string]any)
	for _, name := range []string{"name", "versions", "controlPlane"} { // required in a manifest, and empty here
		delete(value, name)
	}
	out := []map[string]any{cluster}
	for _, m := range o.Machines {
		machine, err := newDocument(m)
		if err != nil {
			return nil, err
		}
		out = append(out, machine)
	}
	return append(out, o.Others...), nil
}

// ManifestDocument returns a manifest as a JSON value.
func ManifestDocument(m *v1beta2.KubeOneCluster) (map[string]any, error) { return newDocument(m) }

// InexpressibleError returns an error that names objects which a manifest cannot express.
func InexpressibleError(all []map[string]any) error {
	var names []string
	for _, o := range all {
		metadata, _ := o["metadata"].(map[string]any)
		names = append(names, fmt.Sprintf("%v %v", o["kind"], metadata["name"]))
	}
	return fmt.Errorf("a manifest cannot express these objects: %s", strings.Join(names, ", "))
}

func newDocument(object any) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write an object: %w", err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("write an object: %w", err)
	}
	return out, nil
}

// removeMovedFields removes the fields that the Cluster and its Machines have, and structs that are then empty.
func removeMovedFields(value *v1beta2.KubeOneCluster) {
	for _, f := range movedFields(value) {
		f.value.SetZero()
	}
	if r := value.RegistryConfiguration; r != nil && *r == (v1beta2.RegistryConfiguration{}) {
		value.RegistryConfiguration = nil
	}
	if dns := value.Features.CoreDNS; dns != nil && *dns == (v1beta2.CoreDNS{}) {
		value.Features.CoreDNS = nil
	}
}

func newConfiguration(m *v1beta2.KubeOneCluster) v1alpha1.ClusterConfiguration {
	n := m.ClusterNetwork
	out := v1alpha1.ClusterConfiguration{
		KubernetesVersion:    m.Versions.Kubernetes,
		ControlPlaneEndpoint: endpointText(m.APIEndpoint),
		ClusterNetwork: v1alpha1.ClusterNetwork{
			Pods:          newRanges(n.PodSubnet, n.PodSubnetIPv6),
			Services:      newRanges(n.ServiceSubnet, n.ServiceSubnetIPv6),
			ServiceDomain: n.ServiceDomainName,
		},
		APIServer:                   v1alpha1.APIServer{CertSANs: m.APIEndpoint.AlternativeNames},
		CertificateValidityPeriod:   m.CertificateAuthority.CertificateValidityPeriod,
		CACertificateValidityPeriod: m.CertificateAuthority.CACertificateValidityPeriod,
	}
	if n.KubeProxy != nil {
		out.Proxy.Disabled = n.KubeProxy.SkipInstallation
	}
	if r := m.RegistryConfiguration; r != nil {
		out.ImageRepository = r.OverwriteRegistry
	}
	if dns := m.Features.CoreDNS; dns != nil {
		out.DNS.ImageRepository = dns.ImageRepository
	}
	if components := m.ControlPlaneComponents; components != nil {
		out.APIServer.ExtraArgs = newArgs(components.APIServer)
		out.ControllerManager.ExtraArgs = newArgs(components.ControllerManager)
		out.Scheduler.ExtraArgs = newArgs(components.Scheduler)
		out.Etcd.Local = newLocalEtcd(components.Etcd)
	}
	return out
}

// endpointText returns HOST:PORT; "" without a host.
func endpointText(e v1beta2.APIEndpoint) string {
	if e.Host == "" {
		return ""
	}
	return net.JoinHostPort(e.Host, strconv.Itoa(cmp.Or(e.Port, v1beta2.DefaultAPIPort)))
}

func newRanges(blocks ...string) v1alpha1.NetworkRanges {
	return v1alpha1.NetworkRanges{CIDRBlocks: slices.DeleteFunc(blocks, func(block string) bool { return block == "" })}
}

// newArgs returns the flags of a component by name. Feature gates are a flag, too.
func newArgs(config *v1beta2.ControlPlaneComponentConfig) []v1alpha1.Arg {
	if config == nil {
		return nil
	}
	var out []v1alpha1.Arg
	for _, name := range slices.Sorted(maps.Keys(config.Flags)) {
		out = append(out, v1alpha1.Arg{Name: name, Value: config.Flags[name]})
	}
	var gates []string
	for _, name := range slices.Sorted(maps.Keys(config.FeatureGates)) {
		gates = append(gates, fmt.Sprintf("%s=%t", name, config.FeatureGates[name]))
	}
	if len(gates) > 0 {
		out = append(out, v1alpha1.Arg{Name: featureGatesFlag, Value: strings.Join(gates, ",")})
	}
	return out
}

func newLocalEtcd(config *v1beta2.EtcdConfig) *v1alpha1.LocalEtcd {
	if config == nil || *config == (v1beta2.EtcdConfig{}) {
		return nil
	}
	out := &v1alpha1.LocalEtcd{}
	add := func(name, value string) {
		if value != "" {
			out.ExtraArgs = append(out.ExtraArgs, v1alpha1.Arg{Name: name, Value: value})
		}
	}
	if config.QuotaBackendBytes != 0 {
		add(quotaFlag, strconv.FormatInt(config.QuotaBackendBytes, 10))
	}
	add(compactionMode, config.AutoCompactionMode)
	add(compactionFlag, config.AutoCompactionRetention)
	return out
}

// newMachine returns the Machine of a host. What the API refuses in the spec of a Machine stays with its provider.
func newMachine(host v1beta2.HostConfig, role v1alpha1.MachineRole) Machine {
	spec := MachineSpec{Roles: []v1alpha1.MachineRole{role}, Versions: v1alpha1.MachineVersionInfo{
		Kubelet: host.Versions.Kubernetes,
	}}
	if version := host.Versions.Containerd; version != "" {
		spec.Versions.ContainerRuntime = &v1alpha1.ContainerRuntimeInfo{Name: runtimeName, Version: version}
	}
	host.Versions = v1beta2.HostVersions{}
	spec.Metadata.Labels, host.Labels = splitMetadata(host.Labels, acceptsLabel)
	spec.Metadata.Annotations, host.Annotations = splitMetadata(host.Annotations, acceptsAnnotation)
	taints := host.Taints
	if role == v1alpha1.MasterRole {
		if i := slices.Index(taints, controlPlaneTaint()); i >= 0 {
			taints = slices.Delete(slices.Clone(taints), i, i+1)
		} else if taints != nil {
			spec.Roles = append(spec.Roles, v1alpha1.NodeRole)
		}
	}
	host.Taints = nil
	for _, taint := range taints {
		if acceptsTaint(taint) {
			spec.Taints = append(spec.Taints, taint)
		} else {
			host.Taints = append(host.Taints, taint)
		}
	}
	spec.ProviderSpec.Value = MachineProvider{CloudProvider: v1alpha1.ProviderStatic, CloudProviderSpec: host}
	return Machine{Spec: spec}
}

// splitMetadata returns the entries that a Machine's spec can have, and the others.
func splitMetadata(all map[string]string, accepts func(key, value string) bool) (spec, provider map[string]string) {
	for key, value := range all {
		target := &provider
		if accepts(key, value) {
			target = &spec
		}
		if *target == nil {
			*target = map[string]string{}
		}
		(*target)[key] = value
	}
	return spec, provider
}

func acceptsLabel(key, value string) bool {
	return !v1alpha1.IsReservedKey(key) && len(validation.IsQualifiedName(key)) == 0 &&
		len(validation.IsValidLabelValue(value)) == 0
}

// maxAnnotation is the maximum length of an annotation's value in the spec of a Machine.
const maxAnnotation = 4096

func acceptsAnnotation(key, value string) bool {
	return !v1alpha1.IsReservedKey(key) && len(validation.IsQualifiedName(key)) == 0 && len(value) <= maxAnnotation
}

func acceptsTaint(taint v1beta2.Taint) bool {
	return !v1alpha1.IsReservedTaint(taint.Key) && len(validation.IsQualifiedName(taint.Key)) == 0
}

// machineName returns a name for the Machine of a host: the name of its Node, if the manifest has one, or its address.
func machineName(host v1beta2.HostConfig) string {
	name := strings.ToLower(cmp.Or(host.Hostname, "host-"+strings.NewReplacer(":", "-", ".", "-").Replace(
		cmp.Or(host.PublicAddress, host.PrivateAddress))))
	return strings.Trim(name, "-.")
}

// uniqueName returns the name, with a number if it is taken, and takes it.
func uniqueName(name string, taken map[string]bool) string {
	out := name
	for n := 2; taken[out]; n++ {
		out = fmt.Sprintf("%s-%d", name, n)
	}
	taken[out] = true
	return out
}

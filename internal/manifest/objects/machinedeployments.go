package objects

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strconv"

	"kubeone/api/kubeone/v1beta2"
)

// workersetLabel selects the Machines of a MachineDeployment from a manifest.
const workersetLabel = "workerset"

// MachineDeployments returns the dynamicWorkers as MachineDeployment objects. Like those from KubeOne, they are in
// kube-system and select their Machines by the label workerset.
func MachineDeployments(c *v1beta2.KubeOneCluster) ([]map[string]any, error) {
	var out []map[string]any
	for i := range c.DynamicWorkers {
		d, err := newMachineDeployment(c, &c.DynamicWorkers[i])
		if err != nil {
			return nil, fmt.Errorf("dynamicWorkers %q: %w", c.DynamicWorkers[i].Name, err)
		}
		out = append(out, d)
	}
	return out, nil
}

func newMachineDeployment(c *v1beta2.KubeOneCluster, w *v1beta2.DynamicWorkerConfig) (map[string]any, error) {
	provider := w.ProviderSpec
	if c.CloudProvider.None != nil {
		provider = provider.ForExistingHosts()
	}
	value, err := newProviderValue(c, provider)
	if err != nil {
		return nil, err
	}
	const namespace = Namespace
	set := map[string]string{workersetLabel: w.Name}
	labels, kubelet := mergeMaps(w.ProviderSpec.Labels, set), kubeletAnnotations(c)
	surge, unavailable := 1, 0
	if provider.Network != nil { // the addresses are fixed, so there is none for an extra machine
		surge, unavailable = 0, 1
	}
	spec := map[string]any{
		"metadata":     withoutEmpty(map[string]any{"labels": labels, "annotations": w.ProviderSpec.NodeAnnotations}),
		"versions":     map[string]any{"kubelet": c.Versions.Kubernetes},
		"providerSpec": map[string]any{"value": value},
	}
	if len(w.ProviderSpec.Taints) > 0 {
		spec["taints"] = w.ProviderSpec.Taints
	}
	out := map[string]any{
		"apiVersion": "cluster.k8s.io/v1alpha1",
		"kind":       "MachineDeployment",
		"metadata": withoutEmpty(map[string]any{
			"name": w.Name, "namespace": namespace, "annotations": mergeMaps(w.ProviderSpec.Annotations, kubelet),
		}),
		"spec": map[string]any{
			"minReadySeconds": 0,
			"paused":          false,
			"selector":        map[string]any{"matchLabels": set},
			"strategy": map[string]any{
				"type":          "RollingUpdate",
				"rollingUpdate": map[string]any{"maxSurge": surge, "maxUnavailable": unavailable},
			},
			"template": map[string]any{
				"metadata": withoutEmpty(map[string]any{
					"namespace": namespace, "labels": labels,
					"annotations": mergeMaps(w.ProviderSpec.MachineObjectAnnotations, kubelet),
				}),
				"spec": spec,
			},
		},
	}
	if w.Replicas != nil { // else the API sets it to 1
		out["spec"].(map[string]any)["replicas"] = *w.Replicas
	}
	return out, nil
}

// withoutEmpty removes the empty string maps from fields, which it changes, and returns it.
func withoutEmpty(fields map[string]any) map[string]any {
	maps.DeleteFunc(fields, func(_ string, value any) bool {
		m, ok := value.(map[string]string)
		return ok && len(m) == 0
	})
	return fields
}

func mergeMaps(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}

// newProviderValue returns the part of the providerSpec that the machine provider reads.
func newProviderValue(c *v1beta2.KubeOneCluster, p v1beta2.ProviderSpec) (map[string]any, error) {
	p.Annotations, p.MachineAnnotations, p.NodeAnnotations, p.MachineObjectAnnotations = nil, nil, nil, nil
	p.Labels, p.Taints = nil, nil
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var value map[string]any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	value["cloudProvider"] = machineProvider(c.CloudProvider)
	if c.CloudProvider.AWS != nil {
		spec, _ := value["cloudProviderSpec"].(map[string]any)
		if spec == nil {
			spec = map[string]any{}
		}
		tags, _ := spec["tags"].(map[string]any)
		if tags == nil {
			tags = map[string]any{}
		}
		tags[clusterTag(c.Name)] = "shared"
		spec["tags"], value["cloudProviderSpec"] = tags, spec
	}
	return value, nil
}

// clusterTag returns the tag that identifies the machines of a cluster in AWS.
func clusterTag(cluster string) string { return "kubernetes.io/cluster/" + cluster }

// removeClusterTag removes the tag from the settings of a machine.
func removeClusterTag(spec v1beta2.Raw, cluster string) {
	tags, _ := spec["tags"].(map[string]any)
	delete(tags, clusterTag(cluster))
	if len(tags) == 0 {
		delete(spec, "tags")
	}
}

// machineProvider returns the name of the cloud provider in Machines. It is "ssh" if the cluster has no cloud provider,
// because Machines then use existing hosts.
func machineProvider(p v1beta2.CloudProviderSpec) string {
	for name, set := range map[string]bool{
		"aws": p.AWS != nil, "azure": p.Azure != nil, "digitalocean": p.DigitalOcean != nil, "gce": p.GCE != nil,
		"hetzner": p.Hetzner != nil, "kubevirt": p.Kubevirt != nil, "nutanix": p.Nutanix != nil,
		"openstack": p.Openstack != nil, "equinixmetal": p.EquinixMetal != nil,
		"vmware-cloud-director": p.VMwareCloudDirector != nil, "vsphere": p.Vsphere != nil,
	} {
		if set {
			return name
		}
	}
	return "ssh"
}

// kubeletAnnotations returns annotations for the kubelet settings that differ from the defaults.
func kubeletAnnotations(c *v1beta2.KubeOneCluster) map[string]string {
	const prefix = "v1.kubelet-config.machine-controller.kubermatic.io/"
	out := map[string]string{}
	size := cmp.Or(c.LoggingConfig.ContainerLogMaxSize, v1beta2.DefaultLogMaxSize)
	if size != v1beta2.DefaultLogMaxSize {
		out[prefix+"ContainerLogMaxSize"] = size
	}
	files := cmp.Or(c.LoggingConfig.ContainerLogMaxFiles, v1beta2.DefaultLogMaxFiles)
	if files != v1beta2.DefaultLogMaxFiles {
		out[prefix+"ContainerLogMaxFiles"] = strconv.Itoa(files)
	}
	return out
}

// dynamicWorkerOf returns the dynamicWorkers item whose MachineDeployment is the object; false if there is none.
func dynamicWorkerOf(c *v1beta2.KubeOneCluster, object map[string]any) (v1beta2.DynamicWorkerConfig, bool) {
	text, err := json.Marshal(object)
	if err != nil {
		return v1beta2.DynamicWorkerConfig{}, false
	}
	var d struct {
		Kind     string
		Metadata Metadata
		Spec     struct {
			Replicas *int
			Template struct {
				Metadata Metadata
				Spec     struct {
					Metadata     NodeMetadata
					Taints       []v1beta2.Taint
					ProviderSpec struct{ Value v1beta2.ProviderSpec }
				}
			}
		}
	}
	if err := json.Unmarshal(text, &d); err != nil || d.Kind != "MachineDeployment" {
		return v1beta2.DynamicWorkerConfig{}, false
	}
	worker := v1beta2.DynamicWorkerConfig{
		Name: d.Metadata.Name, Replicas: d.Spec.Replicas, ProviderSpec: d.Spec.Template.Spec.ProviderSpec.Value,
	}
	kubelet := kubeletAnnotations(c)
	p := &worker.ProviderSpec
	p.Annotations = withoutKeys(d.Metadata.Annotations, kubelet)
	p.MachineObjectAnnotations = withoutKeys(d.Spec.Template.Metadata.Annotations, kubelet)
	p.NodeAnnotations = d.Spec.Template.Spec.Metadata.Annotations
	p.Labels = withoutKeys(d.Spec.Template.Spec.Metadata.Labels, map[string]string{workersetLabel: ""})
	p.Taints = d.Spec.Template.Spec.Taints
	if c.CloudProvider.AWS != nil {
		removeClusterTag(p.CloudProviderSpec, c.Name)
	}
	back, err := newMachineDeployment(c, &worker)
	return worker, err == nil && isSameJSON(back, text)
}

// withoutKeys returns the entries of a map whose keys are not in another one; nil if there are none.
func withoutKeys(all, without map[string]string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(key, _ string) bool {
		_, ok := without[key]
		return ok
	})
	if len(out) == 0 {
		return nil
	}
	return out
}

// isSameJSON reports whether a value is the same as JSON text.
func isSameJSON(value any, text []byte) bool {
	var a, b any
	ours, err := json.Marshal(value)
	if err != nil || json.Unmarshal(ours, &a) != nil || json.Unmarshal(text, &b) != nil {
		return false
	}
	return reflect.DeepEqual(a, b)
}

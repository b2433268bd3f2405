package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go.yaml.in/yaml/v3"
	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/model/desired"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// newMachineDeploymentObjects returns the dynamicWorkers as MachineDeployment objects. Like those from KubeOne, they
// are in kube-system and select their Machines by the label workerset.
func newMachineDeploymentObjects(c *v1beta2.KubeOneCluster) ([]map[string]any, error) {
	var out []map[string]any
	for i := range c.DynamicWorkers {
		d, err := newMachineDeploymentObject(c, &c.DynamicWorkers[i])
		if err != nil {
			return nil, fmt.Errorf("dynamicWorkers %q: %w", c.DynamicWorkers[i].Name, err)
		}
		out = append(out, d)
	}
	return out, nil
}

// newMachineDeployments encodes the objects for the other stages.
func newMachineDeployments(objects []map[string]any) ([]desired.MachineDeployment, error) {
	var out []desired.MachineDeployment
	for _, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		metadata, _ := o["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		name, _ := metadata["name"].(string)
		out = append(out, desired.MachineDeployment{Namespace: namespace, Name: name, Object: string(text)})
	}
	return out, nil
}

// controllersSetting returns whether the Machine controllers should run in the cluster, or nil if the manifest does not
// say. Without machineController.deploy, they run if there are dynamicWorkers. For a cloud provider, it always returns
// nil.
func controllersSetting(c *v1beta2.KubeOneCluster) *bool {
	switch {
	case c.CloudProvider.None == nil:
		return nil
	case c.MachineController != nil && c.MachineController.Deploy != nil:
		return c.MachineController.Deploy
	case len(c.DynamicWorkers) > 0:
		yes := true
		return &yes
	}
	return nil
}

func newMachineDeploymentObject(c *v1beta2.KubeOneCluster, w *v1beta2.DynamicWorkerConfig) (map[string]any, error) {
	provider := w.ProviderSpec
	if c.CloudProvider.None != nil {
		provider = provider.ForExistingHosts()
	}
	value, err := newProviderValue(c, provider)
	if err != nil {
		return nil, err
	}
	const namespace = "kube-system"
	set := map[string]string{"workerset": w.Name}
	labels, kubelet := mergeMaps(w.ProviderSpec.Labels, set), kubeletAnnotations(c)
	surge, unavailable := 1, 0
	if provider.Network != nil { // the addresses are fixed, so there is none for an extra machine
		surge, unavailable = 0, 1
	}
	replicas := 1
	if w.Replicas != nil {
		replicas = *w.Replicas
	}
	spec := map[string]any{
		"metadata":     withoutEmpty(map[string]any{"labels": labels, "annotations": w.ProviderSpec.NodeAnnotations}),
		"versions":     map[string]any{"kubelet": c.Versions.Kubernetes},
		"providerSpec": map[string]any{"value": value},
	}
	if len(w.ProviderSpec.Taints) > 0 {
		spec["taints"] = w.ProviderSpec.Taints
	}
	return map[string]any{
		"apiVersion": "cluster.k8s.io/v1alpha1",
		"kind":       "MachineDeployment",
		"metadata": withoutEmpty(map[string]any{
			"name": w.Name, "namespace": namespace, "annotations": mergeMaps(w.ProviderSpec.Annotations, kubelet),
		}),
		"spec": map[string]any{
			"replicas":        replicas,
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
	}, nil
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
	if c.CloudProvider.AWS != nil { // AWS finds the machines of a cluster by this tag
		spec, _ := value["cloudProviderSpec"].(map[string]any)
		if spec == nil {
			spec = map[string]any{}
		}
		tags, _ := spec["tags"].(map[string]any)
		if tags == nil {
			tags = map[string]any{}
		}
		tags["kubernetes.io/cluster/"+c.Name] = "shared"
		spec["tags"], value["cloudProviderSpec"] = tags, spec
	}
	return value, nil
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

// parseJSON parses JSON into YAML nodes. The YAML parser is not suitable, because it does not accept all JSON escapes
// and its messages would refer to YAML.
func parseJSON(data []byte) (*yaml.Node, *jsonError) {
	lines := newLines(data)
	var value json.RawMessage
	if err := json.Unmarshal(data, &value); err != nil {
		at := len(data)
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at = int(syntax.Offset)
		}
		line, column := lines.lineAndColumn(max(at-1, 0))
		return nil, &jsonError{line: line, column: column, err: err}
	}
	r := &jsonReader{data: data, dec: json.NewDecoder(bytes.NewReader(data)), lines: lines}
	r.dec.UseNumber()
	node, err := r.readNode(0)
	if err != nil {
		return nil, &jsonError{line: 1, column: 1, err: err}
	}
	return node, nil
}

// jsonError is a syntax error in JSON, and its position.
type jsonError struct {
	line, column int
	err          error
}

type jsonReader struct {
	data  []byte
	dec   *json.Decoder
	lines lines
}

// readNode reads the next value.
func (r *jsonReader) readNode(depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, errors.New("is nested too deeply")
	}
	start := r.tokenStart()
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{}
	n.Line, n.Column = r.lines.lineAndColumn(start)
	switch t := token.(type) {
	case json.Delim:
		return n, r.readChildren(n, t, depth)
	case string:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!str", t
	case bool:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!bool", fmt.Sprint(t)
	case nil:
		n.Kind, n.Tag = yaml.ScalarNode, "!!null"
	case json.Number:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!int", t.String()
		if strings.ContainsAny(t.String(), ".eE") {
			n.Tag = "!!float"
		}
	}
	return n, nil
}

// readChildren reads the elements of an object or array and its closing delimiter.
func (r *jsonReader) readChildren(n *yaml.Node, open json.Delim, depth int) error {
	n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	if open == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	for r.dec.More() {
		child, err := r.readNode(depth + 1)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, child)
	}
	_, err := r.dec.Token()
	return err
}

// tokenStart returns the offset of the next token.
func (r *jsonReader) tokenStart() int {
	at := int(r.dec.InputOffset())
	for at < len(r.data) && slices.Contains([]byte(" \t\r\n,:"), r.data[at]) {
		at++
	}
	return at
}

// lines holds the offsets at which lines begin.
type lines []int

func newLines(data []byte) lines {
	l := lines{0}
	for i, b := range data {
		if b == '\n' {
			l = append(l, i+1)
		}
	}
	return l
}

// lineAndColumn returns the line and column of an offset, both from 1.
func (l lines) lineAndColumn(offset int) (line, column int) {
	line = sort.SearchInts(l, offset+1)
	return line, offset - l[line-1] + 1
}

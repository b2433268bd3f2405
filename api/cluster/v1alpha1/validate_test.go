package v1alpha1

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func TestWhatAMachineMayGiveItsNode(t *testing.T) {
	t.Parallel()
	label := func(key, value string) MachineSpec {
		return MachineSpec{ObjectMeta: ObjectMeta{Labels: map[string]string{key: value}}}
	}
	annotation := func(key, value string) MachineSpec {
		return MachineSpec{ObjectMeta: ObjectMeta{Annotations: map[string]string{key: value}}}
	}
	taint := func(key, value string, effect corev1.TaintEffect) MachineSpec {
		return MachineSpec{Taints: []Taint{{Key: key, Value: value, Effect: effect}}}
	}
	long := strings.Repeat("a", 64)
	for name, c := range map[string]struct {
		spec MachineSpec
		says string // "" if it is valid
	}{
		"nothing":                    {MachineSpec{}, ""},
		"a label":                    {label("example.com/pool", "a.b_c-d"), ""},
		"an empty label":             {label("gpu", ""), ""},
		"a zone":                     {label("topology.kubernetes.io/zone", "a"), ""},
		"a label kept from kubelets": {label("node-restriction.kubernetes.io/team", "a"), ""},
		"no load balancer":           {label("node.kubernetes.io/exclude-from-external-load-balancers", "true"), ""},
		"the control plane's role": {label("node-role.kubernetes.io/control-plane", ""),
			"node-role.kubernetes.io/control-plane"},
		"another role":          {label("node-role.kubernetes.io/worker", ""), "node-role.kubernetes.io/worker"},
		"the owner":             {label("machine-controller/owned-by", "x"), "machine-controller/owned-by"},
		"a hostname":            {label("kubernetes.io/hostname", "cp-1"), "kubernetes.io/hostname"},
		"an architecture":       {label("beta.kubernetes.io/arch", "x"), "beta.kubernetes.io/arch"},
		"a label's key":         {label("a b", ""), `"a b" is not a label's key`},
		"a label's long key":    {label(long, ""), long},
		"a label's long domain": {label(strings.Repeat("a.", 127)+"a/b", ""), "is not a label's key"},
		"a label's value":       {label("a", "b c"), `"b c" of "a"`},
		"a label's long value":  {label("a", long), long},
		"an annotation":         {annotation("Example.com/a", "any text: {}\n"), ""},
		"a cordon of ours":      {annotation("kubeone.k8c.io/cordoned-by", "x"), "kubeone.k8c.io/cordoned-by"},
		"another Machine":       {annotation("cluster.k8s.io/machine", "a/b"), "cluster.k8s.io/machine"},
		"kubeadm's socket":      {annotation("kubeadm.alpha.kubernetes.io/cri-socket", "x"), "cri-socket"},
		"an annotation's key":   {annotation("a/b/c", ""), `"a/b/c" is not an annotation's key`},
		"too long annotations":  {annotation("a", strings.Repeat("x", mostAnnotations)), "256 KiB"},
		"a taint":               {taint("dedicated", "gpu", "NoExecute"), ""},
		"a taint of the control plane": {taint("node-role.kubernetes.io/control-plane", "", "NoSchedule"),
			"node-role.kubernetes.io/control-plane"},
		"a taint of Kubernetes": {taint("node.kubernetes.io/unreachable", "", "NoExecute"),
			"node.kubernetes.io/unreachable"},
		"a taint of a cloud": {taint("node.cloudprovider.kubernetes.io/uninitialized", "", "NoSchedule"),
			"uninitialized"},
		"a taint's key":    {taint("", "", "NoSchedule"), "is not a taint's key"},
		"a taint's value":  {taint("a", "?", "NoSchedule"), `"?" of "a"`},
		"a taint's effect": {taint("a", "", "Never"), `"Never" of "a"`},
	} {
		err := c.spec.ValidateNodeMetadata()
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		whole := MachineTemplateSpec{Spec: c.spec}
		if got := whole.Validate(); (got == nil) != (err == nil) {
			t.Errorf("%s: its template says %v", name, got)
		}
	}
	own := MachineTemplateSpec{ObjectMeta: ObjectMeta{Labels: map[string]string{"a": "b c"}}}
	if err := own.Validate(); err == nil || !strings.Contains(err.Error(), `metadata.labels: the value "b c"`) {
		t.Errorf("a Machine's own label: %v", err)
	}
}

// The API server and kubeone refuse the same keys.
func TestTheSchemaRefusesTheSameKeys(t *testing.T) {
	t.Parallel()
	keys := []string{
		"pool", "example.com/pool", "topology.kubernetes.io/zone", "kubernetes.io/hostname", "kubernetes.io/os",
		"kubernetes.io/hostnames", "xkubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/hostname",
		"node-role.kubernetes.io/x", "node-role.kubernetes.io", "xnode-role.kubernetes.io/x", "machine-controller/a",
		"machine-controllers/a", "kubeone.k8c.io/a", "cluster.k8s.io/a", "cluster-k8s-io/a", "x.cluster.k8s.io/a",
		"kubeadm.alpha.kubernetes.io/cri-socket", "node.kubernetes.io/a", "node-restriction.kubernetes.io/a",
		"node.cloudprovider.kubernetes.io/a", "nodes.kubernetes.io/a",
	}
	rule := regexp.MustCompile(`exists\((?:key|taint), (?:key|taint\.key)\.matches\('(.*)'\)\)$`)
	files, err := filepath.Glob("crds/*machine*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			t.Fatal(err)
		}
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		if template, ok := spec.Properties["template"]; ok {
			spec = template.Properties["spec"]
		}
		found := 0
		for _, v := range spec.XValidations {
			m := rule.FindStringSubmatch(v.Rule)
			if m == nil {
				continue
			}
			found++
			refuses, expect := regexp.MustCompile(m[1]), IsReservedKey
			if v.FieldPath == ".taints" {
				expect = IsReservedTaint
			}
			for _, key := range keys {
				if refuses.MatchString(key) != expect(key) {
					t.Errorf("%s, %s: %s is refused: %t", file, v.FieldPath, key, !expect(key))
				}
			}
		}
		if found != 3 {
			t.Errorf("%s: %d rules, want those of labels, annotations and taints", file, found)
		}
	}
}

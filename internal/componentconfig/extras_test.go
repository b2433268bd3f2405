package componentconfig

import (
	"kubeone/internal/model/desired"
	"kubeone/internal/testutil/configtest"
	"strings"
	"testing"
)

func TestComponentsAreToldOfTheirExtras(t *testing.T) {
	t.Parallel()
	in := input("cp-1")
	in.Want.Extras = configtest.Extras()
	text, err := yamlDocuments(clusterConfiguration(in.Want))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"value: NodeRestriction,Always,Zed\n",
		"- name: admission-control-config-file\n    value: /etc/kubernetes/kubeone/kube-apiserver/admission-",
		"- name: audit-policy-file\n    value: /etc/kubernetes/kubeone/kube-apiserver/policy-",
		"hostPath: /etc/kubernetes/kubeone/kube-apiserver\n    mountPath: /etc/kubernetes/kubeone/kube-apiserver\n" +
			"    name: kubeone\n    pathType: Directory\n    readOnly: true\n",
		"hostPath: /var/log/audit\n    mountPath: /var/log/audit\n    name: kubeone-0\n" +
			"    pathType: DirectoryOrCreate\n",
		"scheduler:\n  extraArgs:\n  - name: profiling\n    value: \"false\"\n  - name: v\n    value: \"4\"\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("lacks %q:\n%s", part, text)
		}
	}
}

// Other content changes the digest of the control plane's components, and no other.
func TestExtrasAreInTheDigestOfComponents(t *testing.T) {
	t.Parallel()
	before, after := input("cp-1"), input("cp-1")
	before.Want.Extras, after.Want.Extras = configtest.Extras(), configtest.Extras()
	after.Want.Extras[0].Files[0] = desired.NewComponentFile(desired.APIServer, "policy.yaml", "kind: Other")
	after.Want.Extras[0].Flags = map[string]string{"audit-policy-file": after.Want.Extras[0].Files[0].Path}
	was, is := digestsOf(before), digestsOf(after)
	for name := range was {
		pods := name == desired.ComponentsDigest
		if (was[name] != is[name]) != pods {
			t.Errorf("%s: differs %t", name, was[name] != is[name])
		}
	}
}

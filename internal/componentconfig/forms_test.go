package componentconfig

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The displayed settings are those of kubeadm's patch, and the flags are those of its configuration.
func TestSettingsThatAreShownAreThoseThatKubeadmGets(t *testing.T) {
	t.Parallel()
	in := input("cp-1")
	patch := kubeletPatch(in)
	for name := range KubeletSettings(in) {
		if !strings.Contains(patch, "path: /"+name+"\n") {
			t.Errorf("%s is not in\n%s", name, patch)
		}
	}
	if len(ClusterKubeletSettings(in.Want)) != len(KubeletSettings(in)) {
		t.Error("the cluster's settings are others than the host's")
	}
	text, err := yamlDocuments(ClusterConfiguration(in.Want))
	if err != nil {
		t.Fatal(err)
	}
	for pod, flags := range Flags(in.Want) {
		for name, value := range flags {
			if !strings.Contains(text, "name: "+name+"\n") {
				t.Errorf("--%s=%s of %s is not in\n%s", name, value, pod, text)
			}
		}
	}
	if got := ComponentPatterns(); len(got) != 3 || !strings.HasSuffix(got[0], "/*") || len(ComponentFiles(in)) > 0 {
		t.Errorf("%q", got)
	}
}

// Settings that the manifest leaves to the kubelet are not in its configuration, whatever kubeadm has stored.
func TestUnsetKubeletSettingsAreRemoved(t *testing.T) {
	t.Parallel()
	in := input("cp-1")
	var patch []struct {
		Op, Path string
		Value    any
	}
	if err := yaml.UnmarshalStrict([]byte(kubeletPatch(in)), &patch); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{"maxPods": 9}
	for _, o := range patch {
		name := strings.TrimPrefix(o.Path, "/")
		_, found := got[name]
		switch {
		case o.Op == "add" && o.Value != nil:
			got[name] = o.Value
		case o.Op == "remove" && found:
			delete(got, name)
		default:
			t.Errorf("%+v on %v", o, got)
		}
	}
	for name, value := range KubeletSettings(in) {
		if _, found := got[name]; found != (value != nil) {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	if _, found := got["maxPods"]; found {
		t.Error("maxPods is the stored one")
	}
}

package componentconfig

import (
	"strings"
	"testing"
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

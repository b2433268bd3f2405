package script

import (
	"strings"
	"testing"

	"kubeone/internal/desired"
)

// What is shown beforehand as a host's files is what its stages write.
func TestFilesOfSettingsAreThoseThatAreWritten(t *testing.T) {
	t.Parallel()
	b, in := configured(t, "kubelet"), input("w-1")
	compared := 0
	for _, name := range []string{"containerd", "kubelet"} {
		for _, f := range SettingsFiles(in, name) {
			is := b.must("! [ -f '" + b.path(f.Path[1:]) + "' ] || cat '" + b.path(f.Path[1:]) + "'")
			is = strings.ReplaceAll(is, b.root, "")
			var want []string
			for line := range strings.Lines(strings.TrimRight(f.Content, "\n") + "\n") {
				if strings.HasPrefix(line, SandboxLine) {
					for written := range strings.Lines(is) {
						if strings.HasPrefix(written, SandboxLine) {
							line = written
						}
					}
				}
				want = append(want, line)
			}
			if got := strings.TrimRight(is, "\n"); got != strings.TrimRight(strings.Join(want, ""), "\n") {
				t.Errorf("%s is\n%s\nand is shown as\n%s", f.Path, is, f.Content)
			}
			compared++
		}
	}
	if compared < 6 || len(SettingsFiles(in, "kernel")) != 2 || SettingsFiles(in, desired.ComponentsDigest) != nil {
		t.Errorf("%d files", compared)
	}
}

// Settings that are shown are those of the patch that kubeadm gets, and flags are those of its configuration.
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
	text, err := documents(ClusterConfiguration(in.Want))
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

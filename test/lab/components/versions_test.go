package components

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/addons/network/flannel"
	"kubeone/internal/release"
)

func TestVersionsMatchKubeone(t *testing.T) {
	for _, minor := range release.Supported() {
		kubernetes := minor + ".1"
		want, err := release.VersionsFor(kubernetes)
		if err != nil {
			t.Fatal(err)
		}
		got := want
		got.Containerd, got.Runc, got.CNIPlugins = ContainerdVersion(kubernetes)[1:], RuncVersion[1:],
			CNIPluginsVersion[1:]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Kubernetes %s: internal/release wants (-), the lab builds (+):\n%s", minor, diff)
		}
	}
	plugin := flannel.Plugin{}
	if got := "v" + plugin.Binaries()[0].Version; got != FlannelCNIVersion {
		t.Errorf("flannel wants its CNI plugin %s, the lab builds %s", got, FlannelCNIVersion)
	}
	if got := plugin.Images()[0].Tag; got != FlannelVersion {
		t.Errorf("flannel wants its image %s, the lab builds %s", got, FlannelVersion)
	}
}

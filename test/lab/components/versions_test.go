package components

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/release"
)

func TestVersionsAreThoseThatTheProductAsksFor(t *testing.T) {
	for _, minor := range release.Supported() {
		kubernetes := minor + ".1"
		want, err := release.VersionsFor(kubernetes)
		if err != nil {
			t.Fatal(err)
		}
		got := want
		got.Containerd, got.Runc, got.CNIPlugins = ContainerdVersion(kubernetes)[1:], RuncVersion[1:], CNIPluginsVersion[1:]
		got.FlannelCNI, got.Flannel = FlannelCNIVersion[1:], FlannelVersion
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Kubernetes %s: internal/release wants (-), the lab builds (+):\n%s", minor, diff)
		}
	}
}

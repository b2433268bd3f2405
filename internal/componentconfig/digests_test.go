package componentconfig

import (
	"encoding/hex"
	"github.com/google/go-cmp/cmp"
	"kubeone/internal/model/desired"
	"kubeone/internal/testutil/configtest"
	"maps"
	"slices"
	"testing"
	"time"
)

func digestsOf(in Input) map[string]string { return Digests(in.Want, in.Host)[in.Host.ID] }

func TestDigestsAreNamed(t *testing.T) {
	t.Parallel()
	for host, want := range map[string][]string{
		"cp-1": {"components", "containerd", "firewall", "kernel", "kubelet", "network"},
		"w-1":  {"containerd", "firewall", "kernel", "kubelet"},
	} {
		digests := digestsOf(input(host))
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(digests))); diff != "" {
			t.Errorf("%s: %s", host, diff)
		}
		for name, sum := range digests {
			if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 {
				t.Errorf("%s: %s is %q", host, name, sum)
			}
		}
	}
}

// A difference must change exactly the named digests.
func TestDigestsDifferWithTheConfiguration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Input)
		differ []string
	}{
		"nothing":     {func(*Input) {}, nil},
		"the version": {func(in *Input) { in.Want.KubernetesVersion = "1.36.4" }, nil},
		"the images": {func(in *Input) {
			in.Want.Artifacts = map[string]desired.Artifacts{"amd64": configtest.Artifacts("other.example.com")}
		}, nil},
		"no images": {func(in *Input) { in.Want.Artifacts = nil }, nil},
		"one more host": {
			func(in *Input) { in.Want.ControlPlane = append(in.Want.ControlPlane, desired.Host{ID: "192.0.2.9"}) }, nil,
		},
		"a label": {func(in *Input) { in.Host.Labels = map[string]string{"a": "b"} }, nil},
		"how to upgrade": {func(in *Input) {
			in.Want.Upgrade = desired.Upgrade{
				MaxUnavailable: desired.Share{Percent: 50},
				Drain:          desired.Drain{Timeout: time.Hour},
			}
		}, nil},
		"how to back up": {func(in *Input) { in.Want.Backup = desired.Backup{Target: "/b", Schedule: time.Hour} }, nil},
		"the proxy":      {func(in *Input) { in.Want.Proxy.HTTP = "http://p" }, []string{"containerd"}},
		"a registry": {func(in *Input) {
			in.Want.Containerd.Registries = map[string]desired.Mirrored{"a.example": {Mirrors: []string{"b.example"}}}
		}, []string{"containerd"}},
		"the kubelet of all": {func(in *Input) { in.Want.Kubelet.MaxPods = ptr[int32](9) }, []string{"kubelet"}},
		"the kubelet of one": {func(in *Input) { in.Host.Kubelet.MaxPods = ptr[int32](9) }, []string{"kubelet"}},
		"log rotation":       {func(in *Input) { in.Want.Logging.MaxFiles = 9 }, []string{"kubelet"}},
		"a flag": {func(in *Input) { in.Want.Components.APIServer.Flags = map[string]string{"v": "4"} },
			[]string{"components"}},
		"another endpoint": {func(in *Input) { in.Want.Endpoint.Host = "other.example.com" },
			nil},
		"another API name": {func(in *Input) { in.Want.Endpoint.AlternativeNames = []string{"api.example.com"} },
			nil},
		"another IP family": {func(in *Input) { in.Want.Network = dualStack().Network },
			[]string{"components", "firewall", "kernel", "network"}},
		"etcd's size": {func(in *Input) { in.Want.Components.Etcd.QuotaBackendBytes = 1 },
			[]string{"components"}},
		"overwriteRegistry": {func(in *Input) { in.Want.Registry.Overwrite = "mirror.example.com" },
			[]string{"components"}},
		"where cluster DNS' image is": {func(in *Input) { in.Want.Network.DNS.Repository = "r.example.com" }, nil},
		"the pause image": {func(in *Input) { in.Want.Containerd.SandboxImage = "mine/pause:1" },
			[]string{"containerd"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := input("cp-1"), input("cp-1")
			c.change(&after)
			was, is := digestsOf(before), digestsOf(after)
			var differ []string
			for _, name := range slices.Sorted(maps.Keys(was)) {
				if was[name] != is[name] {
					differ = append(differ, name)
				}
			}
			if diff := cmp.Diff(c.differ, differ); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// kubeadm has its own tags for etcd and CoreDNS; those of the release must win.
func TestImagesOfTheReleaseAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		artifacts desired.Artifacts
		want      object
	}{
		"the release's own": {configtest.Artifacts("registry.k8s.io"), object{
			"etcd": object{"local": object{"imageRepository": "registry.k8s.io", "imageTag": "3.6.9-0"}},
			"dns":  object{"imageRepository": "registry.k8s.io/coredns", "imageTag": "v1.14.2"},
		}},
		"a registry with a port": {configtest.Artifacts("mirror:5000/k8s"), object{
			"etcd": object{"local": object{"imageRepository": "mirror:5000/k8s", "imageTag": "3.6.9-0"}},
			"dns":  object{"imageRepository": "mirror:5000/k8s/coredns", "imageTag": "v1.14.2"},
		}},
		"none known": {desired.Artifacts{}, object{"etcd": object{"local": object{}}}},
		"without a tag": {desired.Artifacts{Images: []desired.Image{{Name: "a/etcd"}}},
			object{"etcd": object{"local": object{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := withImages(object{"etcd": object{"local": object{}}}, c.artifacts)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheRepositoryOfDNSGoesBeforeThatOfAllImages(t *testing.T) {
	t.Parallel()
	want := input("cp-1").Want
	for _, c := range []struct{ overwrite, repository, dns string }{
		{"", "", ""}, {"all.example.com/k8s", "", "all.example.com/k8s/coredns"},
		{"", "r.example.com/dns", "r.example.com/dns"}, {"all.example.com/k8s", "r.example.com", "r.example.com"},
	} {
		want.Registry.Overwrite, want.Network.DNS.Repository = c.overwrite, c.repository
		dns, _ := clusterConfiguration(want)["dns"].(object)
		if got, _ := dns["imageRepository"].(string); got != c.dns {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

package components

import (
	"fmt"
	"runtime"
	"strings"
)

// kubernetesRecipe builds the programs of a Kubernetes version, given without a leading v. The flags set the version
// like the project's own build.
func kubernetesRecipe(version string) Recipe {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	var stamps []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for key, value := range map[string]string{
			"gitVersion":   "v" + version,
			"gitMajor":     major,
			"gitMinor":     minor,
			"gitTreeState": "clean",
		} {
			stamps = append(stamps, fmt.Sprintf("-X %s.%s=%s", pkg, key, value))
		}
	}
	packages := map[string]string{"agnhost": "k8s.io/kubernetes/test/images/agnhost"}
	for _, name := range append([]string{"kubeadm", "kubelet", "kubectl"}, kubernetesImages...) {
		packages[name] = "k8s.io/kubernetes/cmd/" + name
	}
	recipe := Recipe{
		Name: "kubernetes", Module: "k8s.io/kubernetes", Version: "v" + version, Packages: packages,
		LDFlags: strings.Join(sortWords(stamps), " "),
	}
	for _, name := range sortWords(keysOf(packages)) {
		// agnhost is published as an image only.
		if name != "agnhost" {
			recipe.Downloads = append(recipe.Downloads, kubernetesDownload(version, name))
		}
	}
	return recipe
}

func kubernetesDownload(version, program string) Download {
	url := "dl.k8s.io/release/v" + version + "/bin/linux/" + runtime.GOARCH + "/" + program
	return Download{URL: url, Checksum: url + ".sha256", Members: map[string]string{program: ""}}
}

// kubernetesImages are the programs of Kubernetes that are images.
var kubernetesImages = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"}

func etcdRecipe(version string) Recipe {
	return Recipe{
		Name: "etcd", Module: "go.etcd.io/etcd/server/v3", Version: version,
		Packages: map[string]string{
			"etcd":    "go.etcd.io/etcd/server/v3",
			"etcdctl": "go.etcd.io/etcd/etcdctl/v3",
			"etcdutl": "go.etcd.io/etcd/etcdutl/v3",
		},
		Also:      []string{"go.etcd.io/etcd/etcdctl/v3@" + version, "go.etcd.io/etcd/etcdutl/v3@" + version},
		Downloads: []Download{etcdDownload(version)},
	}
}

func etcdDownload(version string) Download {
	folder := "etcd-" + version + "-linux-" + runtime.GOARCH
	release := "github.com/etcd-io/etcd/releases/download/" + version + "/"
	return Download{
		URL: release + folder + ".tar.gz", Checksum: release + "SHA256SUMS",
		Members: map[string]string{
			"etcd": folder + "/etcd", "etcdctl": folder + "/etcdctl", "etcdutl": folder + "/etcdutl",
		},
	}
}

func coreDNSRecipe(version string) Recipe {
	const module = "github.com/coredns/coredns"
	return Recipe{
		Name: "coredns", Module: module, Version: version, Packages: map[string]string{"coredns": module},
		Downloads: []Download{coreDNSDownload(version)},
	}
}

func coreDNSDownload(version string) Download {
	url := "github.com/coredns/coredns/releases/download/" + version + "/coredns_" + strings.TrimPrefix(version, "v") +
		"_linux_" + runtime.GOARCH + ".tgz"
	return Download{URL: url, Checksum: url + ".sha256", Members: map[string]string{"coredns": "coredns"}}
}

func containerdRecipe(version string) Recipe {
	const module = "github.com/containerd/containerd/v2"
	packages := map[string]string{}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		packages[name] = module + "/cmd/" + name
	}
	return Recipe{
		Name: "containerd", Module: module, Version: version, Packages: packages, Tags: "no_btrfs no_zfs no_devmapper",
		LDFlags:   "-X " + module + "/version.Version=" + version,
		Downloads: []Download{containerdDownload(version)},
	}
}

func containerdDownload(version string) Download {
	url := "github.com/containerd/containerd/releases/download/" + version + "/containerd-" +
		strings.TrimPrefix(version, "v") + "-linux-" + runtime.GOARCH + ".tar.gz"
	members := map[string]string{}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		members[name] = "bin/" + name
	}
	return Download{URL: url, Checksum: url + ".sha256sum", Members: members}
}

func runcRecipe() Recipe {
	const module = "github.com/opencontainers/runc"
	return Recipe{
		Name: "runc", Module: module, Version: RuncVersion, Packages: map[string]string{"runc": module}, CGO: true,
		Tags: "seccomp netgo osusergo", LDFlags: "-extldflags -static",
		Downloads: []Download{runcDownload()},
	}
}

func runcDownload() Download {
	release := "github.com/opencontainers/runc/releases/download/" + RuncVersion + "/"
	return Download{
		URL: release + "runc." + runtime.GOARCH, Checksum: release + "runc.sha256sum",
		Members: map[string]string{"runc": ""},
	}
}

func cniRecipe() Recipe {
	const module = "github.com/containernetworking/plugins"
	packages := map[string]string{}
	for folder, names := range cniPlugins {
		for _, name := range names {
			packages[name] = module + "/plugins/" + folder + "/" + name
		}
	}
	return Recipe{
		Name: "cni-plugins", Module: module, Version: CNIPluginsVersion, Packages: packages,
		LDFlags:   "-X " + module + "/pkg/utils/buildversion.BuildVersion=" + CNIPluginsVersion,
		Downloads: []Download{cniDownload()},
	}
}

func cniDownload() Download {
	url := "github.com/containernetworking/plugins/releases/download/" + CNIPluginsVersion + "/cni-plugins-linux-" +
		runtime.GOARCH + "-" + CNIPluginsVersion + ".tgz"
	members := map[string]string{}
	for _, names := range cniPlugins {
		for _, name := range names {
			members[name] = name
		}
	}
	return Download{URL: url, Checksum: url + ".sha256", Members: members}
}

func flannelCNIRecipe() Recipe {
	const module = "github.com/containernetworking/plugins"
	return Recipe{
		Name: "flannel-cni", Module: module, Version: flannelCNISource,
		Packages:  map[string]string{"flannel": module + "/plugins/meta/flannel"},
		Downloads: []Download{flannelCNIDownload()},
	}
}

func flannelCNIDownload() Download {
	url := "github.com/flannel-io/cni-plugin/releases/download/" + FlannelCNIVersion + "/cni-plugin-flannel-linux-" +
		runtime.GOARCH + "-" + FlannelCNIVersion + ".tgz"
	members := map[string]string{"flannel": "flannel-" + runtime.GOARCH}
	return Download{URL: url, Checksum: url + ".sha256", Members: members}
}

func flannelRecipe() Recipe {
	const module = "github.com/flannel-io/flannel"
	return Recipe{
		Name: "flannel", Module: module, Version: FlannelVersion, Packages: map[string]string{"flanneld": module},
		CGO:       true,
		LDFlags:   "-extldflags -static -X " + module + "/pkg/version.Version=" + FlannelVersion,
		Downloads: []Download{flannelDownload()},
	}
}

func flannelDownload() Download {
	url := "github.com/flannel-io/flannel/releases/download/" + FlannelVersion + "/flanneld-" + runtime.GOARCH
	return Download{URL: url, Members: map[string]string{"flanneld": ""}}
}

package components

import (
	"fmt"
	"strings"
)

// kubernetesRecipe builds the programs of a Kubernetes version, given without a leading v. The flags stamp the version
// into them as the project's own build does.
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
	return Recipe{
		Name: "kubernetes", Module: "k8s.io/kubernetes", Version: "v" + version, Packages: packages,
		LDFlags: strings.Join(sorted(stamps), " "),
	}
}

// kubernetesImages are the programs of Kubernetes that come as images.
var kubernetesImages = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"}

func etcdRecipe(version string) Recipe {
	return Recipe{
		Name: "etcd", Module: "go.etcd.io/etcd/server/v3", Version: version,
		Packages: map[string]string{
			"etcd":    "go.etcd.io/etcd/server/v3",
			"etcdctl": "go.etcd.io/etcd/etcdctl/v3",
			"etcdutl": "go.etcd.io/etcd/etcdutl/v3",
		},
		Also: []string{"go.etcd.io/etcd/etcdctl/v3@" + version, "go.etcd.io/etcd/etcdutl/v3@" + version},
	}
}

func coreDNSRecipe(version string) Recipe {
	const module = "github.com/coredns/coredns"
	return Recipe{Name: "coredns", Module: module, Version: version, Packages: map[string]string{"coredns": module}}
}

func containerdRecipe(version string) Recipe {
	const module = "github.com/containerd/containerd/v2"
	packages := map[string]string{}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		packages[name] = module + "/cmd/" + name
	}
	return Recipe{
		Name: "containerd", Module: module, Version: version, Packages: packages, Tags: "no_btrfs no_zfs no_devmapper",
		LDFlags: "-X " + module + "/version.Version=" + version,
	}
}

func runcRecipe() Recipe {
	const module = "github.com/opencontainers/runc"
	return Recipe{
		Name: "runc", Module: module, Version: RuncVersion, Packages: map[string]string{"runc": module}, CGO: true,
		Tags: "seccomp netgo osusergo", LDFlags: "-extldflags -static",
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
		LDFlags: "-X " + module + "/pkg/utils/buildversion.BuildVersion=" + CNIPluginsVersion,
	}
}

func flannelCNIRecipe() Recipe {
	const module = "github.com/containernetworking/plugins"
	return Recipe{
		Name: "flannel-cni", Module: module, Version: flannelCNISource,
		Packages: map[string]string{"flannel": module + "/plugins/meta/flannel"},
	}
}

func flannelRecipe() Recipe {
	const module = "github.com/flannel-io/flannel"
	return Recipe{
		Name: "flannel", Module: module, Version: FlannelVersion, Packages: map[string]string{"flanneld": module},
		CGO:     true,
		LDFlags: "-extldflags -static -X " + module + "/pkg/version.Version=" + FlannelVersion,
	}
}

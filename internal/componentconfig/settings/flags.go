package settings

import (
	"maps"
	"slices"
	"strings"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/text/diff"
)

// compareFlags compares the flags of static pods: those that the manifest and kubeone set, and those that neither
// they nor kubeadm set. A flag of kubeadm's that the manifest has set before returns to kubeadm's value; kubeadm's
// configuration in the cluster shows that.
func compareFlags(want desired.Cluster, live Live) []diff.Change {
	var out []diff.Change
	wanted := componentconfig.Flags(want)
	for _, pod := range staticPods {
		of, path := "flags of "+pod, manifestOf(pod)
		is, ok := commandOf(live.Texts[path], pod)
		switch {
		case live.Cut[path]:
			out = append(out, diff.Summary(of, tooLong))
			continue
		case !ok:
			out = append(out, diff.Summary(of, path+" is not a static pod that runs it"))
			continue
		}
		maps.DeleteFunc(is, func(flag, _ string) bool {
			_, ours := wanted[pod][flag]
			return !ours && slices.Contains(ofKubeadm(pod), flag)
		})
		if c, differs := diff.Of(of, flagLines(is), flagLines(wanted[pod])); differs {
			out = append(out, c)
		}
	}
	return out
}

func flagLines(flags map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		b.WriteString("--" + name + "=" + strings.ReplaceAll(flags[name], "\n", " ") + "\n")
	}
	return b.String()
}

// commandOf returns the flags of the container that has its pod's name; false if there is none.
func commandOf(manifest, pod string) (map[string]string, bool) {
	read, err := parseYAML(manifest)
	if err != nil {
		return nil, false
	}
	spec, _ := read["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	for _, c := range containers {
		container, _ := c.(map[string]any)
		if container["name"] != pod {
			continue
		}
		out := map[string]string{}
		for _, field := range []string{"command", "args"} {
			words, _ := container[field].([]any)
			for _, w := range words {
				word, _ := w.(string)
				if name, ok := strings.CutPrefix(word, "--"); ok {
					name, value, _ := strings.Cut(name, "=")
					out[name] = value
				}
			}
		}
		return out, true
	}
	return nil, false
}

// ofKubeadm returns the flags that kubeadm itself gives a program
// (https://github.com/kubernetes/kubernetes/tree/master/cmd/kubeadm/app/phases, controlplane and etcd).
func ofKubeadm(pod string) []string {
	switch pod {
	case "etcd":
		return []string{
			"advertise-client-urls", "cert-file", "client-cert-auth", "data-dir", "experimental-initial-corrupt-check",
			"experimental-watch-progress-notify-interval", "feature-gates", "initial-advertise-peer-urls",
			"initial-cluster", "initial-cluster-state", "initial-cluster-token", "key-file", "listen-client-urls",
			"listen-metrics-urls", "listen-peer-urls", "name", "peer-cert-file", "peer-client-cert-auth",
			"peer-key-file", "peer-trusted-ca-file", "snapshot-count", "trusted-ca-file",
			"watch-progress-notify-interval",
		}
	case "kube-apiserver":
		return []string{
			"advertise-address", "allow-privileged", "authorization-mode", "client-ca-file",
			"enable-bootstrap-token-auth", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-servers",
			"kubelet-client-certificate",
			"kubelet-client-key", "kubelet-preferred-address-types", "proxy-client-cert-file", "proxy-client-key-file",
			"requestheader-allowed-names", "requestheader-client-ca-file", "requestheader-extra-headers-prefix",
			"requestheader-group-headers", "requestheader-username-headers", "secure-port", "service-account-issuer",
			"service-account-key-file", "service-account-signing-key-file", "service-cluster-ip-range", "tls-cert-file",
			"tls-private-key-file",
		}
	case "kube-controller-manager":
		return []string{
			"allocate-node-cidrs", "authentication-kubeconfig", "authorization-kubeconfig", "bind-address",
			"client-ca-file", "cluster-cidr", "cluster-name", "cluster-signing-cert-file", "cluster-signing-key-file",
			"controllers", "kubeconfig", "leader-elect", "requestheader-client-ca-file", "root-ca-file",
			"service-account-private-key-file", "service-cluster-ip-range", "use-service-account-credentials",
		}
	case "kube-scheduler":
		return []string{
			"authentication-kubeconfig", "authorization-kubeconfig", "bind-address", "kubeconfig", "leader-elect",
		}
	}
	return nil
}

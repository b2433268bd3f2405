package system

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/cluster/live"
	"kubeone/internal/model/desired"
)

func wanted() desired.Cluster {
	return desired.Cluster{
		Endpoint: desired.Endpoint{Host: "api.example.com", Port: 6443},
		Network:  desired.Network{PodSubnet: "10.244.0.0/16", KubeProxy: desired.KubeProxy{Mode: "nftables"}},
	}
}

// applied is kube-proxy's ConfigMap as kubeadm created it, with one foreign setting.
const (
	appliedConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
clusterCIDR: 10.244.0.0/16
conntrack:
  maxPerCore: null
  min: null
ipvs:
  excludeCIDRs: null
  minSyncPeriod: 0s
  scheduler: ""
  strictARP: false
  tcpTimeout: 1m0s
kind: KubeProxyConfiguration
metricsBindAddress: 0.0.0.0:10249
mode: nftables
`
	appliedKubeconfig = `apiVersion: v1
clusters:
- cluster:
    certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    server: https://api.example.com:6443
  name: default
kind: Config
`
)

func configMap(config, kubeconfig string) map[string]any {
	return map[string]any{"data": map[string]any{ProxyConfig: config, ProxyKubeconfig: kubeconfig}}
}

func TestProxySettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change     func(*desired.Cluster)
		live       func(config, kubeconfig string) (string, string)
		want       []string
		unreadable bool
	}{
		"as applied": {},
		"another mode is wanted": {
			change: func(w *desired.Cluster) { w.Network.KubeProxy.Mode = "iptables" }, want: []string{"mode"},
		},
		"another mode by hand": {
			live: func(c, k string) (string, string) { return strings.Replace(c, "nftables", "ipvs", 1), k },
			want: []string{"mode"},
		},
		"a mode that is gone": {
			live: func(c, k string) (string, string) { return strings.Replace(c, "mode: nftables\n", "", 1), k },
			want: []string{"mode"},
		},
		"durations and switches in other words": {change: func(w *desired.Cluster) {
			w.Network.KubeProxy.IPVS = &desired.IPVS{TCPTimeout: "60s"}
		}},
		"settings of ipvs": {
			change: func(w *desired.Cluster) {
				w.Network.KubeProxy.IPVS = &desired.IPVS{StrictARP: true, ExcludeCIDRs: []string{"10.1.0.0/16"}}
			},
			want: []string{"ipvs.excludeCIDRs", "ipvs.strictARP"},
		},
		"no limit is not kube-proxy's own": {
			change: func(w *desired.Cluster) { w.Network.KubeProxy.Conntrack = &desired.Conntrack{} },
			want:   []string{"conntrack.maxPerCore", "conntrack.min"},
		},
		"another server": {
			live: func(c, k string) (string, string) {
				return c, strings.Replace(k, "api.example.com", "192.0.2.1", 1)
			},
			want: []string{"server"},
		},
		"no YAML": {
			live:       func(_, k string) (string, string) { return "mode: [", k },
			unreadable: true,
		},
		"nothing at all": {
			live:       func(_, k string) (string, string) { return "", k },
			unreadable: true,
		},
		"a kubeconfig without a cluster": {
			live:       func(c, _ string) (string, string) { return c, "kind: Config\nclusters: []\n" },
			unreadable: true,
		},
		"a kubeconfig whose cluster is none": {
			live:       func(c, _ string) (string, string) { return c, "kind: Config\nclusters: [{name: default}]\n" },
			unreadable: true,
		},
	} {
		want, config, kubeconfig := wanted(), appliedConfig, appliedKubeconfig
		if c.change != nil {
			c.change(&want)
		}
		if c.live != nil {
			config, kubeconfig = c.live(config, kubeconfig)
		}
		if diff := cmp.Diff(c.want, ProxySettings(configMap(config, kubeconfig), want)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		if got := len(unreadableProxyKeys(configMap(config, kubeconfig))) > 0; got != c.unreadable {
			t.Errorf("%s: unreadable %t", name, got)
		}
		if c.unreadable { // kubeadm writes it again
			continue
		}
		newConfig, newKubeconfig, err := SetProxy(config, kubeconfig, want)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
			continue
		case len(c.want) == 0 && (newConfig != config || newKubeconfig != kubeconfig):
			t.Errorf("%s: changed, although nothing differs:\n%s", name, newConfig)
		}
		if left := ProxySettings(configMap(newConfig, newKubeconfig), want); len(left) > 0 {
			t.Errorf("%s: %v differ after they were set", name, left)
		}
		if !strings.Contains(newConfig, "metricsBindAddress: 0.0.0.0:10249") {
			t.Errorf("%s: a foreign setting is lost:\n%s", name, newConfig)
		}
	}
}

func TestARestartThatIsDueIsSeen(t *testing.T) {
	t.Parallel()
	object := configMap(appliedConfig, appliedKubeconfig)
	object["metadata"] = map[string]any{"annotations": map[string]any{RestartAnnotation: "17"}}
	if got := ProxySettings(object, wanted()); len(got) != 1 || !strings.Contains(got[0], RestartAnnotation) {
		t.Errorf("%v", got)
	}
}

// dnsImage is the desired image of cluster DNS.
const dnsImage = "r.example.com:5000/dns/coredns:v1.14.2"

// check returns the check of that kind and name.
func check(t *testing.T, want desired.Cluster, kind, name string, settings bool) live.Check {
	t.Helper()
	for _, c := range Components(want, map[string]string{DNS: dnsImage}) {
		i := slices.IndexFunc(c.Checks, func(c live.Check) bool {
			return c.Kind.Kind == kind && c.Name == name && c.Settings == settings
		})
		if i >= 0 {
			return c.Checks[i]
		}
	}
	t.Fatalf("no check of %s %s", kind, name)
	return live.Check{}
}

func workload(replicas any, selector map[string]any) map[string]any {
	return map[string]any{"spec": map[string]any{
		"replicas": replicas, "template": map[string]any{"spec": map[string]any{"nodeSelector": selector}},
	}}
}

func TestReplicasOfDNS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wanted int32
		have   int64
		makes  int32
	}{{0, 2, 2}, {0, 5, 5}, {0, 1, 1}, {0, 0, 2}, {3, 3, 3}, {3, 2, 3}, {3, 0, 3}, {1, 2, 1}} {
		want := wanted()
		want.Network.DNS.Replicas = c.wanted
		differs := check(t, want, "Deployment", "coredns", true).Differs(workload(c.have, linuxSelector))
		if (len(differs) > 0) != (int64(c.makes) != c.have) || DNSReplicas(want, int32(c.have)) != c.makes {
			t.Errorf("%+v: differs %v, makes %d", c, differs, DNSReplicas(want, int32(c.have)))
		}
	}
}

// A tag follows the version. A Deployment with an image from elsewhere is wrong, whatever its pods are.
func TestTheImageOfDNSComesFromItsRepository(t *testing.T) {
	t.Parallel()
	for image, same := range map[string]bool{
		dnsImage: true, "r.example.com:5000/dns/coredns:v1.13.0": true, "r.example.com:5000/dns/coredns": true,
		"r.example.com:5000/dns/coredns@sha256:00": true, "r.example.com:5000/dns/coredns:v1@sha256:00": true,
		"r.example.com:5001/dns/coredns:v1.14.2": false, "r.example.com/dns/coredns:v1.14.2": false,
		"registry.k8s.io/coredns/coredns:v1.14.2": false, "": false,
	} {
		object := workload(int64(2), nil)
		pods := object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		pods["containers"] = []any{
			map[string]any{"name": "sidecar", "image": "other/image"},
			map[string]any{"name": "coredns", "image": image},
		}
		differs := check(t, wanted(), "Deployment", "coredns", false).Differs(object)
		if (len(differs) == 0) != same {
			t.Errorf("%q: %v", image, differs)
		}
	}
	if check(t, wanted(), "Deployment", "coredns", false).Differs(workload(int64(2), nil)) == nil {
		t.Error("a Deployment without that container is as it must be")
	}
	if requireImageFrom("") != nil {
		t.Error("an image that is not known is asked for")
	}
}

func TestImagesByTheirPods(t *testing.T) {
	t.Parallel()
	names := desired.Artifacts{Images: []desired.Image{
		{Name: "r/etcd:3"}, {Name: "r/kube-proxy:v1"}, {Name: "r/kube-proxy/coredns:v2"}, {Name: "r/pause:3"},
	}}
	want := map[string]string{KubeProxy: "r/kube-proxy:v1", DNS: "r/kube-proxy/coredns:v2"}
	if diff := cmp.Diff(want, Images(names)); diff != "" {
		t.Error(diff)
	}
}

// The preview of a setting shows exactly what setting it does.
func TestTextsOfSettings(t *testing.T) {
	t.Parallel()
	want := wanted()
	want.Network.KubeProxy.Mode, want.Network.DNS.Replicas = "iptables", 3
	want.Endpoint.Host = "new.example.com"
	is, will := check(t, want, "ConfigMap", "kube-proxy", true).Texts(configMap(appliedConfig, appliedKubeconfig))
	changed := strings.NewReplacer("mode: nftables", "mode: iptables", "api.example.com", "new.example.com").Replace(is)
	if !strings.Contains(is, "metricsBindAddress: 0.0.0.0:10249\n") || diffOf(changed, will) != "" {
		t.Errorf("it is\n%s\n%s", is, diffOf(changed, will))
	}
	is, will = check(t, wanted(), "ConfigMap", "kube-proxy", true).Texts(configMap(appliedConfig, appliedKubeconfig))
	if diffOf(is, will) != "" {
		t.Error(diffOf(is, will))
	}
	if is, will = check(t, want, "ConfigMap", "kube-proxy", true).Texts(configMap("[]", "")); is != "" || will != "" {
		t.Errorf("of what cannot be read: %q, %q", is, will)
	}
	is, will = check(t, want, "Deployment", "coredns", true).Texts(workload(int64(2), linuxSelector))
	if is != "spec.replicas: 2" || will != "spec.replicas: 3" {
		t.Errorf("DNS servers: %q, %q", is, will)
	}
}

func diffOf(a, b string) string { return cmp.Diff(a, b) }

func TestObjectsOfKubeadmAreHeldToWhatMatters(t *testing.T) {
	t.Parallel()
	subject := func(name string) map[string]any {
		return map[string]any{"kind": "ServiceAccount", "name": name, "namespace": Namespace}
	}
	binding := func(role string, subjects ...any) map[string]any {
		return map[string]any{"roleRef": map[string]any{"kind": "ClusterRole", "name": role}, "subjects": subjects}
	}
	narrow := map[string]any{"kubernetes.io/os": "linux", "nobody": "here"}
	for name, c := range map[string]struct {
		kind, object string
		is           map[string]any
		differs      bool
	}{
		"kube-proxy everywhere": {"DaemonSet", "kube-proxy", workload(nil, linuxSelector), false},
		"kube-proxy stopped":    {"DaemonSet", "kube-proxy", workload(nil, narrow), true},
		"kube-proxy, no spec":   {"DaemonSet", "kube-proxy", map[string]any{}, true},
		"no Corefile":           {"ConfigMap", "coredns", map[string]any{"data": map[string]any{}}, true},
		"a foreign Corefile": {"ConfigMap", "coredns",
			map[string]any{"data": map[string]any{"Corefile": ". {}"}}, false},
		"bound": {"ClusterRoleBinding", "kubeadm:node-proxier",
			binding("system:node-proxier", subject("other"), subject("kube-proxy")), false},
		"without subjects":       {"ClusterRoleBinding", "system:coredns", binding("system:coredns"), true},
		"the Service elsewhere":  {"Service", "kube-dns", map[string]any{"spec": map[string]any{}}, true},
		"subjects of other form": {"ClusterRoleBinding", "system:coredns", binding("system:coredns", "coredns"), true},
	} {
		differs := check(t, wanted(), c.kind, c.object, false).Differs(c.is)
		if (len(differs) > 0) != c.differs {
			t.Errorf("%s: %v", name, differs)
		}
	}
}

func TestNoKubeProxyIsComparedWhereNoneIsWanted(t *testing.T) {
	t.Parallel()
	want := wanted()
	want.Network.KubeProxy.Skip = true
	for _, c := range Components(want, nil) {
		if c.Name == KubeProxy {
			t.Error("it is")
		}
	}
}

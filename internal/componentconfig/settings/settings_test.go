package settings_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/componentconfig"
	"kubeone/internal/componentconfig/settings"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/text/diff"
)

// cluster is one with settings of all kinds.
func cluster() desired.Cluster {
	pods := int32(90)
	return desired.Cluster{
		Name: "demo", KubernetesVersion: "1.36.3", Endpoint: desired.Endpoint{Host: "lb", Port: 6443},
		Network: desired.Network{
			PodSubnet: "10.244.0.0/16", ServiceSubnet: "10.96.0.0/12", DNSDomain: "cluster.local",
			NodePortRange: "30000-32767", NodeCIDRMaskSize: 24,
		},
		Logging:    desired.Logging{MaxSize: "100Mi", MaxFiles: 5},
		Kubelet:    desired.Kubelet{MaxPods: &pods},
		Proxy:      desired.Proxy{HTTP: "http://me:new@proxy:3128"},
		Components: desired.Components{APIServer: desired.Component{Flags: map[string]string{"event-ttl": "2h0m0s"}}},
		Containerd: desired.Containerd{Registries: map[string]desired.Mirrored{
			"docker.io": {Mirrors: []string{"https://mirror"}},
		}},
	}
}

func host(role desired.Role) componentconfig.Input {
	h := desired.Host{ID: "h", Role: role, PrivateAddress: "10.0.0.11"}
	return componentconfig.Input{Want: cluster(), Host: h, NodeName: "h"}
}

// configured returns the files of a host in the desired state, with these changes.
func configured(in componentconfig.Input, others map[string]string) settings.Live {
	live := settings.Live{Texts: map[string]string{}, Kept: map[string]string{}}
	for _, name := range []string{"kernel", "containerd", "kubelet"} {
		for _, f := range componentconfig.SettingsFiles(in, name) {
			if f.Content != "" {
				live.Texts[f.Path] = f.Content + "\n"
			}
		}
	}
	for path, text := range others {
		live.Texts[path] = text
		if text == "" {
			delete(live.Texts, path)
		}
	}
	return live
}

// lines returns the changed lines, by subject; unknown changes begin with "?".
func lines(changes []diff.Change) map[string][]string {
	out := map[string][]string{}
	for _, c := range changes {
		out[c.Of] = nil
		if c.Unknown != "" {
			out[c.Of] = append(out[c.Of], "? "+c.Unknown)
		}
		for _, line := range c.Lines {
			if line[0] == '-' || line[0] == '+' {
				out[c.Of] = append(out[c.Of], line)
			}
		}
	}
	return out
}

func expect(t *testing.T, want map[string][]string, got []diff.Change) {
	t.Helper()
	if d := cmp.Diff(want, lines(got)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

const proxyFile = "/etc/systemd/system/containerd.service.d/kubeone-proxy.conf"

const certificate = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"

func TestFilesOfTheContainerRuntime(t *testing.T) {
	t.Parallel()
	in := host(desired.Worker)
	in.Want.CABundle = certificate
	config := configured(in, nil).Texts["/etc/containerd/config.toml"]
	config = strings.Replace(config, "sandbox = \"\"", "sandbox = \"pause:3\"", 1)
	live := configured(in, map[string]string{
		proxyFile: "[Service]\nEnvironment=\"HTTP_PROXY=http://me:old@proxy:3128\"\n",
		// The sandbox image is the host's own.
		"/etc/containerd/config.toml":                  strings.Replace(config, "Cgroup = true", "Cgroup = false", 1),
		"/etc/kubeone/ca/bundle.pem":                   "",
		"/etc/containerd/certs.d/docker.io/hosts.toml": "",
		"/etc/containerd/certs.d/gone/hosts.toml":      "server = \"https://gone\"\npassword = \"hunter2\"\n",
	})
	expect(t, map[string][]string{
		proxyFile: {
			"-Environment=\"HTTP_PROXY=http://<secret>@proxy:3128\"",
			"+Environment=\"HTTP_PROXY=http://<secret, changed>@proxy:3128\"",
		},
		"/etc/containerd/config.toml": {"-      SystemdCgroup = false", "+      SystemdCgroup = true"},
		"/etc/kubeone/ca/bundle.pem": {
			"+sha256:b5d4045c3f466fa91fe2cc6abe79232a1a57cdf104f7a26e716e0a1e2789df78",
		},
		"/etc/containerd/certs.d/docker.io/hosts.toml": {
			"+server = \"https://registry-1.docker.io\"", "+", "+[host.\"https://mirror\"]",
			"+  capabilities = [\"pull\", \"resolve\"]",
		},
		"/etc/containerd/certs.d/gone/hosts.toml": {"-server = \"https://gone\"", "-password = \"<secret>\""},
	}, settings.OfHost(in, []string{"containerd"}, live))
	in.Want.Containerd.SandboxImage = "pause:4"
	got := lines(settings.OfHost(in, []string{"containerd"}, live))["/etc/containerd/config.toml"]
	if !slices.Contains(got, "-    sandbox = \"pause:3\"") || !slices.Contains(got, "+    sandbox = \"pause:4\"") {
		t.Errorf("an image of sandboxes that the manifest names: %q", got)
	}
}

func TestSettingsOfTheKubelet(t *testing.T) {
	t.Parallel()
	const config = "apiVersion: kubelet.config.k8s.io/v1beta1\nclusterDNS:\n- 10.96.0.10\n" +
		"containerLogMaxFiles: 5\ncontainerLogMaxSize: 100Mi\n" +
		"evictionHard:\n  memory.available: 1Gi\nimageMinimumGCAge: 0s\nkind: KubeletConfiguration\n" +
		"maxPods: 110\nstaticPodPath: /etc/kubernetes/manifests\n"
	const path = "/var/lib/kubelet/config.yaml"
	in := host(desired.Worker)
	differ := []string{"-evictionHard:", "-  memory.available: 1Gi", "-maxPods: 110", "+maxPods: 90"}
	expect(t, map[string][]string{path: differ},
		settings.OfHost(in, []string{"kubelet"}, configured(in, map[string]string{path: config})))
	expect(t, map[string][]string{"ConfigMap kube-system/kubelet-config": differ},
		settings.OfKubeletConfig(config, in.Want))
	for _, none := range []string{"", "no: [yaml", "[]"} {
		expect(t, map[string][]string{path: {"? the live configuration is not a kubelet configuration"}},
			settings.OfHost(in, []string{"kubelet"}, configured(in, map[string]string{path: none})))
	}
}

func pod(name string, flags ...string) string {
	return "kind: Pod\nspec:\n  containers:\n  - name: " + name + "\n    command:\n    - " + name + "\n    - " +
		strings.Join(flags, "\n    - ") + "\n"
}

func manifest(name string) string { return "/etc/kubernetes/manifests/" + name + ".yaml" }

func TestFlagsOfTheControlPlane(t *testing.T) {
	t.Parallel()
	in := host(desired.ControlPlane)
	server := []string{
		"--enable-admission-plugins=NodeRestriction", "--endpoint-reconciler-type=lease", "--profiling=false",
		"--kubelet-certificate-authority=/etc/kubernetes/pki/ca.crt", "--request-timeout=1m0s",
		"--service-node-port-range=30000-32767", "--etcd-servers=https://127.0.0.1:2379", "--secure-port=6443",
	}
	live := configured(in, map[string]string{
		manifest("kube-apiserver"): pod("kube-apiserver", append(server, "--audit-log-path=/x", "--event-ttl=1h",
			"--oidc-client-secret=hunter2")...),
		manifest("kube-controller-manager"): pod("kube-controller-manager", "--profiling=false",
			"--node-cidr-mask-size=24", "--terminated-pod-gc-threshold=1000", "--kubeconfig=/etc/x"),
		manifest("kube-scheduler"): "kind: Pod\n",
	})
	live.Cut = map[string]bool{manifest("etcd"): true}
	expect(t, map[string][]string{
		"flags of kube-apiserver": {
			"---audit-log-path=/x", "---event-ttl=1h", "+--event-ttl=2h0m0s", "---oidc-client-secret=<secret>",
		},
		"flags of kube-scheduler": {"? " + manifest("kube-scheduler") + " is not a static pod that runs it"},
		"flags of etcd":           {"? the file is too long to read"},
	}, settings.OfHost(in, []string{desired.ComponentsDigest}, live))
}

func TestFilesThatComponentsRead(t *testing.T) {
	t.Parallel()
	in := host(desired.ControlPlane)
	file := func(name, content string) desired.ComponentFile {
		return desired.NewComponentFile(desired.APIServer, name, content)
	}
	same, old := file("same.yaml", "a"), file("audit-policy.yaml", "level: None")
	policy := file("audit-policy.yaml", "level: Metadata")
	hook, _ := file("webhook.conf", "token: hunter3").Secretly()
	oldHook, gone := file("webhook.conf", "token: hunter2"), file("gone.yaml", "hunter1")
	first, _ := file("first", "hunter4").Secretly()
	in.Want.Extras = []desired.Extra{{
		Name: "audit", Component: desired.APIServer, Files: []desired.ComponentFile{same, policy, hook, first},
	}}
	live := configured(in, map[string]string{
		same.Path: "a", old.Path: "level: None\n", oldHook.Path: "token: hunter2\n", gone.Path: "hunter1\n",
	})
	got := lines(settings.OfHost(in, []string{desired.ComponentsDigest}, live))
	for _, pod := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		delete(got, "flags of "+pod)
	}
	dir := desired.ComponentDir(desired.APIServer)
	want := map[string][]string{
		dir + "/audit-policy.yaml": {"-level: None", "+level: Metadata"},
		dir + "/webhook.conf":      {"-<secret>", "+<secret, changed>"}, dir + "/first": {"+<secret>"},
		dir + "/gone.yaml": {"? it will be removed; it is not shown, because it may contain secrets"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if paths := settings.Paths(in, []string{desired.ComponentsDigest}); !slices.Contains(paths, dir+"/*") {
		t.Errorf("%q", paths)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	is := observed.Host{Credentials: []observed.Credential{
		{Of: "proxy credentials", Is: observed.CredentialMissing},
		{Of: "registry credentials of a", Is: observed.CredentialOther},
		{Of: "registry credentials of b", Is: observed.CredentialExtra},
		{Of: "registry credentials of c", Is: observed.CredentialLeft},
	}}
	expect(t, map[string][]string{
		"proxy credentials": {"+<secret>"}, "registry credentials of a": {"-<secret>", "+<secret, changed>"},
		"registry credentials of b": {"-<secret>"},
	}, settings.OfCredentials([]string{"kubelet", desired.CredentialsConfiguration}, is))
	if got := settings.OfCredentials([]string{"kubelet"}, is); got != nil {
		t.Errorf("%+v", got)
	}
	names := []string{desired.CredentialsConfiguration}
	if got := settings.OfHost(host(desired.Worker), names, settings.Live{Failed: "lost"}); got != nil {
		t.Errorf("%+v", got)
	}
	expect(t, map[string][]string{"hardening": {"? only the modes of files change"}},
		settings.OfHost(host(desired.Worker), []string{desired.HardeningDigest}, settings.Live{}))
}

func TestWhatIsNotKnownIsSaid(t *testing.T) {
	t.Parallel()
	in := host(desired.Worker)
	expect(t, map[string][]string{"containerd, kubelet": {"? the host's files were not read: connection lost"}},
		settings.OfHost(in, []string{"containerd", "kubelet"}, settings.Live{Failed: "connection lost"}))
	for of, why := range lines(settings.OfHost(in, []string{"kernel"}, configured(in, nil))) {
		if of != "kernel" || len(why) != 1 || !strings.HasPrefix(why[0], "? no compared line") {
			t.Errorf("%s: %q", of, why)
		}
	}
	expect(t, map[string][]string{"ConfigMap kube-system/kubeadm-config": {
		"? the live configuration is not a kubeadm configuration",
	}}, settings.OfKubeadmConfig("", in.Want))
}

func TestFilesThatAreRestored(t *testing.T) {
	t.Parallel()
	live := settings.Live{
		Texts: map[string]string{"/a": "mine\n"}, Kept: map[string]string{"/a": "ours\n"},
		Cut: map[string]bool{"/c": true},
	}
	expect(t, map[string][]string{
		"/a": {"-mine", "+ours"}, "/b": {"? the original that the host has kept was not read"},
		"/c": {"? the file is too long to read"},
	}, settings.Restored([]string{"/a", "/b", "/c"}, live))
	expect(t, map[string][]string{"/a": {"? the host's files were not read: lost"}},
		settings.Restored([]string{"/a"}, settings.Live{Failed: "lost"}))
}

// kubeadm's own record has defaults, images and names that are not settings.
func TestKubeadmsConfiguration(t *testing.T) {
	t.Parallel()
	const live = `apiServer:
  certSANs: [lb, old]
  extraArgs:
  - {name: enable-admission-plugins, value: NodeRestriction}
  - {name: endpoint-reconciler-type, value: lease}
  - {name: kubelet-certificate-authority, value: /etc/kubernetes/pki/ca.crt}
  - {name: profiling, value: "false"}
  - {name: request-timeout, value: 1m0s}
  - {name: service-node-port-range, value: 30000-32767}
apiVersion: kubeadm.k8s.io/v1beta4
caCertificateValidityPeriod: 87600h0m0s
certificateValidityPeriod: 4000h0m0s
certificatesDir: /etc/kubernetes/pki
clusterName: demo
controlPlaneEndpoint: old:6443
controllerManager:
  extraArgs:
  - {name: node-cidr-mask-size, value: "24"}
  - {name: profiling, value: "false"}
  - {name: terminated-pod-gc-threshold, value: "1000"}
dns: {imageTag: v1.14.0}
encryptionAlgorithm: RSA-2048
etcd: {local: {dataDir: /var/lib/etcd, imageTag: 3.6.8-0, extraArgs: [{name: quota-backend-bytes, value: "1"}]}}
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.36.1
networking: {dnsDomain: cluster.local, podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/12}
proxy: {}
scheduler:
  extraArgs:
  - {name: profiling, value: "false"}
`
	expect(t, map[string][]string{"ConfigMap kube-system/kubeadm-config": {
		"+  - name: event-ttl", "+    value: 2h0m0s", "-certificateValidityPeriod: 4000h0m0s",
		"+certificateValidityPeriod: 8760h0m0s", "-    extraArgs:", "-    - name: quota-backend-bytes",
		`-      value: "1"`,
	}}, settings.OfKubeadmConfig(live, cluster()))
}

func TestLabelsAnnotationsAndTaints(t *testing.T) {
	t.Parallel()
	h := desired.Host{
		Role: desired.ControlPlane, Labels: map[string]string{"a": "2", "b-": "", "same": "x"},
		Annotations: map[string]string{"token": "hunter3"},
		Taints:      []desired.Taint{{Key: "k", Value: "v", Effect: "NoSchedule"}},
	}
	node := observed.Node{
		Labels:      map[string]string{"a": "1", "b": "old", "same": "x", "others": "own"},
		Annotations: map[string]string{"token": "hunter2", observed.TaintsAnnotation: "was:NoExecute"},
		Taints: []observed.Taint{
			{Key: "k", Value: "u", Effect: "NoSchedule"}, {Key: "was", Effect: "NoExecute"},
			{Key: "node.kubernetes.io/not-ready", Effect: "NoExecute"},
			{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"},
		},
	}
	expect(t, map[string][]string{"labels, annotations and taints": {
		"-annotation token=<secret>", "-label a=1", "-label b=old", "+annotation token=<secret, changed>", "+label a=2",
		"-taint k=u:NoSchedule", "-taint node-role.kubernetes.io/control-plane:NoSchedule", "-taint was:NoExecute",
		"+taint k=v:NoSchedule",
	}}, settings.OfNode(h, node))
	if got := settings.OfNode(desired.Host{}, node); len(got) != 1 { // taints of kubeone's are removed
		t.Errorf("%+v", got)
	}
	if got := settings.OfNode(desired.Host{Labels: map[string]string{"a": "1"}}, observed.Node{
		Labels: node.Labels,
	}); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestFilesThatAreRead(t *testing.T) {
	t.Parallel()
	got := settings.Paths(host(desired.ControlPlane), []string{"containerd", "kubelet", desired.ComponentsDigest})
	for _, path := range []string{
		"/etc/containerd/certs.d/*/hosts.toml", "/var/lib/kubelet/config.yaml", proxyFile, manifest("kube-apiserver"),
		"/etc/kubeone/ca/bundle.pem",
	} {
		if !slices.Contains(got, path) {
			t.Errorf("%s is not among %q", path, got)
		}
	}
	if strings.Contains(strings.Join(got, ""), " ") {
		t.Errorf("a path with a blank: %q", got)
	}
}

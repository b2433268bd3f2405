package manifest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/examples"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
)

const demo = head + `
name: demo
cloudProvider: {none: {}}
controlPlane: {hosts: [{publicAddress: 192.0.2.1}]}
`

func decodeYAML(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// versionOf returns the default version of a network plugin.
func versionOf(name string) string {
	plugin, _ := plugins.Find(name, "")
	return plugin.Version()
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	got := load(t, demo, "").Cluster
	want := desired.Cluster{
		Name:              "demo",
		KubernetesVersion: "1.36.3",
		Endpoint:          desired.Endpoint{Host: "192.0.2.1", Port: 6443},
		Network: desired.Network{
			PodSubnet: "10.244.0.0/16", ServiceSubnet: "10.96.0.0/12", IPFamily: "IPv4", DNSDomain: "cluster.local",
			NodePortRange: "30000-32767", NodeCIDRMaskSize: 24,
			CNI: desired.CNI{
				Name: "flannel", Version: versionOf("flannel"), Supported: plugins.Names(),
				Ports: plugins.Ports("flannel"), Files: []string{"10-flannel.conflist"}, Releases: plugins.Charted(),
			},
			KubeProxy: desired.KubeProxy{Mode: "iptables"},
		},
		ControlPlane: []desired.Host{{
			ID: "192.0.2.1", Role: desired.ControlPlane, PublicAddress: "192.0.2.1", PrivateAddress: "192.0.2.1",
			Taints: []desired.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}},
		}},
		Logging: desired.Logging{MaxSize: "100Mi", MaxFiles: 5},
		Upgrade: desired.Upgrade{
			MaxUnavailable: desired.Share{Count: 1}, Canary: true,
			Drain: desired.Drain{Timeout: 5 * time.Minute, OnTimeout: desired.DrainStop},
		},
		Backup:   desired.Backup{Schedule: 6 * time.Hour, Keep: 10},
		Firewall: desired.FirewallManage,
		Digest:   got.Digest,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.Digest) != 64 {
		t.Errorf("digest %q is not a sha256", got.Digest)
	}
}

func TestNetworkIsCarriedOver(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, network string
		want          func(*desired.Network)
	}{
		{"canal is the default plugin", "",
			func(n *desired.Network) {
				n.CNI = desired.CNI{
					Name: "canal", Version: versionOf("canal"), MTU: 1450, Supported: plugins.Names(),
					Releases: plugins.Charted(), Ports: plugins.Ports("canal"), Files: []string{"10-canal.conflist"},
				}
			}},
		{"cilium", "cni: {cilium: {version: 1.20.1, enableHubble: true, helmValues: {MTU: 1400}}}",
			func(n *desired.Network) {
				n.CNI = desired.CNI{
					Name: "cilium", Version: "1.20.1", Supported: plugins.Names(), Releases: plugins.Charted(),
					Files: []string{"05-cilium.conflist"}, Features: desired.CNIFeatures{Hubble: true},
					Values: map[string]any{"MTU": 1400},
				}
				n.CNI.Ports = append(plugins.Ports("cilium"),
					desired.PortRange{Ports: "4244", Protocol: "tcp", What: "cilium (Hubble)", From: "all hosts"})
			}},
		{"cilium without kube-proxy",
			"cni: {cilium: {kubeProxyReplacement: strict, enableL2Announcements: true, enableGatewayAPI: true, " +
				"enableLocalRedirectPolicy: true}}, kubeProxy: {skipInstallation: true}",
			func(n *desired.Network) {
				n.KubeProxy.Skip = true
				n.CNI = desired.CNI{
					Name: "cilium", Version: versionOf("cilium"), Supported: plugins.Names(),
					Releases: plugins.Charted(), Files: []string{"05-cilium.conflist"}, Ports: plugins.Ports("cilium"),
					Features: desired.CNIFeatures{
						ReplacesKubeProxy: true, L2Announcements: true, GatewayAPI: true, LocalRedirects: true,
					},
				}
			}},
		{"external", "cni: {external: {}}",
			func(n *desired.Network) {
				n.CNI = desired.CNI{Name: "external", Supported: plugins.Names(), Releases: plugins.Charted()}
			}},
		{"nftables", "cni: {flannel: {}}, kubeProxy: {nftables: {}}",
			func(n *desired.Network) { n.KubeProxy.Mode = "nftables" }},
		{"no kube-proxy", "cni: {flannel: {}}, kubeProxy: {skipInstallation: true}",
			func(n *desired.Network) { n.KubeProxy.Skip = true }},
		{"ipvs",
			"cni: {flannel: {}}, kubeProxy: {ipvs: {scheduler: lc, strictARP: true, excludeCIDRs: [10.9.0.0/16], " +
				"tcpTimeout: 1m, tcpFinTimeout: 2m, udpTimeout: 3m}}", func(n *desired.Network) {
				n.KubeProxy = desired.KubeProxy{
					Mode: "ipvs",
					IPVS: &desired.IPVS{
						Scheduler: "lc", StrictARP: true, ExcludeCIDRs: []string{"10.9.0.0/16"}, TCPTimeout: "1m",
						TCPFinTimeout: "2m", UDPTimeout: "3m",
					},
				}
			}},
		{"conntrack 0 means something", "cni: {flannel: {}}, kubeProxy: {conntrack: {maxPerCore: 0}}",
			func(n *desired.Network) {
				n.KubeProxy.Conntrack = &desired.Conntrack{MaxPerCore: 0, Min: 131072}
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := load(t, demo, "").Cluster.Network
			tt.want(&want)
			text := strings.Replace(demo, "clusterNetwork: {cni: {flannel: {}}}", "clusterNetwork: {"+tt.network+"}", 1)
			if diff := cmp.Diff(want, load(t, text, "").Cluster.Network); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPathsAreResolved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := strings.Replace(demo, "{publicAddress: 192.0.2.1}",
		"{publicAddress: 192.0.2.1, sshPrivateKeyFile: keys/id, sshCertFile: ~/cert.pub, bastion: b, "+
			"bastionPrivateKeyFile: /abs/key, sshAgentSocket: 'env:SOCK', hostname: CP.Example.com}", 1)
	write(t, filepath.Join(dir, "sub", "kubeone.yaml"), []byte(text))
	loaded, err := manifest.Load(t.Context(),
		manifest.Options{ManifestPath: filepath.Join(dir, "sub", "kubeone.yaml"), Home: "/home/me"})
	if err != nil {
		t.Fatal(err)
	}
	want := desired.SSH{
		KeyFile: filepath.Join(dir, "sub", "keys/id"), CertFile: "/home/me/cert.pub", Bastion: "b",
		BastionKeyFile: "/abs/key", AgentSocket: "env:SOCK",
	}
	if diff := cmp.Diff(want, loaded.Cluster.ControlPlane[0].SSH); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := loaded.Cluster.ControlPlane[0].Hostname; got != "cp.example.com" {
		t.Errorf("hostname %q is not in lower case", got)
	}
}

func TestManifestTextLoadsAsTheSameCluster(t *testing.T) {
	t.Parallel()
	dir := unpacked(t)
	for name, o := range map[string]manifest.Options{
		"minimal": {ManifestPath: filepath.Join(dir, "minimal.yaml")},
		"full":    {ManifestPath: filepath.Join(dir, "full.yaml")},
		"terraform": {ManifestPath: filepath.Join(dir, "terraform.yaml"),
			TerraformPath: filepath.Join(dir, "terraform", "tf.json")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, err := manifest.Load(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			again, err := manifest.Load(t.Context(), manifest.Options{
				ManifestPath:   o.ManifestPath,
				ManifestReader: strings.NewReader(string(first.ManifestText)),
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first.Cluster, again.Cluster); diff != "" {
				t.Errorf("the manifest's text is another cluster (-first +again):\n%s", diff)
			}
			if diff := cmp.Diff(string(first.ManifestText), string(again.ManifestText)); diff != "" {
				t.Errorf("text (-first +again):\n%s", diff)
			}
		})
	}
}

func TestAuthoritiesOfAFileBecomePartOfTheText(t *testing.T) {
	t.Parallel()
	var full v1beta2.KubeOneCluster
	text, err := examples.Files.ReadFile("full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decodeYAML(t, text, &full)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ca.pem"), []byte(full.CertificateAuthority.Bundle))
	write(t, filepath.Join(dir, "kubeone.yaml"), []byte(demo+"certificateAuthority: {file: ca.pem}\n"))
	loaded, err := manifest.Load(t.Context(), manifest.Options{ManifestPath: filepath.Join(dir, "kubeone.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Cluster.CABundle != full.CertificateAuthority.Bundle ||
		!strings.Contains(string(loaded.ManifestText), "BEGIN CERTIFICATE") {
		t.Errorf("the file's content is missing:\n%s", loaded.ManifestText)
	}
}

func TestSecretsGoNowhereElse(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	text := strings.NewReplacer("none: {}", "vsphere: {}, cloudConfig: hunter2, csiConfig: hunter2").Replace(demo) + `
containerRuntime:
  containerd:
    registries:
      docker.io: {auth: {username: u, password: hunter2}, mirrors: [https://m]}
      quay.io: {auth: {identityToken: hunter2}}
proxy:
  http: http://user:hunter2@proxy:3128
  https: http://user:hunter2@proxy:3129
helmReleases:
  - {chart: c, namespace: n, auth: {username: u, password: hunter2},
     values: [{inline: {db: {password: hunter2, port: 1}}}]}
dynamicWorkers:
  - name: w
    providerSpec:
      cloudProviderSpec: {serverType: x, token: {value: hunter2}, list: [{apiKey: hunter2}]}
      overwriteCloudConfig: hunter2
addons:
  globalParams: {SECRET_KEY: hunter2, plain: x}
  addons: [{name: a, params: {accessKey: hunter2}}]
features:
  encryptionProviders: {enable: true, customEncryptionConfiguration: hunter2}
`
	loaded := load(t, text, "")
	cluster, err := json.Marshal(loaded.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := json.Marshal(loaded.Secrets)
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{
		"cluster": string(cluster), "manifest's text": string(loaded.ManifestText), "secrets as JSON": string(secrets),
		"secrets as text": fmt.Sprintf("%v %+v %#v %s", loaded.Secrets, loaded.Secrets, loaded.Secrets, loaded.Secrets),
		"warnings":        fmt.Sprint(loaded.Warnings),
	} {
		if strings.Contains(text, secret) {
			t.Errorf("a secret is in the %s:\n%s", where, text)
		}
	}
	want := manifest.Secrets{
		Registries: map[string]v1beta2.ContainerdRegistryAuthConfig{
			"docker.io": {Username: "u", Password: secret},
			"quay.io":   {IdentityToken: secret},
		},
		Helm:          map[string]v1beta2.HelmAuth{"c": {Username: "u", Password: secret}},
		AllRegistries: true, HTTPProxy: "http://user:hunter2@proxy:3128", HTTPSProxy: "http://user:hunter2@proxy:3129",
	}
	if !reflect.DeepEqual(want, loaded.Secrets) {
		t.Error("the secrets are not what the manifest has")
	}
	if got := loaded.Cluster.Proxy.HTTP; got != "http://proxy:3128" {
		t.Errorf("proxy is %q", got)
	}
	if r := loaded.Cluster.Containerd.Registries["docker.io"]; !r.HasAuth || len(r.Mirrors) != 1 {
		t.Errorf("registry is %+v", r)
	}
	other := load(t, strings.ReplaceAll(text, secret, "another"), "")
	if other.Cluster.Digest != loaded.Cluster.Digest {
		t.Error("a secret changes the digest")
	}
}

func TestTheDigestIsOfWhatIsWanted(t *testing.T) {
	t.Parallel()
	base := load(t, demo, "").Cluster.Digest
	for name, tt := range map[string]struct {
		text string
		same bool
	}{
		"comments and order": {"# hello\nname: demo\n" + strings.Replace(demo, "name: demo\n", "", 1), true},
		"a default said":     {demo + "loggingConfig: {containerLogMaxFiles: 5}\n", true},
		"a leading v":        {strings.Replace(demo, "1.36.3", "v1.36.3", 1), true},
		"another version":    {strings.Replace(demo, "1.36.3", "1.36.2", 1), false},
		"a label":            {strings.Replace(demo, "192.0.2.1", "192.0.2.1, labels: {a: b}", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := load(t, tt.text, "").Cluster.Digest; (got == base) != tt.same {
				t.Errorf("digest equal: %t, want %t", got == base, tt.same)
			}
		})
	}
}

func TestStrictHostKeysAndMirror(t *testing.T) {
	t.Parallel()
	loaded := load(t, demo+"strictHostKeys: true\nartifacts: {mirror: 'https://m.example.com/'}\n"+
		"preflight: {ignoreErrors: [NumCPU, FileContent--proc-sys-net-ipv4-ip_forward]}\n", "")
	if !loaded.StrictHostKeys || loaded.Mirror != "https://m.example.com" ||
		len(loaded.Cluster.Preflight.IgnoreErrors) != 2 {
		t.Errorf("strict %t, mirror %q, preflight %v", loaded.StrictHostKeys, loaded.Mirror, loaded.Cluster.Preflight)
	}
}

// Unset fields stay unset: their default depends on whether the cluster exists.
func TestHardeningIsWhatTheManifestSays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "hardening: baseline\n": "baseline", "hardening: none\n": "none",
	} {
		if got := load(t, demo+text, "").Cluster; got.Hardening != want || got.NoAuditLog {
			t.Errorf("%q: hardening %q, no audit log: %t", text, got.Hardening, got.NoAuditLog)
		}
	}
	if got := load(t, demo+"features: {staticAuditLog: {enable: false}}\n", "").Cluster; !got.NoAuditLog {
		t.Error("an audit log that is switched off is on")
	}
}

func TestFirewallsAreManagedUnlessTheManifestSaysOtherwise(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "manage", "firewall: manage\n": "manage", "firewall: disable\n": "disable", "firewall: ignore\n": "ignore",
	} {
		if got := load(t, demo+text, "").Cluster.Firewall; got != want {
			t.Errorf("%q: firewall %q", text, got)
		}
	}
	_, err := manifest.Load(t.Context(), manifest.Options{ManifestReader: strings.NewReader(demo + "firewall: off\n"),
		ManifestPath: "kubeone.yaml"})
	const says = `firewall: "off" is not supported (use one of: manage, disable, ignore)`
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("an unknown value: %v", err)
	}
}

func TestStandardInput(t *testing.T) {
	t.Parallel()
	manifestFile := filepath.Join(t.TempDir(), "kubeone.yaml")
	write(t, manifestFile, []byte(head))
	tests := []struct {
		name string
		o    manifest.Options
		want string // in the error; "" for none
	}{
		{
			"terraform", manifest.Options{
				ManifestPath:  manifestFile,
				TerraformPath: "-",
				Stdin:         strings.NewReader(hostsOutput(`, "cluster_name": "demo", "cloud_provider": "none"`)),
			}, "",
		},
		{"manifest", manifest.Options{ManifestPath: "-", Stdin: strings.NewReader(demo)}, ""},
		{"both", manifest.Options{ManifestPath: "-", TerraformPath: "-", Stdin: strings.NewReader(demo)},
			"cannot both be read from standard input"},
		{"none", manifest.Options{ManifestPath: manifestFile, TerraformPath: "-"}, "there is no standard input"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := manifest.Load(t.Context(), tt.o)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCausesAreKept(t *testing.T) {
	t.Parallel()
	_, err := manifest.Load(t.Context(), manifest.Options{ManifestPath: filepath.Join(t.TempDir(), "no.yaml")})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v does not say that the file is missing", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = manifest.Load(ctx, manifest.Options{
		ManifestReader: strings.NewReader(demo), TerraformPath: t.TempDir(),
		RunTerraform: func(ctx context.Context, _ string) ([]byte, error) { return nil, ctx.Err() },
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not say that it was cancelled", err)
	}
}

// DNS names get one spelling. kubeadm refuses capitals and a final dot in the names of a certificate.
func TestNamesHaveOneSpelling(t *testing.T) {
	t.Parallel()
	text := strings.Replace(demo, "{publicAddress: 192.0.2.1}", "{publicAddress: CP-1.Example.com., "+
		"privateAddress: 192.0.2.1, hostname: CP-1., bastion: Bastion.Example.com., ipv6Addresses: ['2001:DB8::1']}", 1)
	text += "apiEndpoint: {host: LB-1.Example.com., alternativeNames: [API.example.com., '*.Example.com']}\n" +
		"staticWorkers: {hosts: [{publicAddress: W-1.example.com., privateAddress: 192.0.2.2}]}\n"
	got := load(t, text, "").Cluster
	if diff := cmp.Diff([]string{"lb-1.example.com", "api.example.com", "*.example.com", "cp-1.example.com",
		"192.0.2.1", "cp-1", "127.0.0.1", "localhost"}, got.APINames()); diff != "" {
		t.Errorf("names in the API servers' certificates (-want +got):\n%s", diff)
	}
	cp := got.ControlPlane[0]
	if diff := cmp.Diff([]string{"cp-1.example.com", "192.0.2.1", "cp-1", "2001:db8::1"}, cp.Names()); diff != "" {
		t.Errorf("names of the host (-want +got):\n%s", diff)
	}
	if cp.SSH.Bastion != "bastion.example.com" || got.Workers[0].PublicAddress != "w-1.example.com" {
		t.Errorf("bastion %q, worker %q", cp.SSH.Bastion, got.Workers[0].PublicAddress)
	}
}

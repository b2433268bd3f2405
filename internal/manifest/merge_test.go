package manifest_test

import (
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
)

const head = `
apiVersion: kubeone.k8c.io/v1beta2
kind: KubeOneCluster
versions: {kubernetes: 1.36.3}
clusterNetwork: {cni: {flannel: {}}}
`

const three = `"public_address": ["192.0.2.1", "192.0.2.2", "192.0.2.3"], "private_address": ["10.0.0.1", ` +
	`"10.0.0.2", ` +
	`"10.0.0.3"]`

// load loads a manifest and an output; tf may be "".
func load(t *testing.T, text, tf string) manifest.Loaded {
	t.Helper()
	dir := t.TempDir()
	o := manifest.Options{ManifestPath: filepath.Join(dir, "kubeone.yaml"), Home: "/home/me"}
	write(t, o.ManifestPath, []byte(text))
	if tf != "" {
		o.TerraformPath = filepath.Join(dir, "tf.json")
		write(t, o.TerraformPath, []byte(tf))
	}
	loaded, err := manifest.Load(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// hostsOutput returns an output with a control plane of three hosts and other outputs.
func hostsOutput(more string) string {
	return `{"kubeone_hosts": {"value": {"control_plane": {` + three + more + `}}}}`
}

func TestTerraformHostsReplaceTheManifestsAndKeepTheirSettings(t *testing.T) {
	t.Parallel()
	const own = head + `
name: demo
cloudProvider: {none: {}}
controlPlane:
  hosts:
    - publicAddress: 192.0.2.99
      labels: {left: out}
    - privateAddress: 10.0.0.2
      sshUsername: mine
      labels: {a: mine}
      taints: []
      kubelet: {maxPods: 60, systemReserved: {cpu: 1}}
      bastion: my-bastion
      isLeader: true
    - hostname: CP-3
      publicAddress: 203.0.113.3
`
	loaded := load(t, own, hostsOutput(`, "hostnames": ["cp-1", "cp-2", "cp-3"], "ssh_user": "theirs", "ssh_port": 2222,
		"bastion": "their-bastion", "bastion_user": "their-jumper", "labels": {"a": "theirs", "b": "theirs"},
		"kubelet": {"max_pods": 110, "system_reserved": "cpu=2,memory=1Gi",
			"eviction_hard": "memory.available<100Mi"}`))
	host := func(n string) desired.Host {
		h := desired.Host{
			ID: "192.0.2." + n, Role: desired.ControlPlane, PublicAddress: "192.0.2." + n,
			PrivateAddress: "10.0.0." + n, Hostname: "cp-" + n,
		}
		h.Taints = []desired.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}}
		h.Labels = map[string]string{"a": "theirs", "b": "theirs"}
		h.Kubelet = desired.Kubelet{
			MaxPods:        new(int32(110)),
			SystemReserved: map[string]string{"cpu": "2", "memory": "1Gi"},
			EvictionHard:   map[string]string{"memory.available": "100Mi"},
		}
		h.SSH = desired.SSH{User: "theirs", Port: 2222, Bastion: "their-bastion", BastionUser: "their-jumper"}
		return h
	}
	second := host("2")
	second.IsLeader, second.Taints = true, []desired.Taint{}
	second.Labels = map[string]string{"a": "mine", "b": "theirs"}
	second.Kubelet.MaxPods = new(int32(60))
	second.Kubelet.SystemReserved = map[string]string{"cpu": "1", "memory": "1Gi"}
	second.SSH = desired.SSH{User: "mine", Port: 2222, Bastion: "my-bastion"}
	want := []desired.Host{host("1"), second, host("3")}
	if diff := cmp.Diff(want, loaded.Cluster.ControlPlane); diff != "" {
		t.Errorf("control plane (-want +got):\n%s", diff)
	}
}

// TestTerraformHostIsKnownByAnyAddress names one host by different fields in the two files.
func TestTerraformHostIsKnownByAnyAddress(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ ours, theirs, public, private string }{
		"private there, public here": {
			ours: "publicAddress: 10.0.0.1", theirs: `"private_address": ["10.0.0.1"]`,
			public: "10.0.0.1", private: "10.0.0.1",
		},
		"public there, private here": {
			ours: "privateAddress: 192.0.2.1", theirs: `"public_address": ["192.0.2.1"]`,
			public: "192.0.2.1", private: "192.0.2.1",
		},
		"both there, the private one as public here": {
			ours: "publicAddress: 10.0.0.1", theirs: `"public_address": ["192.0.2.1"], "private_address": ["10.0.0.1"]`,
			public: "192.0.2.1", private: "10.0.0.1",
		},
		"private there, both here": {
			ours:   "publicAddress: 192.0.2.1, privateAddress: 10.0.0.1",
			theirs: `"private_address": ["10.0.0.1"]`, public: "192.0.2.1", private: "10.0.0.1",
		},
		"an IPv6 address in two spellings": {
			ours:   "publicAddress: 10.0.0.9, ipv6Addresses: ['2001:db8:0::1']",
			theirs: `"public_address": ["10.0.0.1"], "ipv6_addresses": [["2001:DB8::1"]]`,
			public: "10.0.0.1", private: "10.0.0.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const settings = ", taints: [], labels: {a: mine}, hostname: own"
			check := func(h desired.Host) {
				t.Helper()
				want := desired.Host{
					Role: h.Role, ID: tt.public, PublicAddress: tt.public, PrivateAddress: tt.private, Hostname: "own",
					Labels: map[string]string{"a": "mine"}, Taints: []desired.Taint{},
					SSH: desired.SSH{User: "theirs"}, IPv6Addresses: h.IPv6Addresses,
				}
				if diff := cmp.Diff(want, h); diff != "" {
					t.Errorf("host (-want +got):\n%s", diff)
				}
			}
			group := `{` + tt.theirs + `, "ssh_user": "theirs"}`
			const demo = head + "name: demo\ncloudProvider: {none: {}}\n"
			host := "{hosts: [{" + tt.ours + settings + "}]}"
			loaded := load(t, demo+"controlPlane: "+host,
				`{"kubeone_hosts": {"value": {"control_plane": `+group+`}}}`)
			check(loaded.Cluster.ControlPlane[0])
			loaded = load(t, demo+"controlPlane: {hosts: [{publicAddress: 192.0.2.100}]}\nstaticWorkers: "+host,
				`{"kubeone_static_workers": {"value": {"a": `+group+`}}}`)
			if n := len(loaded.Cluster.Workers); n != 1 {
				t.Fatalf("%d workers, want the one in both", n)
			}
			check(loaded.Cluster.Workers[0])
		})
	}
}

func TestTerraformMergeRules(t *testing.T) {
	t.Parallel()
	const withHosts = `{"kubeone_hosts": {"value": {"control_plane": {"cluster_name": "demo", "cloud_provider": ` +
		`"none", ` + three + `}}}`
	tests := []struct {
		name, manifest, tf string
		got                func(manifest.Loaded) any
		want               any
	}{
		{
			name: "name and provider are taken where the manifest has none",
			tf:   withHosts + `}`,
			got:  func(l manifest.Loaded) any { return l.Cluster.Name },
			want: "demo",
		},
		{
			name:     "endpoint and alternative names replace the manifest's",
			manifest: "apiEndpoint: {host: a, port: 443, alternativeNames: [b, c]}",
			tf: withHosts +
				`, "kubeone_api": {"value": {"endpoint": "x", "apiserver_alternative_names": ["y"]}}}`,
			got:  func(l manifest.Loaded) any { return l.Cluster.Endpoint },
			want: desired.Endpoint{Host: "x", Port: 443, AlternativeNames: []string{"y"}},
		},
		{
			name:     "an empty endpoint leaves the manifest's",
			manifest: "apiEndpoint: {host: a, alternativeNames: [b]}",
			tf:       withHosts + `, "kubeone_api": {"value": {"endpoint": "", "apiserver_alternative_names": []}}}`,
			got:      func(l manifest.Loaded) any { return l.Cluster.Endpoint },
			want:     desired.Endpoint{Host: "a", Port: 6443, AlternativeNames: []string{"b"}},
		},
		{
			name: "without an endpoint the first host is it",
			tf:   withHosts + `}`,
			got:  func(l manifest.Loaded) any { return l.Cluster.Endpoint.Host },
			want: "192.0.2.1",
		},
		{
			name:     "the proxy is filled up, and carried out",
			manifest: "proxy: {http: 'http://mine:1'}",
			tf: withHosts +
				`, "proxy": {"value": {"http": "http://theirs:2", "https": "http://theirs:2", "noProxy": "a,b"}}}`,
			got: func(l manifest.Loaded) any { return l.Cluster.Proxy },
			want: desired.Proxy{
				HTTP:    "http://mine:1",
				HTTPS:   "http://theirs:2",
				NoProxy: "127.0.0.1/8,localhost,cluster.local,10.244.0.0/16,10.96.0.0/12,a,b",
			},
		},
		{
			name: "untaint means no taints",
			tf:   hostsOutput(`, "untaint": true, "cluster_name": "demo", "cloud_provider": "none"`),
			got:  func(l manifest.Loaded) any { return l.Cluster.ControlPlane[0].Taints },
			want: []desired.Taint{},
		},
		{
			name:     "the leader is Terraform's",
			manifest: "controlPlane: {hosts: [{publicAddress: 192.0.2.1, isLeader: true}]}",
			tf:       hostsOutput(`, "leader_ip": "10.0.0.3", "cluster_name": "demo", "cloud_provider": "none"`),
			got: func(l manifest.Loaded) any {
				var leaders []string
				for _, h := range l.Cluster.ControlPlane {
					if h.IsLeader {
						leaders = append(leaders, h.ID)
					}
				}
				return leaders
			},
			want: []string{"192.0.2.3"},
		},
		{
			name: "static workers are added in the order of their groups, and one in both is one",
			manifest: "staticWorkers: {hosts: [{publicAddress: 192.0.2.50}, {publicAddress: 192.0.2.31, " +
				"labels: {a: mine}}]}",
			tf: withHosts + `, "kubeone_static_workers": {"value": {
				"b": {"public_address": ["192.0.2.40"]},
				"a": {"public_address": ["192.0.2.30", "192.0.2.31"], "private_address": ["10.0.0.30", "10.0.0.31"],
					"labels": {"a": "theirs"}}}}}`,
			got: func(l manifest.Loaded) any {
				var ids []string
				for _, h := range l.Cluster.Workers {
					ids = append(ids, h.ID+" "+h.PrivateAddress+" "+h.Labels["a"])
				}
				return ids
			},
			want: []string{"192.0.2.50 192.0.2.50 ", "192.0.2.31 10.0.0.31 mine", "192.0.2.30 10.0.0.30 theirs",
				"192.0.2.40 192.0.2.40 "},
		},
		{
			name: "hosts with private addresses only",
			tf: `{"kubeone_hosts": {"value": {"control_plane": {"cluster_name": "demo", "cloud_provider": "none", ` +
				`"public_address": [], "private_address": ["10.0.0.1"], "ssh_hosts_keys": null}}}}`,
			got: func(l manifest.Loaded) any {
				return []string{l.Cluster.ControlPlane[0].ID, l.Cluster.ControlPlane[0].PublicAddress}
			},
			want: []string{"10.0.0.1", "10.0.0.1"},
		},
		{
			name:     "without hosts of Terraform's the manifest's stay",
			manifest: "name: demo\ncloudProvider: {none: {}}\ncontrolPlane: {hosts: [{publicAddress: 192.0.2.1}]}",
			tf:       `{"kubeone_api": {"value": {"endpoint": "x"}}}`,
			got:      func(l manifest.Loaded) any { return l.Cluster.ControlPlane[0].ID },
			want:     "192.0.2.1",
		},
		{
			name: "the outputs of a state",
			tf:   `{"version": 4, "terraform_version": "1.9.0", "resources": [], "outputs": ` + withHosts + `}}`,
			got:  func(l manifest.Loaded) any { return len(l.Cluster.ControlPlane) },
			want: 3,
		},
		{
			name: "escapes and other people's outputs",
			tf:   withHosts + `, "other": {"value": {"x": "\ud83d\ude00 \u003c"}}}`,
			got:  func(l manifest.Loaded) any { return l.Cluster.Name },
			want: "demo",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, tt.got(load(t, head+tt.manifest, tt.tf))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOutputInUTF16 reads output redirected by PowerShell.
func TestOutputInUTF16(t *testing.T) {
	t.Parallel()
	const text = `{"kubeone_hosts": {"value": {"control_plane": {"cluster_name": "dem\u00f6", ` +
		`"cloud_provider": "none", "public_address": ["192.0.2.1"], "labels": {"é": "😀"}}}}}`
	for name, order := range map[string]binary.AppendByteOrder{
		"little endian": binary.LittleEndian, "big endian": binary.BigEndian,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := order.AppendUint16(nil, 0xfeff)
			for _, unit := range utf16.Encode([]rune(text)) {
				data = order.AppendUint16(data, unit)
			}
			dir := t.TempDir()
			o := manifest.Options{
				ManifestPath: filepath.Join(dir, "kubeone.yaml"), TerraformPath: filepath.Join(dir, "tf"),
			}
			write(t, o.ManifestPath, []byte(head))
			write(t, o.TerraformPath, data)
			if got := said(t, o); !strings.Contains(got, `"demö" is not a DNS-1123 subdomain`) ||
				!strings.Contains(got, `"😀" is not a valid label value`) {
				t.Errorf("it was read as other text:\n%s", got)
			}
		})
	}
}

func TestTerraformWorkersAreFilledUp(t *testing.T) {
	t.Parallel()
	const own = head + `
name: demo
cloudProvider: {hetzner: {}}
controlPlane: {hosts: [{publicAddress: 192.0.2.1}]}
dynamicWorkers:
  - name: a
    replicas: 1
    providerSpec:
      operatingSystem: ubuntu
      cloudProviderSpec: {serverType: mine}
`
	loaded := load(t, own, `{"kubeone_workers": {"value": {
		"a": {"replicas": 5, "providerSpec": {"cloudProviderSpec": {"serverType": "theirs", "location": "nbg1",
			"labels": {}}}},
		"b": {"replicas": 2, "providerSpec": {"cloudProviderSpec": {"serverType": "theirs"}}}}}}`)
	var got struct {
		DynamicWorkers []struct {
			Name         string
			Replicas     int
			ProviderSpec struct{ CloudProviderSpec map[string]string }
		}
	}
	decodeYAML(t, loaded.ManifestText, &got)
	text, err := json.Marshal(got.DynamicWorkers)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"Name":"a","Replicas":1,"ProviderSpec":{"CloudProviderSpec":{"location":"nbg1","serverType":"mine"}}},` +
		`{"Name":"b","Replicas":2,"ProviderSpec":{"CloudProviderSpec":{"serverType":"theirs"}}}]`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("dynamic workers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cloudProvider.hetzner", "dynamicWorkers"}, loaded.Cluster.NotCarriedOut,
		cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("not carried out (-want +got):\n%s", diff)
	}
}

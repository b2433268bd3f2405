package fleet

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func sampleLab() *Lab {
	lab := &Lab{
		Name: "x", KubernetesVersion: "1.36.3", CNI: "flannel", Dir: "/state/x", Endpoint: "172.31.9.10", SSHUser: "ops",
		PinHostKeys: true,
	}
	for _, name := range []string{"lb", "cp-1", "cp-2", "worker-1", "worker-2"} {
		role := map[byte]Role{'l': LoadBalancer, 'c': ControlPlane, 'w': Worker}[name[0]]
		host := lab.newHost(name, role, "172.31.9.1"+name[len(name)-1:])
		host.HostKeys = []string{"ssh-ed25519 KEY" + name, "ecdsa-sha2-nistp256 OTHER"}
		host.Spare = name == "worker-2"
		lab.Hosts = append(lab.Hosts, host)
	}
	return lab
}

func TestManifestOmitsSpareHosts(t *testing.T) {
	type host struct {
		PublicAddress, PrivateAddress, Hostname, SSHUsername, SSHPrivateKeyFile, SSHHostPublicKey string
	}
	var got struct {
		APIVersion, Kind, Name      string
		Versions                    struct{ Kubernetes string }
		APIEndpoint                 struct{ Host string }
		ControlPlane, StaticWorkers struct{ Hosts []host }
	}
	lab := sampleLab()
	if err := yaml.Unmarshal(renderManifest(lab), &got); err != nil {
		t.Fatal(err)
	}
	if got.APIVersion != "kubeone.k8c.io/v1beta2" || got.Kind != "KubeOneCluster" ||
		got.Versions.Kubernetes != "1.36.3" || got.APIEndpoint.Host != "172.31.9.10" {
		t.Errorf("head of the manifest: %+v", got)
	}
	want := []host{{"172.31.9.11", "172.31.9.11", "worker-1", "ops", "/state/x/id_ed25519", "KEYworker-1"}}
	if diff := cmp.Diff(want, got.StaticWorkers.Hosts); diff != "" {
		t.Error(diff)
	}
	if len(got.ControlPlane.Hosts) != 2 {
		t.Errorf("%d control planes, want 2", len(got.ControlPlane.Hosts))
	}
	lab.PinHostKeys = false
	if strings.Contains(string(renderManifest(lab)), "KEY") {
		t.Error("the manifest pins keys that it shall not pin")
	}
}

func TestTerraformOutputHasSameHosts(t *testing.T) {
	text, err := terraformOutput(sampleLab())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]struct{ Value map[string]any }
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	group := func(names ...string) map[string]any {
		group := map[string]any{"ssh_user": "ops", "ssh_private_key_file": "/state/x/id_ed25519"}
		var addresses, hostnames, keys []any
		for _, name := range names {
			addresses = append(addresses, "172.31.9.1"+name[len(name)-1:])
			hostnames = append(hostnames, name)
			keys = append(keys, "KEY"+name)
		}
		group["public_address"], group["private_address"], group["hostnames"], group["ssh_hosts_keys"] = addresses,
			addresses, hostnames, keys
		return group
	}
	controlPlane := group("cp-1", "cp-2")
	controlPlane["cluster_name"], controlPlane["cloud_provider"] = "x", "none"
	want := map[string]struct{ Value map[string]any }{
		"kubeone_api":            {map[string]any{"endpoint": "172.31.9.10"}},
		"kubeone_hosts":          {map[string]any{"control_plane": controlPlane}},
		"kubeone_static_workers": {map[string]any{"workers": group("worker-1")}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestKnownHostsHasAllKeys(t *testing.T) {
	text := string(knownHosts(sampleLab().Hosts))
	if lines := strings.Count(text, "\n"); lines != 10 {
		t.Errorf("%d lines, want two for each of five hosts:\n%s", lines, text)
	}
	if !strings.Contains(text, "172.31.9.12 ssh-ed25519 KEYcp-2\n") {
		t.Errorf("cp-2's key is missing:\n%s", text)
	}
}

func TestLoadBalancerSkipsHangingHost(t *testing.T) {
	config := haproxyConfig(sampleLab().ControlPlanes())
	for _, line := range []string{
		"    server cp-1 172.31.9.11:6443\n", "    server cp-2 172.31.9.12:6443\n",
		"option httpchk GET /readyz", "check-ssl verify none", "timeout check 1s", "option redispatch",
		"timeout connect 500ms",
	} {
		if !strings.Contains(config, line) {
			t.Errorf("haproxy's configuration lacks %q:\n%s", line, config)
		}
	}
	if strings.Count(config, "    server ") != 2 {
		t.Errorf("haproxy's configuration has other servers than the control planes:\n%s", config)
	}
}

func TestOwnerIsSameProcess(t *testing.T) {
	if !isAlive(ownProcess()) {
		t.Errorf("this process, %s, is not alive", ownProcess())
	}
	pid, _, _ := strings.Cut(ownProcess(), "-")
	for _, owner := range []string{pid + "-1", "1999999999-1", "", pid + "-"} {
		if isAlive(owner) {
			t.Errorf("%q is alive", owner)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, options := range map[string]Options{
		"upper case": {Name: "Lab"}, "too long": {Name: strings.Repeat("a", 33)}, "user": {SSHUser: "admin"},
		"too many": {ControlPlanes: 40}, "negative": {Workers: -1}, "release": {Debian: "13"},
		"release of a host":   {DebianOf: map[string]string{"worker-1": "13"}},
		"image and a release": {Image: "x", Debian: "trixie"},
	} {
		if err := options.setDefaults(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestBundlesOfSeveralVersionsCoexist(t *testing.T) {
	cache, lab := t.TempDir(), sampleLab()
	lab.Dir = t.TempDir()
	for _, version := range []string{"1.36.1", "1.36.3", "1.36.3"} {
		made := filepath.Join(cache, version)
		if err := os.WriteFile(made, []byte(version), 0o600); err != nil {
			t.Fatal(err)
		}
		lab.KubernetesVersion = version
		if err := lab.useBundle(made); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{lab.Bundle, lab.BundlePath(version), lab.Path("bundle.tar")} {
			if got, err := os.ReadFile(path); err != nil || string(got) != version {
				t.Errorf("%s: %q, %v; want that of %s", path, got, err, version)
			}
		}
	}
	if err := os.RemoveAll(cache); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(lab.BundlePath("1.36.1")); err != nil || string(got) != "1.36.1" {
		t.Errorf("without the cache, the older bundle: %q, %v", got, err)
	}
}

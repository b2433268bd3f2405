package cloud

import (
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"

	"kubeone/internal/model/desired"
	"kubeone/internal/testutil/golden"
)

// newInput returns the input of a cluster with everything that a cloud can use.
func newInput(p Provider) Input {
	in := Input{
		ClusterName: "demo", KubernetesVersion: "1.36.3", PodSubnet: "10.244.0.0/16", Credentials: map[string]string{},
	}
	for _, v := range p.Variables {
		in.Credentials[v.Name] = "the-" + strings.ToLower(v.Name)
	}
	if p.NeedsConfig || p.Name == "aws" {
		in.Config = "[Global]\n"
	}
	if p.HasStorageConfig {
		in.StorageConfig = "[VirtualCenter]\n"
	}
	if p.Name == "hetzner" {
		in.Network = "my-network"
	}
	return in
}

// textOf returns the releases and objects as YAML documents.
func textOf(t *testing.T, p Provider, in Input) string {
	t.Helper()
	var out []string
	for _, r := range p.Releases(in) {
		text, err := yaml.Marshal(map[string]any{
			"chart": r.Chart.String(), "manager": r.Manager, "values": r.Values,
		})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	for _, o := range p.Objects(in) {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return strings.Join(out, "---\n")
}

func TestReleasesAndObjectsAreTheGoldenFiles(t *testing.T) {
	t.Parallel()
	for _, p := range All() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			golden.Check(t, "testdata/"+p.Name+".golden.yaml", textOf(t, p, newInput(p)))
		})
	}
}

// A manifest with as little as possible, and with a registry of its own.
func TestSettingsThatAreNotSet(t *testing.T) {
	t.Parallel()
	aws, _ := Find("aws")
	bare := Input{ClusterName: "demo", KubernetesVersion: "1.34.2", PodSubnet: "10.244.0.0/16"}
	if text := textOf(t, aws, bare); strings.Contains(text, "secret") || !strings.Contains(text, "tag: v1.34.0") {
		t.Errorf("with the role of the instance:\n%s", text)
	}
	for _, p := range All() {
		in := newInput(p)
		in.NoStorage, in.Registry = true, desired.Registry{Overwrite: "registry.example.com"}
		if releases := p.Releases(in); len(releases) != 1 || !releases[0].Manager {
			t.Errorf("%s without storage: %d releases", p.Name, len(releases))
		}
		text := textOf(t, p, in)
		if !strings.Contains(text, "registry.example.com/") {
			t.Errorf("%s does not use the registry:\n%s", p.Name, text)
		}
		if strings.Contains(text, "csi-vsphere.conf") {
			t.Errorf("%s without storage has its configuration:\n%s", p.Name, text)
		}
	}
}

// helm get values shows the values of a release.
func TestValuesContainNoSecret(t *testing.T) {
	t.Parallel()
	for _, p := range All() {
		in := newInput(p)
		in.Config = "the-config"
		for _, r := range p.Releases(in) {
			text, err := yaml.Marshal(r.Values)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{
				in.Config, in.Credentials[hcloudToken], in.Credentials[awsKeyID], in.Credentials[awsSecretKey],
				in.Credentials["NUTANIX_PASSWORD"], in.Credentials["VSPHERE_PASSWORD"],
			} {
				if secret != "" && strings.Contains(string(text), secret) {
					t.Errorf("%s: the values of %s contain %s", p.Name, r.Chart.Name, secret)
				}
			}
		}
	}
}

// A repository is searched with these ranges only when a release is planned.
func TestRangesOfVersionsAreValid(t *testing.T) {
	t.Parallel()
	for _, p := range All() {
		for _, r := range p.Releases(newInput(p)) {
			if _, err := semver.NewConstraint(r.Chart.Version); err != nil {
				t.Errorf("%s %q: %v", r.Chart.Name, r.Chart.Version, err)
			}
		}
	}
	allowed, err := semver.NewConstraint(followMinor(2, "1.36.3"))
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]bool{"2.34.1": false, "2.35.0": true, "2.36.4": true, "2.37.0": false} {
		if got := allowed.Check(semver.MustParse(version)); got != want {
			t.Errorf("%s: %t", version, got)
		}
	}
}

func TestChartsFollowKubernetes(t *testing.T) {
	t.Parallel()
	for kubernetes, want := range map[string]string{"1.34.2": ">=2.33.0 <2.35.0", "1.36.3": ">=2.35.0 <2.37.0"} {
		if got := followMinor(2, kubernetes); got != want {
			t.Errorf("%s: %s", kubernetes, got)
		}
	}
	if got := awsImageTag("1.36.3"); got != "v1.35.0" {
		t.Errorf("AWS: %s", got)
	}
}

func TestVsphereRefusesAPassword(t *testing.T) {
	t.Parallel()
	p, _ := Find("vsphere")
	for text, refused := range map[string]bool{
		"global:\n  secretName: vsphere-ccm-credentials\n": false,
		"vcenter:\n  a:\n    password: hidden\n":           true,
		"[Global]\npassword = \"hidden\"\n":                true,
	} {
		if got := p.CheckConfig(text); (got != "") != refused {
			t.Errorf("%q: %q", text, got)
		}
	}
}

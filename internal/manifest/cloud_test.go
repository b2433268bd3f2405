package manifest_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
)

// loadCloud loads a manifest with this cloudProvider, which is the text of a YAML map, and these other fields.
func loadCloud(t *testing.T, provider, others, credentials string, environment map[string]string) (manifest.Loaded,
	error) {
	t.Helper()
	text := strings.Replace(demo, "cloudProvider: {none: {}}", "cloudProvider: "+provider, 1)
	if text == demo {
		t.Fatal("the manifest has no line cloudProvider: {none: {}}")
	}
	files := map[string]string{"kubeone.yaml": text + others, "credentials.yaml": credentials}
	dir := writeFiles(t, files)
	return manifest.Load(t.Context(), manifest.Options{
		ManifestPath: dir + "/kubeone.yaml", CredentialsPath: dir + "/credentials.yaml", ReadAddons: true,
		Getenv: func(name string) string { return environment[name] },
	})
}

// releaseNames returns the names of the releases in order; that of a controller manager ends in "!".
func releaseNames(loaded manifest.Loaded) []string {
	var out []string
	for _, r := range loaded.Addons.Releases {
		name := r.Key()
		if r.CloudManager {
			name += "!"
		}
		out = append(out, name)
	}
	return out
}

func TestExternalClouds(t *testing.T) {
	t.Parallel()
	own := "helmReleases: [{chart: hcloud-csi, repoURL: https://charts.example.com, namespace: kube-system}]\n"
	vsphere := map[string]string{"VSPHERE_SERVER": "a", "VSPHERE_USER": "b", "VSPHERE_PASSWORD": "c"}
	nutanix := map[string]string{"NUTANIX_ENDPOINT": "a", "NUTANIX_USERNAME": "b", "NUTANIX_PASSWORD": "c"}
	for name, c := range map[string]struct {
		provider, others string
		environment      map[string]string
		releases         []string
		objects          int
	}{
		"aws with the role of the instance": {"{aws: {}, external: true}", "", nil,
			[]string{"kube-system/aws-cloud-controller-manager!", "kube-system/aws-ebs-csi-driver"}, 0},
		"azure": {"{azure: {}, external: true, cloudConfig: '{}'}", "", nil,
			[]string{"kube-system/cloud-provider-azure!", "kube-system/azuredisk-csi-driver"}, 1},
		"hetzner": {"{hetzner: {networkID: a}, external: true}", "", map[string]string{"HCLOUD_TOKEN": "a"},
			[]string{"kube-system/hcloud-cloud-controller-manager!", "kube-system/hcloud-csi"}, 1},
		"hetzner without storage": {"{hetzner: {}, external: true, disableBundledCSIDrivers: true}", "",
			map[string]string{"HCLOUD_TOKEN": "a"}, []string{"kube-system/hcloud-cloud-controller-manager!"}, 1},
		"hetzner with the operator's own storage": {"{hetzner: {}, external: true}", own,
			map[string]string{"HCLOUD_TOKEN": "a"},
			[]string{"kube-system/hcloud-cloud-controller-manager!", "kube-system/hcloud-csi"}, 1},
		"nutanix": {"{nutanix: {}, external: true}", "", nutanix, []string{"kube-system/nutanix-cloud-provider!"}, 1},
		"openstack": {"{openstack: {}, external: true, cloudConfig: '[Global]'}", "", nil,
			[]string{"kube-system/openstack-cloud-controller-manager!", "kube-system/openstack-cinder-csi"}, 1},
		"vsphere": {"{vsphere: {}, external: true, cloudConfig: a}", "", vsphere,
			[]string{"kube-system/vsphere-cpi!"}, 2},
		"vsphere with the driver's configuration": {"{vsphere: {}, external: true, cloudConfig: a, csiConfig: b}", "",
			vsphere, []string{"kube-system/vsphere-cpi!"}, 4},
		"vsphere without storage": {
			"{vsphere: {}, external: true, cloudConfig: a, csiConfig: b, disableBundledCSIDrivers: true}", "", vsphere,
			[]string{"kube-system/vsphere-cpi!"}, 2},
		"gce":              {"{gce: {}, external: true}", own, nil, []string{"kube-system/hcloud-csi"}, 0},
		"without external": {"{hetzner: {}}", "", nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loaded, err := loadCloud(t, c.provider, c.others, "{}", c.environment)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.releases, releaseNames(loaded)); diff != "" {
				t.Error(diff)
			}
			objects := 0
			for _, a := range loaded.Addons.Custom {
				objects += len(a.Objects)
			}
			if objects != c.objects {
				t.Errorf("%d objects, want %d", objects, c.objects)
			}
			if external := loaded.Cluster.ExternalCloud != ""; external != (name != "without external") {
				t.Errorf("external: %t", external)
			}
		})
	}
}

// The credentials file precedes the environment, and a variable for the controller manager one for all.
func TestCredentialsOfAnExternalCloud(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"HCLOUD_TOKEN": "for-all", "CCM_HCLOUD_TOKEN": "for-ccm"}
	for credentials, want := range map[string]string{
		"{}": "Zm9yLWNjbQ==", "HCLOUD_TOKEN: file": "ZmlsZQ==", "{HCLOUD_TOKEN: file, CCM_HCLOUD_TOKEN: ccm}": "Y2Nt",
	} {
		loaded, err := loadCloud(t, "{hetzner: {}, external: true}", "", credentials, environment)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := loaded.Addons.Custom[0].Objects[0]["data"].(map[string]any)
		if name := loaded.Addons.Custom[0].Name; name != desired.CloudAddon || data["HCLOUD_TOKEN"] != want {
			t.Errorf("%s: %s %v, want %s", credentials, name, data, want)
		}
		if len(loaded.Warnings) > 0 || strings.Contains(string(loaded.ManifestText), "token") {
			t.Errorf("%v\n%s", loaded.Warnings, loaded.ManifestText)
		}
	}
}

// The configuration of vSphere's storage driver contains credentials, also in the credentials file.
func TestConfigurationOfTheStorageDriver(t *testing.T) {
	t.Parallel()
	const inManifest = `{vsphere: {}, external: true, cloudConfig: a, csiConfig: "p={{ .Credentials.VSPHERE_PASSWORD }}"}`
	const variables = "VSPHERE_SERVER: a\nVSPHERE_USER: b\nVSPHERE_PASSWORD: hidden\n"
	for credentials, want := range map[string]string{
		variables: "p=hidden",
		variables + `csiConfig: "q={{ .Credentials.VSPHERE_USER }}"`: "q=b",
	} {
		loaded, err := loadCloud(t, inManifest, "", credentials, nil)
		if err != nil {
			t.Fatal(err)
		}
		secret := loaded.Addons.Custom[0].Objects[3]
		data, _ := secret["data"].(map[string]any)
		if data["csi-vsphere.conf"] != base64.StdEncoding.EncodeToString([]byte(want)) {
			t.Errorf("%v, want %s", secret, want)
		}
		if len(loaded.Warnings) > 0 || len(loaded.Cluster.NotCarriedOut) > 0 {
			t.Errorf("%v, not carried out: %v", loaded.Warnings, loaded.Cluster.NotCarriedOut)
		}
	}
}

func TestMistakesInAnExternalCloud(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		provider, credentials string
		environment           map[string]string
		want                  string
	}{
		"no cloud":        {"{none: {}, external: true}", "{}", nil, "cloudProvider.external: needs a cloud"},
		"Cloud Director":  {"{vmwareCloudDirector: {}, external: true}", "{}", nil, "is not supported for vmware"},
		"Equinix Metal":   {"{equinixmetal: {}}", "{}", nil, "write cloudProvider: {none: {}}"},
		"no token":        {"{hetzner: {}, external: true}", "{}", nil, "needs the credentials HCLOUD_TOKEN"},
		"token of a kind": {"{hetzner: {}, external: true}", "HCLOUD_TOKEN: [a]", nil, "expected text, got a list"},
		"half a key": {"{aws: {}, external: true}", "{}", map[string]string{"AWS_SECRET_ACCESS_KEY": "hidden"},
			"needs the credentials AWS_ACCESS_KEY_ID"},
		"no configuration": {"{openstack: {}, external: true}", "{}", nil, "is required for openstack with external"},
		"a missing credential": {"{azure: {}, external: true, cloudConfig: '{{ .Credentials.AZURE_CLIENT_ID }}'}", "{}", nil,
			"cloudProvider.cloudConfig: refers to the missing credentials AZURE_CLIENT_ID"},
		"a missing credential of the driver": {
			"{vsphere: {}, external: true, cloudConfig: a, csiConfig: '{{ .Credentials.A }}'}", "{}",
			map[string]string{"VSPHERE_SERVER": "a", "VSPHERE_USER": "b", "VSPHERE_PASSWORD": "c"},
			"cloudProvider.csiConfig: refers to the missing credentials A"},
		"a driver's configuration on another cloud": {"{aws: {}, external: true, csiConfig: hidden}", "{}", nil,
			"remove it: other storage drivers read cloudConfig or credentials"},
		"another template": {"{azure: {}, external: true, cloudConfig: '{{ .Name }}'}", "{}", nil, "contains a template"},
		"a password": {"{vsphere: {}, external: true}",
			"{cloudConfig: 'password: hidden', VSPHERE_SERVER: a, VSPHERE_USER: b, VSPHERE_PASSWORD: hidden}", nil,
			"contains a password"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := loadCloud(t, c.provider, "", c.credentials, c.environment)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	loaded, err := loadCloud(t, "{gce: {}, external: true}", "", "{}", nil)
	if err != nil || len(loaded.Warnings) != 1 || !strings.Contains(loaded.Warnings[0].Message, "no controller manager") {
		t.Errorf("without any controller manager: %v, %v", loaded.Warnings, err)
	}
}

// The configuration of a cloud refers to credentials of the environment and the credentials file.
func TestCredentialsInTheConfigurationOfACloud(t *testing.T) {
	t.Parallel()
	const config = "'{\"id\": \"{{ .Credentials.AZURE_CLIENT_ID }}\", \"key\": \"{{.Credentials.AZURE_CLIENT_SECRET}}\"}'"
	loaded, err := loadCloud(t, "{azure: {}, external: true, cloudConfig: "+config+"}", "", "AZURE_CLIENT_SECRET: hidden",
		map[string]string{"AZURE_CLIENT_ID": "someone"})
	if err != nil {
		t.Fatal(err)
	}
	data, _ := loaded.Addons.Custom[0].Objects[0]["data"].(map[string]any)
	encoded, _ := data["cloud-config"].(string)
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || string(text) != `{"id": "someone", "key": "hidden"}` {
		t.Errorf("%s %v", text, err)
	}
	if strings.Contains(string(loaded.ManifestText), "hidden") {
		t.Error("the kept manifest contains a credential")
	}
}

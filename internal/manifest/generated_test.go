package manifest_test

import (
	"slices"
	"strings"
	"testing"

	"kubeone/internal/manifest"
)

// generated are the parts of the manifests that "kubeone init" of KubeOne writes. Its golden files combine them.
func generated() map[string]string {
	const (
		aws    = "cloudProvider: {aws: {}, external: true}\n"
		addon  = "addons: {enable: true, addons: [{name: default-storage-class}]}\n"
		canal  = "clusterNetwork: {cni: {canal: {}}}\n"
		cilium = "clusterNetwork: {cni: {cilium: {enableHubble: true}}}\n"
		strict = "clusterNetwork: {cni: {cilium: {enableHubble: true, kubeProxyReplacement: strict}}, " +
			"kubeProxy: {skipInstallation: true}}\n"
		budget  = "coreDNS: {deployPodDisruptionBudget: true}"
		secrets = "encryptionProviders: {enable: true}"
		both    = "features: {" + budget + ", " + secrets + "}\n"
		scaler  = "{name: cluster-autoscaler}"
		backups = "{name: backups-restic, params: {awsDefaultRegion: a, resticPassword: b, s3Bucket: c}}"
	)
	out := map[string]string{
		"default with external": aws + addon + "clusterNetwork: {cni: {external: {}}}\n",
		"on none": "cloudProvider: {none: {}}\nmachineController: {deploy: false}\n" +
			"operatingSystemManager: {deploy: false}\n",
		"on azure": "cloudProvider: {azure: {}, external: true, cloudConfig: '{\"aadClientSecret\": \"{{ .Credentials." +
			"AZURE_CLIENT_SECRET }}\"}'}\n" + addon,
		"on openstack": "cloudProvider: {openstack: {}, external: true, cloudConfig: '[Global]'}\n" + addon,
		"on vsphere": "cloudProvider: {vsphere: {}, external: true, cloudConfig: \"[Global]\\nsecret-name = a\", " +
			"csiConfig: '[Global]'}\n" + addon,
		"on nutanix":        "cloudProvider: {nutanix: {}}\n" + addon,
		"on equinixmetal":   "cloudProvider: {equinixmetal: {}, external: true}\n" + addon,
		"on cloud director": "cloudProvider: {vmwareCloudDirector: {}}\n" + addon,
	}
	for _, cloud := range []string{"digitalocean", "gce", "hetzner", "kubevirt"} {
		out["on "+cloud] = "cloudProvider: {" + cloud + ": {}, external: true}\n" + addon
	}
	for name, network := range map[string]string{"canal": canal, "cilium": cilium, "cilium replacement": strict} {
		list := func(items ...string) string {
			return both + strings.Replace(addon, "}]", "}, "+strings.Join(items, ", ")+"]", 1)
		}
		out["default with "+name] = aws + addon + network
		out[name+" with coredns-pdb"] = aws + addon + network + "features: {" + budget + "}\n"
		out[name+" with encryption"] = aws + addon + network + "features: {" + secrets + "}\n"
		out[name+" with encryption and coredns-pdb"] = aws + addon + network + both
		out[name+" with autoscaler"] = aws + network + list(scaler)
		out[name+" with backups"] = aws + network + list(backups)
		out[name+" with addons"] = aws + network + list(scaler, backups)
	}
	return out
}

// TestManifestsThatKubeOneGenerates loads each of them, with hosts and a supported version. A refusal has one reason.
func TestManifestsThatKubeOneGenerates(t *testing.T) {
	t.Parallel()
	refusals := map[string]string{
		"on equinixmetal":   "cloudProvider.equinixmetal",
		"on cloud director": "default-storage-class is not supported with cloudProvider.vmwareCloudDirector",
		"on nutanix":        "default-storage-class is not supported with cloudProvider.nutanix",
	}
	for _, network := range []string{"canal", "cilium", "cilium replacement"} {
		refusals[network+" with autoscaler"] = `"cluster-autoscaler" is an addon of KubeOne that kubeone does not have`
		refusals[network+" with backups"] = `"backups-restic" is an addon of KubeOne that kubeone does not have`
		refusals[network+" with addons"] = `"cluster-autoscaler" is an addon of KubeOne that kubeone does not have`
	}
	ignored := map[string][]string{
		"on none": {"operatingSystemManager"},
	}
	all := generated()
	for name, text := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := writeFiles(t, map[string]string{"kubeone.yaml": "apiVersion: kubeone.k8c.io/v1beta2\nkind: KubeOneCluster\n" +
				"name: example\nversions: {kubernetes: 1.36.3}\ncontainerRuntime: {containerd: {}}\n" +
				"controlPlane: {hosts: [{publicAddress: 192.0.2.1}]}\n" + text})
			loaded, err := manifest.Load(t.Context(), manifest.Options{
				ManifestPath: dir + "/kubeone.yaml", ReadAddons: true,
				Getenv: func(string) string { return "credential" },
			})
			if refusal := refusals[name]; refusal != "" {
				if err == nil || !strings.Contains(err.Error(), refusal) {
					t.Errorf("%v, want %s", err, refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, field := range loaded.Cluster.NotCarriedOut {
				if !slices.Contains(ignored[name], field) {
					t.Errorf("%s is not carried out", field)
				}
			}
		})
	}
	t.Logf("%d manifests, %d of them refused", len(all), len(refusals))
}

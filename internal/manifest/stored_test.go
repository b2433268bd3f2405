package manifest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
)

const clusterFile = `
apiVersion: cluster.k8s.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  kubernetesVersion: 1.36.3
  providerSpec:
    value:
      apiVersion: kubeone.k8c.io/v1beta2
      kind: KubeOneCluster
      cloudProvider: {none: {}}
      containerRuntime: {containerd: {registries: {registry.example.com: {auth: {username: me, password: secret}}}}}
---
apiVersion: cluster.k8s.io/v1alpha1
kind: Machine
metadata:
  name: first
  labels: {rack: a}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", note: keep}
spec: {roles: [Master], providerSpec: {value: {cloudProvider: static, cloudProviderSpec: {publicAddress: 192.0.2.1}}}}
---
apiVersion: cluster.k8s.io/v1alpha1
kind: MachineDeployment
metadata: {name: odd}
spec:
  paused: true
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {versions: {kubelet: 1.36.3}, providerSpec: {value: {cloudProvider: ssh}}}
---
apiVersion: cluster.k8s.io/v1alpha1
kind: MachineSet
metadata: {name: set}
spec:
  selector: {matchLabels: {c: d}}
  template:
    metadata: {labels: {c: d}}
    spec: {versions: {kubelet: 1.36.3}, providerSpec: {value: {cloudProvider: ssh}}}
---
apiVersion: kubeone.k8c.io/v1alpha1
kind: Host
metadata: {name: spare}
spec: {address: 192.0.2.9, hostKeys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIwdzLz0IuON3fRSee1Y1eYThTr3F9KCsDs/z+W73VMJ]}
`

func TestObjectsOfAFileAreStored(t *testing.T) {
	t.Parallel()
	loaded, err := manifest.Load(t.Context(), manifest.Options{
		ManifestPath: "cluster.yaml", ManifestReader: strings.NewReader(clusterFile), ReadAddons: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !loaded.Cluster.Objects || !loaded.Controllers || len(loaded.Addons.Custom) != 1 {
		t.Fatalf("%v %v, %d addons", loaded.Cluster.Objects, loaded.Controllers, len(loaded.Addons.Custom))
	}
	addon := loaded.Addons.Custom[0]
	var got []string
	for _, o := range addon.Objects {
		metadata, _ := o["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		got = append(got, o["kind"].(string)+" "+namespace+"/"+metadata["name"].(string))
	}
	want := []string{
		"Cluster kube-system/demo", "Machine kube-system/first", "MachineSet kube-system/set", "Host /spare",
	}
	if diff := cmp.Diff(want, got); addon.Name != desired.ClusterAddon || diff != "" {
		t.Errorf("addon %s (-want +got):\n%s", addon.Name, diff)
	}
	machine, _ := addon.Objects[1]["metadata"].(map[string]any)
	wantMetadata := map[string]any{
		"name": "first", "namespace": "kube-system", "labels": map[string]any{"rack": "a"},
		"annotations": map[string]any{"note": "keep"},
	}
	if diff := cmp.Diff(wantMetadata, machine); diff != "" {
		t.Errorf("metadata of a Machine (-want +got):\n%s", diff)
	}
	text, err := json.Marshal(addon.Objects[0])
	if err != nil || strings.Contains(string(text), "secret") || !strings.Contains(string(text), "cidrBlocks") {
		t.Errorf("stored Cluster, %v:\n%s", err, text)
	}
	if d := loaded.Cluster.MachineDeployments; len(d) != 1 || d[0].Namespace != "kube-system" || d[0].Name != "odd" {
		t.Errorf("MachineDeployments %+v", d)
	}
}

func TestAManifestStoresNoObjects(t *testing.T) {
	t.Parallel()
	loaded, err := manifest.Load(t.Context(), manifest.Options{
		ManifestPath: "kubeone.yaml", ManifestReader: strings.NewReader(demo), ReadAddons: true,
	})
	if err != nil || loaded.Cluster.Objects || loaded.Objects != nil || len(loaded.Addons.Custom) > 0 {
		t.Errorf("%v, %+v", err, loaded.Addons)
	}
}

func TestObjectsFromAnotherMachineNameNoFiles(t *testing.T) {
	t.Parallel()
	for field, text := range map[string]string{
		"certificateAuthority.file": "certificateAuthority: {file: /etc/hostname}",
		"policyFilePath":            "features: {staticAuditLog: {enable: true, config: {policyFilePath: /etc/hostname}}}",
	} {
		const line = "      cloudProvider: {none: {}}\n"
		file := strings.Replace(clusterFile, line, line+"      "+text+"\n", 1)
		_, err := manifest.Load(t.Context(), manifest.Options{
			ManifestPath: "cluster.yaml", ManifestReader: strings.NewReader(file), NoFiles: true,
		})
		if err == nil || !strings.Contains(err.Error(), field) ||
			!strings.Contains(err.Error(), "a file on another machine") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

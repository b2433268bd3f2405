package manifest_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/provider/ssh"
	"kubeone/internal/manifest"
)

// TestTheProviderTakesTheManifestsMachines sets the usual fields of upstream manifests.
func TestTheProviderTakesTheManifestsMachines(t *testing.T) {
	t.Parallel()
	loaded := load(t, head+`
name: demo
cloudProvider: {none: {}}
controlPlane: {hosts: [{publicAddress: 192.0.2.1}]}
dynamicWorkers:
  - name: a
    replicas: 2
    providerSpec:
      operatingSystem: ubuntu
      operatingSystemSpec: {distUpgradeOnBoot: false}
      sshPublicKeys: [ssh-ed25519 AAAA me]
      network: {cidr: 10.0.0.0/24, gateway: 10.0.0.1, dns: {servers: [10.0.0.1]}}
      overwriteCloudConfig: "#cloud-config"
      labels: {tier: web}
      cloudProviderSpec: {hostSelector: {matchLabels: {rack: a}}}
`, "")
	var d v1alpha1.MachineDeployment
	text, err := json.Marshal(loaded.MachineDeployments[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if err := (&ssh.Provider{}).Validate(d.Spec.Template.Spec); err != nil {
		t.Errorf("the provider refuses its Machines: %v", err)
	}
	const at = "dynamicWorkers[0].providerSpec."
	want := []string{
		at + "sshPublicKeys", at + "operatingSystem", at + "operatingSystemSpec", at + "network",
		at + "overwriteCloudConfig",
	}
	if diff := cmp.Diff(want, loaded.Cluster.NotCarriedOut); diff != "" {
		t.Errorf("not carried out (-want +got):\n%s", diff)
	}
	if len(loaded.Notes) != len(want) {
		t.Errorf("notes: %v", loaded.Notes)
	}
	for _, note := range loaded.Notes {
		if note.Severity != manifest.Note || note.Line == 0 {
			t.Errorf("note: %+v", note)
		}
	}
}

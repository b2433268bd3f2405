package plan

import (
	"maps"
	"slices"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

const (
	cloudManager = "release/kube-system/manager"
	cloudStorage = "release/kube-system/storage"
	cloudSecrets = "addon/" + desired.CloudAddon
)

// withCloud gives the cluster an external cloud with a controller manager, a storage driver, and their Secrets.
func withCloud(in decide.Input) decide.Input {
	in.Want.ExternalCloud, in.KnowsAddons = "hetzner", true
	in.Addons = maps.Clone(in.Addons)
	in.Addons[desired.CloudAddon], in.CustomAddons = "secrets", []string{desired.CloudAddon}
	in.HelmReleases = []desired.HelmRelease{
		{Namespace: "kube-system", Name: "manager", Source: "a", Values: "b", TimeoutSeconds: 300, CloudManager: true},
		{Namespace: "kube-system", Name: "storage", Source: "a", Values: "b", TimeoutSeconds: 300},
	}
	return in
}

// Cluster DNS runs only after the controller manager has seen a Node, so no wait may come before that.
func TestTheCloudManagerComesBeforeOrdinaryPods(t *testing.T) {
	t.Parallel()
	p, _ := Build(Input{Decide: withCloud(bareCluster(1, 1))})
	manager, storage := stepByID(t, p, cloudManager), stepByID(t, p, cloudStorage)
	for _, first := range []string{cloudSecrets, "addon/flannel"} {
		if !slices.Contains(manager.Needs, first) {
			t.Errorf("the controller manager does not need %s, but %v", first, manager.Needs)
		}
	}
	if !slices.Contains(stepByID(t, p, "await-workloads").Needs, cloudManager) {
		t.Error("the wait for cluster DNS does not need the controller manager")
	}
	if !slices.Contains(storage.Needs, "await-workloads") {
		t.Errorf("the storage driver needs %v", storage.Needs)
	}
	waits := map[string]bool{}
	for _, s := range p.Steps {
		waits[s.ID] = s.Intent.Kind == step.NodeReady || s.Intent.Kind == step.AwaitWorkloads
	}
	for _, id := range manager.Needs {
		if waits[id] {
			t.Errorf("the controller manager waits for %s", id)
		}
	}
}

// Without a chart of kubeone, any release may be the controller manager.
func TestAllReleasesComeFirstInACloudWithoutAChart(t *testing.T) {
	t.Parallel()
	in := withCloud(bareCluster(1, 0))
	in.Want.ExternalCloud, in.HelmReleases[0].CloudManager = "gce", false
	p, _ := Build(Input{Decide: in})
	for _, id := range []string{cloudManager, cloudStorage} {
		if slices.Contains(stepByID(t, p, id).Needs, "await-workloads") {
			t.Errorf("%s waits for cluster DNS", id)
		}
	}
}

// An upgrade after an interrupted installation installs the controller manager with its Secrets first.
func TestAnUpgradeBeginsWithAMissingCloudManager(t *testing.T) {
	t.Parallel()
	in := withCloud(healthyCluster(1, 0))
	in.Want.KubernetesVersion = "1.36.4"
	p, _ := Build(Input{Decide: in})
	if p.Blocked != "" || !slices.Contains(stepByID(t, p, cloudManager).Needs, cloudSecrets) {
		t.Errorf("blocked %q, needs %v", p.Blocked, stepByID(t, p, cloudManager).Needs)
	}
	in.Is.API.HelmReleases = map[string]observed.HelmRelease{"kube-system/manager": {
		Managed: true, Status: observed.ReleaseDeployed, Source: "a", Values: "b",
	}}
	p, _ = Build(Input{Decide: in})
	if slices.ContainsFunc(p.Steps, func(s Step) bool { return s.ID == cloudManager }) {
		t.Error("an existing controller manager is installed again")
	}
}

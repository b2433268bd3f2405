package plan

import (
	"maps"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// withMachines wants a MachineDeployment, and controllers in the cluster.
func withMachines(in decide.Input) decide.Input {
	in.Want.Controllers = &desired.Controllers{
		Arch: "amd64", Index: "{}",
		Image: desired.Image{
			Name: "kubeone.k8c.io/kubeone:1", Digest: "sha256:i3", Blobs: []desired.Blob{{Digest: "sha256:c3"}},
		},
		Bundles: []desired.BundleFile{{Name: "kubeone-1.36.3-amd64-abc.tar", Size: 7}},
	}
	in.Want.MachineDeployments = []desired.MachineDeployment{{Namespace: "kube-system", Name: "pool", Object: "{}"}}
	in.Addons = maps.Clone(in.Addons)
	in.Addons[desired.ControllersAddon] = "controllers-1"
	return in
}

// clusterWithControllers returns a cluster in which all that is there.
func clusterWithControllers(in decide.Input) decide.Input {
	in.Is.API.Addons = maps.Clone(in.Is.API.Addons)
	in.Is.API.Addons[desired.ControllersAddon] = in.Addons[desired.ControllersAddon]
	in.Is.API.Pool = &observed.Pool{Deployments: []observed.MachineDeployment{
		{Namespace: "kube-system", Name: "pool", Kubelet: in.Want.KubernetesVersion},
	}}
	for id, h := range in.Is.Hosts {
		if h.Marker == nil || h.Marker.Role != string(desired.ControlPlane) {
			continue
		}
		h.ControllerFiles = observed.ControllerFiles{
			Image:   in.Want.Controllers.Image.Name + " " + in.Want.Controllers.Image.Digest,
			Bundles: map[string]int64{"kubeone-1.36.3-amd64-abc.tar": 7},
		}
		in.Is.Hosts[id] = h
	}
	return in
}

// TestANewerProgramRollsNoNode has another program apply the same manifest. It brings its image to control-plane hosts,
// and its DaemonSet into the cluster: no kubelet, no container runtime and no Machine has a step.
func TestANewerProgramRollsNoNode(t *testing.T) {
	t.Parallel()
	in := clusterWithControllers(withMachines(healthyCluster(3, 2)))
	if same, _ := Build(Input{Decide: in}); len(same.Steps) > 0 {
		t.Fatalf("the same program plans %v", same.Steps)
	}
	in.Want.Controllers.Image.Name, in.Want.Controllers.Image.Digest = "kubeone.k8c.io/kubeone:2", "sha256:i4"
	in.Addons[desired.ControllersAddon] = "controllers-2"
	kinds := map[step.Kind]int{}
	next, _ := Build(Input{Decide: in})
	for _, s := range next.Steps {
		kinds[s.Intent.Kind]++
		if s.Host != "" && in.Is.Hosts[s.Host].Marker.Role != string(desired.ControlPlane) {
			t.Errorf("%s is on a worker", s.ID)
		}
		if s.Risk != "" && s.Risk != NoRisk {
			t.Errorf("%s has the risk %s", s.ID, s.Risk)
		}
	}
	want := map[step.Kind]int{step.ControllerFiles: 3, step.ApplyAddon: 1, step.AwaitWorkloads: 1, step.SaveRecord: 1}
	if !maps.Equal(kinds, want) {
		t.Errorf("its steps are %v, want %v", kinds, want)
	}
}

// Other credentials for Machine hosts are kept with the record, and nothing else is done for them.
func TestCredentialsOfMachinesAreKeptWithTheRecord(t *testing.T) {
	t.Parallel()
	in := clusterWithControllers(withMachines(healthyCluster(1, 0)))
	in.Is.API.Pool.Credentials = observed.Yes
	if same, _ := Build(Input{Decide: in}); !same.Empty() {
		t.Fatalf("the same credentials plan %v", same.Steps)
	}
	in.Is.API.Pool.Credentials = observed.No
	p, _ := Build(Input{Decide: in})
	if len(p.Steps) != 1 || p.Steps[0].Intent.Kind != step.SaveRecord ||
		p.Steps[0].Reason != "credentials on Machine hosts differ" || len(p.Steps[0].Changes) != 2 {
		t.Errorf("other credentials plan %+v", p.Steps)
	}
	w := step.NewWorld(in, nil, 0)
	w.Predict(in.Want.ControlPlane[0], p.Steps[0].Intent)
	if w.Is.API.Pool.Credentials != observed.Yes || in.Is.API.Pool.Credentials != observed.No {
		t.Errorf("predicted %s, and observed %s", w.Is.API.Pool.Credentials, in.Is.API.Pool.Credentials)
	}
}

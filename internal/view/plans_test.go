package view

import (
	"fmt"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/testutil/decidetest"
)

// prod is what the cluster of the tests is made of: release, network plugin, one addon besides.
func prod(controlPlanes, workers int) decide.Input {
	in := decide.Input{
		Want: desired.Cluster{
			Name: "prod", KubernetesVersion: decidetest.Version, Digest: decidetest.Digest,
			Artifacts: map[string]desired.Artifacts{"amd64": releaseArtifacts()},
		},
		Config: map[string]map[string]string{},
		Addons: map[string]string{"flannel": "addon-1"},
	}
	in.Want.Network.CNI = desired.CNI{Name: "flannel", Supported: []string{"flannel"}}
	for i := range controlPlanes {
		in.Want.ControlPlane = append(in.Want.ControlPlane, wantedHost(desired.ControlPlane, "cp", 11+i, i+1))
	}
	for i := range workers {
		in.Want.Workers = append(in.Want.Workers, wantedHost(desired.Worker, "worker", 21+i, i+1))
	}
	in.Is.Hosts = map[string]observed.Host{}
	for _, h := range in.Want.Hosts() {
		in.Is.Hosts[h.ID] = decidetest.Bare(h)
		in.Config[h.ID] = map[string]string{"kubelet": "config-1"}
	}
	return in
}

func wantedHost(role desired.Role, prefix string, address, n int) desired.Host {
	id := fmt.Sprintf("203.0.113.%d", address)
	return desired.Host{
		ID: id, PublicAddress: id, PrivateAddress: id, Hostname: fmt.Sprintf("%s-%d", prefix, n), Role: role,
	}
}

func releaseArtifacts() desired.Artifacts {
	image := func(name string, roles ...desired.Role) desired.Image {
		return desired.Image{Name: "registry.k8s.io/" + name, Source: "registry.k8s.io/" + name, Roles: roles}
	}
	return desired.Artifacts{
		KubernetesVersion: decidetest.Version, Arch: "amd64", Pushed: true,
		Binaries: []desired.Binary{
			{Name: "containerd", Version: "2.3.5"}, {Name: "runc", Version: "1.4.0"},
			{Name: "kubelet", Version: decidetest.Version}, {Name: "kubeadm", Version: decidetest.Version},
		},
		Images: []desired.Image{
			image("kube-apiserver:v"+decidetest.Version, desired.ControlPlane),
			image("kube-proxy:v" + decidetest.Version), image("pause:3.10.1"),
		},
	}
}

// running is a cluster that matches its manifest, but for the hosts named, which are bare.
func running(controlPlanes, workers int, bare ...string) decide.Input {
	in := prod(controlPlanes, workers)
	in.Is.API = observed.API{
		Reached: observed.Yes, Version: decidetest.Version, Via: "203.0.113.11",
		Addons: map[string]string{"flannel": "addon-1"},
		Record: &observed.Record{Cluster: "prod", ManifestDigest: decidetest.Digest},
	}
	in.Is.Etcd.Reached = observed.Yes
	without := map[string]bool{}
	for _, name := range bare {
		without[name] = true
	}
	for _, h := range in.Want.Hosts() {
		if without[h.Hostname] {
			continue
		}
		is := decidetest.Member(h)
		is.Marker.Cluster = "prod"
		in.Is.Hosts[h.ID] = is
		in.Is.API.Nodes = append(in.Is.API.Nodes, decidetest.ReadyNode(h))
		if h.Role == desired.ControlPlane {
			in.Is.Etcd.Members = append(in.Is.Etcd.Members, decidetest.Voter(h))
		}
	}
	in.Is.API.Pods = decidetest.Pods(in.Want, in.Is.API.Nodes)
	return in
}

func build(in decide.Input) plan.Plan {
	p, _ := plan.Build(plan.Input{Decide: in})
	return p
}

// mutate changes what the named host said.
func mutate(in decide.Input, name string, how func(*observed.Host)) {
	h, _ := in.Want.Host(name)
	is := in.Is.Hosts[h.ID]
	how(&is)
	in.Is.Hosts[h.ID] = is
}

// install is three control-plane hosts and a worker on bare machines.
func install() plan.Plan {
	p, _ := plan.Build(plan.Input{Decide: prod(3, 1), FirstContacts: map[string]string{
		"203.0.113.21": "SHA256:9cJ8YSEBmGBoxx1TmCqEBbnJPp5CnMnyBbpXgPDuAuQ",
		"203.0.113.11": "SHA256:uNiVztksCsDhcc0u9e8BrA9ZYLLsWLzbgxIoZYEXAWM",
	}})
	return p
}

// oneMoreWorker is a worker that joins a running cluster, in which a rule of kubeadm's is still there.
func oneMoreWorker() plan.Plan {
	in := running(3, 2, "worker-2")
	in.Is.API.AutoApproval = observed.Yes
	return build(in)
}

// manyWorkers is seven workers that all get the same steps.
func manyWorkers() plan.Plan {
	var bare []string
	for n := range 7 {
		bare = append(bare, fmt.Sprintf("worker-%d", n+1))
	}
	in := running(3, 7, bare...)
	in.Is.API.AutoApproval = observed.Yes
	return build(in)
}

// restartedKubelet is a repair, few enough changes to be shown.
func restartedKubelet() plan.Plan {
	in := running(3, 1)
	mutate(in, "cp-2", func(h *observed.Host) {
		h.Kubelet.Active, h.Kubelet.State, h.Healthz = false, "inactive/dead", observed.No
	})
	mutate(in, "worker-1", func(h *observed.Host) { h.ClockSkew = 40 * time.Second })
	in.Is.API.Record.ManifestDigest = "manifest-0"
	return build(in)
}

// unreachable is a host of each role that does not answer: steps elsewhere, and instructions.
func unreachable() plan.Plan {
	in := running(3, 1)
	for _, name := range []string{"cp-3", "worker-1"} {
		mutate(in, name, func(h *observed.Host) {
			*h = observed.Host{
				ID: h.ID, Reach: observed.Unreachable, Class: "unreachable",
				Problem: "dial tcp " + h.ID + ":22: i/o timeout",
			}
		})
	}
	in.Is.Etcd.Members[2].Healthy = observed.No
	in.Is.API.Nodes[2].Ready, in.Is.API.Nodes[3].Ready = observed.Unknown, observed.Unknown
	in.Addons["metrics-server"] = "addon-2"
	return build(in)
}

// upgrade is a new patch version for one host of each role.
func upgrade() plan.Plan {
	in := running(1, 1)
	in.Want.KubernetesVersion = "1.36.4"
	return build(in)
}

// unsafe is a cluster that is to be safer than this version can make it: nothing is planned.
func unsafe() plan.Plan {
	in := running(1, 1)
	in.Config["203.0.113.21"] = map[string]string{"kubelet": "config-2"}
	in.Want.SecurityNotCarriedOut = []string{"features.encryptionProviders"}
	return build(in)
}

// everyAction has one step of each action, and a text that wants to move the cursor. No world leads to such a plan.
func everyAction() plan.Plan {
	p := build(running(3, 1))
	kinds := []step.Kind{step.Prepare, step.RestartUnits, step.Restore, step.ResetHost, step.Check}
	for i, a := range []plan.Action{plan.Create, plan.Change, plan.Replace, plan.Remove, plan.MustAct} {
		p.Steps = append(p.Steps, plan.Step{
			ID: string(kinds[i]) + "/cp-1", Host: "203.0.113.11", Title: "title", Action: a, Risk: plan.NoRisk,
			Reason: "reason \x1b[2J\x1b]0;owned\a\u202Edone", Changes: []string{"change\x1b[1A\none line"},
			Intent: step.Intent{Kind: kinds[i], Role: desired.ControlPlane, NodeName: "cp-1", Arch: "amd64"},
		})
	}
	p.Steps[2].Risk, p.Steps[3].Risk = plan.Restarts, plan.Drains
	return p
}

func nothing() plan.Plan { return build(running(3, 1)) }

// failing is a cluster of which no host answers.
func failing() plan.Plan {
	in := prod(1, 0)
	mutate(in, "cp-1", func(h *observed.Host) { *h = observed.Host{ID: h.ID, Reach: observed.Unreachable} })
	return build(in)
}

package view

import (
	"kubeone/internal/desired"
	"kubeone/internal/plan"
	"kubeone/internal/problem"
	"kubeone/internal/step"
)

// plans builds plans by hand, in the shape that plan.Build gives them.
type plans struct{ plan.Plan }

func newPlan(routes ...string) *plans {
	return &plans{plan.Plan{Format: plan.FormatVersion, Cluster: "prod", Routes: routes, Hosts: map[string]string{
		"203.0.113.11": "cp-1", "203.0.113.12": "cp-2", "203.0.113.13": "cp-3", "203.0.113.21": "worker-1",
		"203.0.113.22": "worker-2",
	}}}
}

func (p *plans) host(kind step.Kind, id, title, reason string, a plan.Action, needs []string,
	changes ...string) string {
	role := desired.ControlPlane
	if id >= "203.0.113.20" {
		role = desired.Worker
	}
	named := string(kind) + "/" + p.Hosts[id]
	p.Steps = append(p.Steps, plan.Step{
		ID: named, Host: id, Title: title, Reason: reason, Action: a, Risk: plan.NoRisk, Needs: needs, Changes: changes,
		Intent: step.Intent{Kind: kind, Role: role, NodeName: p.Hosts[id], Version: "1.36.3", Arch: "amd64"},
	})
	return named
}

func (p *plans) cluster(kind step.Kind, id, title, reason string, a plan.Action, needs []string,
	changes ...string) string {
	p.Steps = append(p.Steps, plan.Step{
		ID: id, Title: title, Reason: reason, Action: a, Risk: plan.NoRisk, Needs: needs, Changes: changes,
		Intent: step.Intent{Kind: kind, Version: "1.36.3"},
	})
	return id
}

func (p *plans) prepare(id string) string {
	prepared := p.host(step.Prepare, id, "install container runtime and kubelet", "no Kubernetes on it", plan.Create,
		nil,
		"containerd 2.3.5", "runc 1.4.0", "kubelet 1.36.3", "kubeadm 1.36.3", "kernel modules and settings",
		"containerd.service, kubelet.service")
	return p.host(step.Images, id, "import images", "8 images of Kubernetes 1.36.3", plan.Create, []string{prepared},
		"registry.k8s.io/kube-proxy:v1.36.3", "registry.k8s.io/pause:3.10.1")
}

const notMember = "not a member of the cluster"

func (p *plans) joinControlPlane(id string, needs ...string) string {
	pki := p.host(step.CopyPKI, id, "copy the CAs from cp-1", notMember, plan.Create, append(needs, p.prepare(id)),
		"/etc/kubernetes/pki")
	prepared := p.host(step.JoinPrepare, id, "join: certificates and kubelet", notMember, plan.Create, []string{pki},
		"certificates", "kubelet started")
	etcd := p.host(step.JoinEtcd, id, "join: etcd member", notMember, plan.Create, []string{prepared},
		"etcd member, first as a learner")
	last := p.host(step.JoinFinish, id, "join: control plane", notMember, plan.Create, []string{etcd},
		"API server, controller manager, scheduler", "Node "+p.Hosts[id])
	return p.ready(id, last)
}

func (p *plans) joinWorker(id string, needs ...string) string {
	last := p.host(step.JoinWorker, id, "join as worker", notMember, plan.Create, append(needs, p.prepare(id)),
		"kubelet started", "Node "+p.Hosts[id])
	return p.ready(id, last)
}

func (p *plans) ready(id, after string) string {
	return p.host(step.NodeReady, id, "Node Ready", "labels, annotations and taints of the manifest", plan.Create,
		[]string{after, "addon/flannel"})
}

func (p *plans) record(reason string, needs ...string) {
	p.cluster(step.SaveRecord, "record", "save manifest and record", reason, plan.Change, needs,
		"ConfigMap kube-system/kubeone, without secrets")
}

// install is three control-plane hosts and a worker on bare machines.
func install() plan.Plan {
	p := newPlan("install", "resources")
	images := p.prepare("203.0.113.11")
	init := p.host(step.Init, "203.0.113.11", "create the cluster", "no control-plane host belongs to a cluster",
		plan.Create, []string{images},
		"certificate authorities", "etcd, a single member", "API server, controller manager, scheduler",
		"kube-proxy and CoreDNS")
	p.ready("203.0.113.11", init)
	p.joinControlPlane("203.0.113.12", init)
	p.joinControlPlane("203.0.113.13", init)
	p.joinWorker("203.0.113.21", init)
	addon := p.cluster(step.ApplyAddon, "addon/flannel", "apply addon flannel", "not in the cluster", plan.Create,
		[]string{init})
	p.cluster(step.AwaitWorkloads, "await-workloads", "wait for cluster DNS and addons", "addons were applied",
		plan.Change, []string{addon})
	p.cluster(step.RevokeTokens, "revoke-tokens", "revoke the join tokens", "every host has joined", plan.Remove,
		[]string{"join-worker/worker-1"})
	p.record("record this run", "revoke-tokens")
	p.FirstContacts = map[string]string{
		"203.0.113.21": "SHA256:9cJ8YSEBmGBoxx1TmCqEBbnJPp5CnMnyBbpXgPDuAuQ",
		"203.0.113.11": "SHA256:uNiVztksCsDhcc0u9e8BrA9ZYLLsWLzbgxIoZYEXAWM",
	}
	return p.Plan
}

// oneMoreWorker is a worker that joins a running cluster.
func oneMoreWorker() plan.Plan {
	p := newPlan("join")
	token := p.cluster(step.RemoveAutoApproval, "remove-auto-approval",
		"remove kubeadm's approval of any Node's certificate", "with it, every join token is good for every Node",
		plan.Remove, nil, "ClusterRoleBinding kubeadm:node-autoapprove-bootstrap")
	ready := p.joinWorker("203.0.113.22", token)
	p.cluster(step.RevokeTokens, "revoke-tokens", "revoke the join tokens", "every host has joined", plan.Remove,
		[]string{"join-worker/worker-2"})
	p.record("record this run", "revoke-tokens", ready)
	return p.Plan
}

// manyWorkers is seven workers that all get the same steps.
func manyWorkers() plan.Plan {
	p := newPlan("join")
	token := p.cluster(step.RemoveAutoApproval, "remove-auto-approval",
		"remove kubeadm's approval of any Node's certificate", "with it, every join token is good for every Node",
		plan.Remove, nil, "ClusterRoleBinding kubeadm:node-autoapprove-bootstrap")
	for _, n := range "1234567" {
		id := "203.0.113.10" + string(n)
		p.Hosts[id] = "worker-10" + string(n)
		p.joinWorker(id, token)
	}
	return p.Plan
}

// restartedKubelet is a repair, few enough changes to be shown.
func restartedKubelet() plan.Plan {
	p := newPlan("repair", "nothing")
	p.host(step.RestartUnits, "203.0.113.12", "restart kubelet", "kubelet is not running", plan.Change, nil, "kubelet")
	p.Steps[0].Risk = plan.Restarts
	p.record("record this run", "restart-units/cp-2")
	p.Notes = []string{"worker-1: clock is 3s ahead; let it run NTP"}
	return p.Plan
}

// unreachable is a host that does not answer: steps elsewhere, and instructions.
func unreachable() plan.Plan {
	p := newPlan("instruct", "resources")
	p.cluster(step.ApplyAddon, "addon/metrics-server", "apply addon metrics-server",
		"the cluster has an older version of it", plan.Change, nil)
	p.record("record this run", "addon/metrics-server")
	id := "203.0.113.13"
	p.Operator = []problem.Instruction{
		{
			Host: id, Problems: []problem.Problem{timedOut(id)},
			Steps: []problem.Step{
				{Code: problem.InspectConnection, Parameters: problem.Parameters{"name": "cp-3", "address": id}},
				{
					Code:       problem.ReplaceSafely,
					Parameters: problem.Parameters{"name": "cp-3", "healthy": 2, "voters": 2, "quorum": 2},
				},
				{Code: problem.AwaitHealthy},
			},
		},
		{
			Problems: []problem.Problem{{
				Code:       problem.OrphanMember,
				Parameters: problem.Parameters{"member": "old (8e9e05c52164694d)", "state": "healthy"},
			}},
			Steps: []problem.Step{{Code: problem.SilenceMember}},
		},
	}
	p.Again = "what follows depends on what you do; apply again afterwards"
	return p.Plan
}

// upgrade is planned and not carried out.
func upgrade() plan.Plan {
	p := newPlan("upgrade")
	p.Blocked = "upgrading a cluster is not carried out by this version"
	p.Notes = []string{"cp-1 would be upgraded: kubelet 1.35.4, want 1.36.3",
		"worker-1 would be upgraded: kubelet 1.35.4, want 1.36.3"}
	return p.Plan
}

// everyAction has one step of each action, and a text that wants to move the cursor.
func everyAction() plan.Plan {
	p := newPlan("join")
	kinds := []step.Kind{step.Prepare, step.RestartUnits, step.Restore, step.ResetHost, step.Check}
	for i, a := range []plan.Action{plan.Create, plan.Change, plan.Replace, plan.Remove, plan.MustAct} {
		p.host(kinds[i], "203.0.113.11", "title", "reason \x1b[2J\x1b]0;owned\a\u202Edone", a, nil,
			"change\x1b[1A\none line")
	}
	p.Steps[2].Risk, p.Steps[3].Risk = plan.Restarts, plan.Drains
	return p.Plan
}

func nothing() plan.Plan { return newPlan("nothing").Plan }

func failing() plan.Plan { return newPlan("error").Plan }

package drive

import (
	"context"
	"errors"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/addons/resources"
	"kubeone/internal/apply"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/certificates"
	"kubeone/internal/cluster/drain"
	"kubeone/internal/cluster/helm"
	"kubeone/internal/cluster/record"
	"kubeone/internal/cluster/settings"
	"kubeone/internal/etcd"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/nodename"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/test/sim/world"
)

// api is the Kubernetes API as one run sees it. Like the real client it retries requests without an answer.
type api struct{ o *operator }

var _ apply.API = (*api)(nil)

var (
	errKilled = errors.New("the operator's program was killed")
	errSilent = errors.New("no answer")
)

// repeatUntilDone repeats a request until it is done.
func (a *api) repeatUntilDone(ctx context.Context, what string,
	request func(w *world.World) (done bool, err error)) error {
	ctx, cancel := apicall.WithDefaultTimeout(ctx, apicall.OpTimeout)
	defer cancel()
	for {
		broken := a.o.takeTime(ctx, what)
		if broken != nil && !errors.Is(broken, errBroken) {
			return broken
		}
		done, err := false, error(nil)
		a.o.sim.actAs(a.o, func() {
			switch w := a.o.sim.World; {
			case a.o.dead:
				err = errKilled
			case broken != nil:
			case w.APIReached():
				done, err = request(w)
			}
		})
		if done || err != nil {
			return err
		}
		if err := sleepFor(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}

// carryOutStep carries out the plan's step of that kind about a Node, or about the cluster.
func (a *api) carryOutStep(ctx context.Context, k step.Kind, node string) error {
	var call world.Call
	return a.repeatUntilDone(ctx, string(k)+"/"+node, func(w *world.World) (bool, error) {
		for _, s := range a.o.steps {
			if s.Intent.Kind != k || s.Intent.NodeName != node {
				continue
			}
			if call.Began == 0 {
				call.Began = w.Now
			}
			return w.Through(a.o.authorOf(s), s.Intent, &call, world.Digests{})
		}
		return false, errors.New("no step " + string(k) + " about " + node + " is in the plan")
	})
}

func (a *api) needAPI(ctx context.Context, what string) error {
	return a.repeatUntilDone(ctx, what, func(*world.World) (bool, error) { return true, nil })
}

// CreateJoinToken only needs the API.
func (a *api) CreateJoinToken(ctx context.Context, _ string, _ nodename.Claim, _ time.Duration) (
	token, id string, err error) {
	return "abcdef.0123456789abcdef", "abcdef", a.needAPI(ctx, "token")
}

// RevokeJoinToken only needs the API.
func (a *api) RevokeJoinToken(ctx context.Context, _ string) error { return a.needAPI(ctx, "revoke") }

// RevokeJoinTokens only needs the API.
func (a *api) RevokeJoinTokens(ctx context.Context, _ string) error { return a.needAPI(ctx, "revoke") }

func (a *api) awaitNode(ctx context.Context, name, what string, as func(*world.Node) bool) error {
	return a.repeatUntilDone(ctx, what+"/"+name, func(w *world.World) (bool, error) {
		return as(w.EtcdCluster().Objects.Node(name)), nil
	})
}

// WaitNode waits for the Node.
func (a *api) WaitNode(ctx context.Context, node string) error {
	return a.awaitNode(ctx, node, "exists", func(n *world.Node) bool { return n != nil })
}

// WaitNodeReady waits until the Node is Ready.
func (a *api) WaitNodeReady(ctx context.Context, node string) error {
	return a.awaitNode(ctx, node, "ready", func(n *world.Node) bool { return n != nil && n.Ready })
}

// WaitNodeVersion waits until the Node is Ready with that version.
func (a *api) WaitNodeVersion(ctx context.Context, node, version, _ string) error {
	return a.awaitNode(ctx, node, "version",
		func(n *world.Node) bool { return n != nil && n.Ready && n.Kubelet == version })
}

// WaitLeading does not wait: leader election of the controllers is not simulated.
func (a *api) WaitLeading(context.Context) error { return nil }

// WaitNodeSilent waits until the Node is not Ready.
func (a *api) WaitNodeSilent(ctx context.Context, node string) error {
	return a.awaitNode(ctx, node, "silent", func(n *world.Node) bool { return n == nil || !n.Ready })
}

// SetNodeMeta is part of the step that waits for the Node.
func (a *api) SetNodeMeta(ctx context.Context, node string, _, _ map[string]string, _ []desired.Taint) error {
	return a.carryOutStep(ctx, step.NodeReady, node)
}

// Drain cordons the Node and evicts its pods.
func (a *api) Drain(ctx context.Context, node string, o drain.Options) error {
	within, cancel := context.WithTimeout(ctx, drain.Limit(o.Timeout))
	defer cancel()
	err := a.carryOutStep(within, step.DrainNode, node)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errKilled) {
		return &drain.BlockedError{Node: node, Err: err}
	}
	return err
}

// Uncordon uncordons the Node if a run cordoned it.
func (a *api) Uncordon(ctx context.Context, node string) error {
	return a.repeatUntilDone(ctx, "reopen/"+node, func(w *world.World) (bool, error) {
		for _, s := range a.o.steps {
			if s.Intent.NodeName == node && (s.Intent.Kind == step.Uncordon || s.Intent.Kind == step.DrainNode) {
				w.Uncordon(a.o.authorOf(s), node)
				break
			}
		}
		return true, nil
	})
}

// DeleteNode deletes the Node.
func (a *api) DeleteNode(ctx context.Context, node string) error {
	return a.carryOutStep(ctx, step.DeleteNode, node)
}

// ApplyRelease and RemoveRelease only need the API: the simulator has no Helm releases.
func (a *api) ApplyRelease(ctx context.Context, _ helm.Release) error {
	return a.needAPI(ctx, "ApplyRelease")
}

// RemoveRelease only needs the API.
func (a *api) RemoveRelease(ctx context.Context, _, _ string, _ time.Duration) error {
	return a.needAPI(ctx, "RemoveRelease")
}

// Create carries out the plan's step.
func (a *api) Create(ctx context.Context, _ *unstructured.Unstructured) error {
	return a.carryOutStep(ctx, step.CreateMachines, "")
}

// Merge carries out the plan's step.
func (a *api) Merge(ctx context.Context, _ *unstructured.Unstructured, _ []byte) error {
	return a.carryOutStep(ctx, step.UpgradeMachines, "")
}

// SetKubeProxy carries out the plan's step.
func (a *api) SetKubeProxy(ctx context.Context, _ settings.Change) error {
	return a.needAPI(ctx, "SetSystem")
}

// RemoveKubeProxy carries out the plan's step.
func (a *api) RemoveKubeProxy(ctx context.Context) error {
	return a.carryOutStep(ctx, step.RemoveKubeProxy, "")
}

// PublishEndpoint carries out the plan's step.
func (a *api) PublishEndpoint(ctx context.Context, _ string, _ []string) error {
	return a.carryOutStep(ctx, step.PublishEndpoint, "")
}

// ScaleDNS only needs the API.
func (a *api) ScaleDNS(ctx context.Context, _ func(int32) int32) error {
	return a.needAPI(ctx, "scale")
}

// WaitRollout only needs the API.
func (a *api) WaitRollout(ctx context.Context, _ resources.Workload) ([]string, error) {
	return nil, a.needAPI(ctx, "rollout")
}

// WaitDeploymentAvailable only needs the API.
func (a *api) WaitDeploymentAvailable(ctx context.Context, _, name string) error {
	return a.needAPI(ctx, "available/"+name)
}

// stepKeeps reports whether the step applies what the record now contains.
func stepKeeps(s plan.Step, was world.Objects, now record.Record) bool {
	switch p := s.Intent.Params.(type) {
	case step.ApplyAddonParams:
		return was.Addons[p.Addon] != now.Addons[p.Addon]
	case step.RemoveAddonParams:
		return was.Addons[p.Addon] != "" && now.Addons[p.Addon] == ""
	}
	return s.Intent.Kind == step.SaveRecord && now.RunID != ""
}

// PublishCAs and AwaitRootCAs only need the API.
func (a *api) PublishCAs(ctx context.Context, _ []byte) error { return a.needAPI(ctx, "CAs") }

// AwaitRootCAs is like PublishCAs.
func (a *api) AwaitRootCAs(ctx context.Context, _ []string) error { return a.needAPI(ctx, "CAs") }

// UnawarePods returns no pods.
func (a *api) UnawarePods(ctx context.Context, _ []string) ([]string, error) {
	return nil, a.needAPI(ctx, "pods")
}

// DefineKinds only needs the API.
func (a *api) DefineKinds(ctx context.Context) error { return a.needAPI(ctx, "definitions") }

// SaveHostCredentials only needs the API.
func (a *api) SaveHostCredentials(ctx context.Context, _ desired.Credentials) error {
	return a.needAPI(ctx, "credentials")
}

// UpdateRecord changes the recorded addons and manifest.
func (a *api) UpdateRecord(ctx context.Context, change func(*record.Record) error) error {
	return a.repeatUntilDone(ctx, "record", func(w *world.World) (bool, error) {
		o := &w.EtcdCluster().Objects
		now := record.Record{
			Cluster: w.Name, ManifestDigest: o.Record, Addons: maps.Clone(o.Addons), Nodes: o.Known,
		}
		if err := change(&now); err != nil {
			return false, err
		}
		by := world.Author{Run: a.o.run}
		for _, s := range a.o.steps {
			if stepKeeps(s, *o, now) {
				by = a.o.authorOf(s)
			}
		}
		w.Keep(by, now.ManifestDigest, now.Addons, now.Nodes)
		return w.Write(), nil
	})
}

// DeleteMachines carries out the plan's step.
func (a *api) DeleteMachines(ctx context.Context) error {
	return a.carryOutStep(ctx, step.DeleteMachines, "")
}

// WaitHostsFree carries out the plan's step.
func (a *api) WaitHostsFree(ctx context.Context, _ time.Duration) error {
	return a.carryOutStep(ctx, step.AwaitHosts, "")
}

// RenewTokenSecrets carries out the plan's step.
func (a *api) RenewTokenSecrets(ctx context.Context, _ []string, _ func(string, string)) error {
	return a.needAPI(ctx, "RenewTokenSecrets")
}

// TrimExtensionCAs carries out the plan's step.
func (a *api) TrimExtensionCAs(ctx context.Context, _ string, _ []string) error {
	return a.needAPI(ctx, "TrimFrontProxyCA")
}

// RemoveAutoApproval carries out the plan's step.
func (a *api) RemoveAutoApproval(ctx context.Context) error {
	return a.carryOutStep(ctx, step.RemoveAutoApproval, "")
}

// ApprovePending has nothing to approve.
func (a *api) ApprovePending(context.Context, certificates.Expected, func(certificates.Decision)) error {
	return nil
}

// ServeApprovals has nothing to approve.
func (a *api) ServeApprovals(ctx context.Context, _ certificates.Expected, _ func(certificates.Decision)) {
	<-ctx.Done()
}

// Close does nothing.
func (a *api) Close() {}

// RewriteSecrets carries out the plan's step.
func (a *api) RewriteSecrets(ctx context.Context, tell func(int)) error {
	err := a.carryOutStep(ctx, step.RewriteSecrets, "")
	tell(0)
	return err
}

// members is etcd as one run sees it.
type members struct{ o *operator }

var _ apply.Etcd = (*members)(nil)

// Observe asks all members. A guard that is off makes all of them healthy.
func (m *members) Observe(ctx context.Context) (observed.Etcd, error) {
	if err := m.o.takeTime(ctx, "members"); err != nil {
		return observed.Etcd{}, err
	}
	var seen observed.Etcd
	m.o.sim.actAs(m.o, func() {
		if !m.o.dead {
			seen = m.o.sim.World.ObserveEtcd()
		}
	})
	if off := m.o.sim.Off; off == NoQuorum || off == Removal {
		for i := range seen.Members {
			seen.Members[i].Healthy = observed.Yes
		}
	}
	if seen.Reached != observed.Yes {
		return seen, errSilent
	}
	return seen, nil
}

// RemoveMember removes a member.
func (m *members) RemoveMember(ctx context.Context, id uint64) error {
	if err := m.o.takeTime(ctx, "remove"); err != nil {
		return err
	}
	done, err := false, error(nil)
	m.o.sim.actAs(m.o, func() {
		if m.o.dead {
			err = errKilled
			return
		}
		for _, s := range m.o.steps {
			if step.ParamsOf[step.RemoveEtcdParams](s.Intent).Member == etcd.HexID(id) {
				done, err = m.o.sim.World.Through(m.o.authorOf(s), s.Intent, &world.Call{}, world.Digests{})
			}
		}
	})
	if err == nil && !done {
		return errSilent
	}
	return err
}

// Close does nothing.
func (m *members) Close() error { return nil }

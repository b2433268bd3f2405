package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kubeone/internal/addons"
	"kubeone/internal/addons/resources"
	"kubeone/internal/addons/system"
	"kubeone/internal/cluster/inventory"
	"kubeone/internal/cluster/record"
	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// runOnCluster carries out a step that goes through the API or etcd.
func (r *Run) runOnCluster(ctx context.Context, s plan.Step) error {
	ctx, cancel := context.WithTimeout(ctx, StepLimit(s.Intent))
	defer cancel()
	var client API
	if s.Intent.Kind.NeedsAPI() {
		var err error
		if client, err = r.apiClient(); err != nil { //nolint:contextcheck // it outlives the step
			return err
		}
	}
	if err := r.checkLock(ctx, s); err != nil {
		return err
	}
	return r.carryOut(ctx, client, s)
}

func (r *Run) carryOut(ctx context.Context, client API, s plan.Step) error {
	do := clusterSteps()[s.Intent.Kind]
	if do == nil {
		return fmt.Errorf("a step of kind %q cannot be carried out through the API or etcd", s.Intent.Kind)
	}
	if err := r.checkGuard(ctx, s); err != nil {
		return err
	}
	ctx, done := r.Lock.While(ctx, s.Host)
	defer done()
	err := do(r, ctx, client, s)
	if denied := r.Lock.Denied(s.Host); err != nil && denied != nil {
		return errors.Join(denied, err)
	}
	return err
}

// clusterSteps maps each kind of step that does not run on a host to its function. The API is nil for steps that do not
// need it.
func clusterSteps() map[step.Kind]func(*Run, context.Context, API, plan.Step) error {
	return map[step.Kind]func(*Run, context.Context, API, plan.Step) error{
		step.RemoveAutoApproval: (*Run).removeAutoApproval,
		step.RevokeTokens:       (*Run).revokeTokens,
		step.NodeReady:          (*Run).waitNodeReady,
		step.ApplyAddon:         (*Run).applyAddon,
		step.SetSystem:          (*Run).setSystem,
		step.RewriteSecrets:     (*Run).rewriteSecrets,
		step.RenewTokenSecrets:  (*Run).renewTokenSecrets,
		step.TrimFrontProxyCA:   (*Run).trimExtensionCAs,
		step.TrimClientCA:       (*Run).trimExtensionCAs,
		step.PublishCA:          (*Run).publishCA,
		step.PodsTrustCA:        (*Run).checkPodsTrustCA,
		step.PublishEndpoint:    (*Run).publishEndpoint,
		step.ApproveServing:     (*Run).approveServing,
		step.RemoveAddon:        (*Run).removeAddon,
		step.ApplyRelease:       (*Run).applyRelease,
		step.RemoveRelease:      (*Run).removeRelease,
		step.RemoveKubeProxy:    (*Run).removeKubeProxy,
		step.AwaitWorkloads:     (*Run).awaitWorkloads,
		step.CreateMachines:     (*Run).createMachines,
		step.UpgradeMachines:    (*Run).upgradeMachines,
		step.SaveRecord:         (*Run).saveRecord,
		step.DrainNode:          (*Run).drainNode,
		step.Uncordon:           (*Run).uncordonNode,
		step.RemoveEtcd:         (*Run).removeMember,
		step.DeleteNode:         (*Run).deleteNode,
		step.DeleteMachines:     (*Run).deleteMachines,
		step.AwaitHosts:         (*Run).awaitHosts,
	}
}

func (r *Run) removeAutoApproval(ctx context.Context, client API, _ plan.Step) error {
	return client.RemoveAutoApproval(ctx)
}

// revokeTokens revokes this run's tokens, including tokens whose creation was never confirmed.
func (r *Run) revokeTokens(ctx context.Context, client API, _ plan.Step) error {
	r.state.Lock()
	ids := slices.Clone(r.state.tokenIDs)
	r.state.Unlock()
	for _, id := range ids {
		if err := client.RevokeJoinToken(ctx, id); err != nil {
			return err
		}
	}
	return client.RevokeJoinTokens(ctx, r.RunID)
}

func (r *Run) waitNodeReady(ctx context.Context, client API, s plan.Step) error {
	node, want := s.Intent.NodeName, step.ParamsOf[step.NodeReadyParams](s.Intent)
	if err := client.WaitNode(ctx, node); err != nil {
		return err
	}
	if err := client.SetNodeMeta(ctx, node, want.Labels, want.Annotations, want.Taints); err != nil {
		return err
	}
	return client.WaitNodeReady(ctx, node)
}

func (r *Run) addonByName(name string) (addons.Addon, error) {
	for _, a := range r.Addons {
		if a.Name == name {
			return a, nil
		}
	}
	return addons.Addon{}, fmt.Errorf("unknown addon %s", name)
}

func (r *Run) applyAddon(ctx context.Context, client API, s plan.Step) error {
	p := step.ParamsOf[step.ApplyAddonParams](s.Intent)
	addon, err := r.addonByName(p.Addon)
	if err != nil {
		return err
	}
	if addon.Name == desired.ClusterAddon {
		if err := client.DefineKinds(ctx); err != nil {
			return err
		}
	}
	err = client.ApplyAddon(ctx, inventory.Change{
		Addon: addon.Name, Objects: addon.Objects, Own: !addon.Custom, Delete: p.Delete,
	})
	if err != nil {
		return err
	}
	return client.UpdateRecord(ctx, func(record *record.Record) error {
		if record.Addons == nil {
			record.Addons = map[string]string{}
		}
		record.Cluster = r.Want.Name
		record.Addons[addon.Name] = addon.Digest
		record.AddRun(r.history.currentEntry())
		return nil
	})
}

// setSystem configures kube-proxy and cluster DNS from the manifest.
func (r *Run) setSystem(ctx context.Context, client API, s plan.Step) error {
	for _, app := range step.ParamsOf[step.SetSystemParams](s.Intent).Apps {
		var err error
		switch app {
		case system.KubeProxy:
			err = client.SetKubeProxy(ctx, func(config, kubeconfig string) (string, string, error) {
				return system.SetProxy(config, kubeconfig, r.Want)
			})
		case system.DNS:
			err = client.ScaleDNS(ctx, func(have int32) int32 { return system.DNSReplicas(r.Want, have) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// publishEndpoint writes the desired endpoint to the objects in the cluster.
func (r *Run) publishEndpoint(ctx context.Context, client API, s plan.Step) error {
	err := client.UpdateRecord(ctx, func(record *record.Record) error {
		record.Cluster, record.FormerEndpoints = r.Want.Name, step.ParamsOf[step.PublishEndpointParams](s.Intent).Former
		record.MarkRepaired(observed.RecordCluster, observed.RecordFormerEndpoints)
		return nil
	})
	if err != nil {
		return err
	}
	return client.PublishEndpoint(ctx, r.Want.Endpoint.String(), r.Want.APINames())
}

// approveServing approves pending kubelet certificates, in addition to the approvals during the whole run.
func (r *Run) approveServing(ctx context.Context, client API, _ plan.Step) error {
	return client.ApprovePending(ctx, r.expectedNodes(), r.reportDecision)
}

// awaitWorkloads waits until cluster DNS and the applied addons run on all their Nodes.
func (r *Run) awaitWorkloads(ctx context.Context, client API, s plan.Step) error {
	for _, a := range r.Addons {
		for _, w := range a.Wait {
			if err := r.awaitRollout(ctx, client, s, w); err != nil {
				return fmt.Errorf("addon %s: %w", a.Name, err)
			}
		}
	}
	if !r.Want.Network.KubeProxy.Skip {
		proxy := resources.Workload{Kind: "DaemonSet", Namespace: "kube-system", Name: "kube-proxy"}
		if err := r.awaitRollout(ctx, client, s, proxy); err != nil {
			return err
		}
	}
	return client.WaitDeploymentAvailable(ctx, "kube-system", "coredns")
}

func (r *Run) removeKubeProxy(ctx context.Context, client API, _ plan.Step) error {
	return client.RemoveKubeProxy(ctx)
}

// awaitRollout waits for one workload, except on Nodes that are not Ready.
func (r *Run) awaitRollout(ctx context.Context, client API, s plan.Step, w resources.Workload) error {
	excused, err := client.WaitRollout(ctx, w)
	if err == nil && len(excused) > 0 {
		r.emitEvent(Event{
			Type: Warning,
			Step: s.ID,
			Line: w.Name + ": did not wait for Nodes that are not Ready: " + strings.Join(excused, ", "),
		})
	}
	return err
}

func (r *Run) deleteMachines(ctx context.Context, client API, _ plan.Step) error {
	return client.DeleteMachines(ctx)
}

func (r *Run) awaitHosts(ctx context.Context, client API, s plan.Step) error {
	within := step.ParamsOf[step.AwaitHostsParams](s.Intent).TimeoutSeconds
	return client.WaitHostsFree(ctx, time.Duration(within)*time.Second)
}

// nodeNames returns the Node name of each host, by host ID. A host that did not answer, or whose name is unknown now,
// keeps its name from the record. Refused claims are left out. The hostname of a host without a Node is left out too,
// because the record would keep that name permanently.
func (r *Run) nodeNames(before map[string]string) map[string]string {
	now := map[string]string{}
	for _, h := range r.Want.Hosts() {
		name := ""
		if strings.EqualFold(h.Hostname, r.Plan.Nodes[h.ID]) || r.isNode(h.ID) {
			name = r.Plan.Nodes[h.ID]
		}
		silent := r.World.Hosts[h.ID].Reach != observed.Reached
		if known, ok := before[h.ID]; ok && (silent || name == "") {
			name = known
		}
		now[h.ID] = cmp.Or(name, strings.ToLower(h.ID))
	}
	return now
}

// isNode reports whether a host that answers is a Node: it joined before the run or during it.
func (r *Run) isNode(id string) bool {
	return r.World.Hosts[id].Reach == observed.Reached && (slices.ContainsFunc(r.World.API.Nodes,
		func(n observed.Node) bool { return n.Name == r.Plan.Nodes[id] }) ||
		slices.ContainsFunc(r.Plan.Steps, func(s plan.Step) bool {
			return s.Host == id && (s.Intent.Kind.Joins() || s.Intent.Kind.CreatesControlPlane())
		}))
}

// saveRecord stores the manifest just carried out, the Node of each host, and the history entry of this run. It stores
// known credentials first, because controllers use them as soon as they see the new record. It also repairs unreadable
// parts of the record, except data that exists nowhere else.
func (r *Run) saveRecord(ctx context.Context, client API, s plan.Step) error {
	if r.Credentials != nil {
		if err := client.SaveHostCredentials(ctx, *r.Credentials); err != nil {
			return err
		}
	}
	return client.UpdateRecord(ctx, func(record *record.Record) error {
		record.Cluster, record.ManifestDigest, record.Manifest, record.RunID = r.Want.Name, r.Want.Digest, r.Manifest,
			r.RunID
		record.Hardening = r.Want.Hardening
		repaired := decide.RepairableKeys(r.Want, r.World)
		if !record.IsUnreadable(observed.RecordNodes) || slices.Contains(repaired, observed.RecordNodes) {
			record.Nodes = r.nodeNames(record.Nodes)
		}
		if record.IsUnreadable(observed.RecordFormerEndpoints) {
			record.FormerEndpoints = r.Want.Endpoint.Former
		}
		record.MarkRepaired(repaired...)
		record.AddRun(r.history.entryAfter(s.ID, r.Now()))
		return nil
	})
}

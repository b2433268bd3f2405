package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kubeone/internal/addons"
	"kubeone/internal/cluster/jointoken"
	"kubeone/internal/cluster/record"
	"kubeone/internal/plan"
	"kubeone/internal/resources"
)

// clusterTimeout bounds a step that goes through the API.
const clusterTimeout = 10 * time.Minute

// runOnCluster carries out a step that goes through the API.
func (r *Run) runOnCluster(ctx context.Context, s plan.Step) error {
	client, err := r.client() //nolint:contextcheck // it outlives the step
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout+drainTime(s.Intent))
	defer cancel()
	if err := r.checkLock(ctx, s); err != nil {
		return err
	}
	switch s.Intent.Kind {
	case plan.JoinToken:
		return r.makeToken(ctx, client)
	case plan.RevokeToken:
		return r.revokeToken(ctx, client)
	case plan.NodeReady:
		return nodeReady(ctx, client, s.Intent)
	case plan.ApplyAddon:
		return r.applyAddon(ctx, client, s.Intent.Addon)
	case plan.AwaitWorkloads:
		return r.awaitWorkloads(ctx, client, s.ID)
	case plan.SaveRecord:
		return r.saveRecord(ctx, client, s.ID)
	case plan.DrainNode:
		return r.drain(ctx, client, s)
	case plan.Uncordon:
		return r.reopen(ctx, client, s)
	case plan.RemoveEtcd:
		return r.removeMember(ctx, s)
	case plan.DeleteNode:
		return r.deleteNode(ctx, client, s)
	}
	return fmt.Errorf("a step of kind %q cannot be carried out through the API", s.Intent.Kind)
}

func (r *Run) makeToken(ctx context.Context, client API) error {
	token, id, err := client.CreateJoinToken(ctx, r.RunID, jointoken.MaxTTL)
	if err != nil {
		return err
	}
	r.once.Lock()
	r.once.token, r.once.tokenMade = token, r.Now()
	r.once.tokenIDs = append(r.once.tokenIDs, id)
	r.once.Unlock()
	return nil
}

// revokeToken ends this run's tokens, also one whose making it was not told of.
func (r *Run) revokeToken(ctx context.Context, client API) error {
	r.once.Lock()
	ids := slices.Clone(r.once.tokenIDs)
	r.once.Unlock()
	for _, id := range ids {
		if err := client.RevokeJoinToken(ctx, id); err != nil {
			return err
		}
	}
	return client.RevokeJoinTokens(ctx, r.RunID)
}

func nodeReady(ctx context.Context, client API, i plan.Intent) error {
	if err := client.WaitNode(ctx, i.NodeName); err != nil {
		return err
	}
	if err := client.SetNodeMeta(ctx, i.NodeName, i.Labels, i.Annotation, i.Taints); err != nil {
		return err
	}
	return client.WaitNodeReady(ctx, i.NodeName)
}

func (r *Run) addon(name string) (addons.Addon, error) {
	for _, a := range r.Addons {
		if a.Name == name {
			return a, nil
		}
	}
	return addons.Addon{}, fmt.Errorf("addon %s is not known", name)
}

func (r *Run) applyAddon(ctx context.Context, client API, name string) error {
	addon, err := r.addon(name)
	if err != nil {
		return err
	}
	if _, err := client.Apply(ctx, addon.Objects); err != nil {
		return err
	}
	return client.UpdateRecord(ctx, func(record *record.Record) error {
		if record.Addons == nil {
			record.Addons = map[string]string{}
		}
		record.Cluster = r.Want.Name
		record.Addons[name] = addon.Digest
		record.AddRun(r.history.entry())
		return nil
	})
}

// awaitWorkloads waits until cluster DNS and the applied addons run everywhere they should.
func (r *Run) awaitWorkloads(ctx context.Context, client API, step string) error {
	var all []resources.Workload
	for _, a := range r.Addons {
		all = append(all, a.Wait...)
	}
	if !r.Want.Network.KubeProxy.Skip {
		all = append(all, resources.Workload{Kind: "DaemonSet", Namespace: "kube-system", Name: "kube-proxy"})
	}
	for _, w := range all {
		excused, err := client.WaitRollout(ctx, w)
		if err != nil {
			return err
		}
		if len(excused) > 0 {
			r.emit(Event{Type: Warning, Step: step, Line: w.Name + " was not awaited on Nodes that are not Ready: " + strings.Join(excused, ", ")})
		}
	}
	return client.WaitDeploymentAvailable(ctx, "kube-system", "coredns")
}

// saveRecord keeps the manifest, which is the one now carried out, and this run's entry in the history.
func (r *Run) saveRecord(ctx context.Context, client API, step string) error {
	return client.UpdateRecord(ctx, func(record *record.Record) error {
		record.Cluster, record.ManifestDigest, record.Manifest, record.RunID = r.Want.Name, r.Want.Digest, r.Manifest, r.RunID
		record.AddRun(r.history.entryAfter(step, r.Now()))
		return nil
	})
}

package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/cluster"
	"kubeone/internal/cluster/live"
	"kubeone/internal/componentconfig/settings"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/probe"
	"kubeone/internal/text/diff"
)

const (
	diffTimeout  = 30 * time.Second // for reading live state, only to inform the reader
	maxDiffBytes = 256 << 10        // bytes of differences on one host or in the cluster
)

// Diff returns the lines that the steps of the proposal change in files on hosts that are reconfigured or restored, in
// labels, annotations and taints of Nodes, and in objects that are set or applied. Other steps have no diff. Diff reads
// hosts and the API again and changes nothing. It never fails; parts that cannot be read are marked as unknown.
func (e *Engine) Diff(ctx context.Context, p Proposal) []diff.Set {
	ctx, cancel := context.WithTimeout(ctx, diffTimeout)
	defer cancel()
	var ids []string
	of := map[string][]diff.Change{} // by ID, because a host can claim the name of another
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(e.cfg.Parallel)
	for _, h := range p.Want.Hosts() {
		ids = append(ids, h.ID)
		group.Go(func() error {
			changes := append(e.hostDiff(ctx, p, h.ID), nodeDiff(p, h.ID)...)
			mu.Lock()
			defer mu.Unlock()
			of[h.ID] = boundChanges(changes)
			return nil
		})
	}
	var objects []diff.Change
	group.Go(func() error {
		objects = boundChanges(e.clusterDiff(ctx, p))
		return nil
	})
	_ = group.Wait() // the functions never fail
	sets := diff.Together(ids, of)
	for _, set := range sets {
		for i, id := range set.Hosts {
			set.Hosts[i] = cmp.Or(p.Plan.Hosts[id], id)
		}
	}
	if len(objects) > 0 {
		sets = append(sets, diff.Set{Changes: objects})
	}
	return sets
}

// boundChanges limits the length of a diff, because a faulty host can have files of any content.
func boundChanges(changes []diff.Change) []diff.Change {
	for _, set := range diff.Within(maxDiffBytes, []diff.Set{{Changes: changes}}) {
		return set.Changes
	}
	return nil
}

// hostDiff returns the changes in the files on a host.
func (e *Engine) hostDiff(ctx context.Context, p Proposal, id string) []diff.Change {
	var names, kept []string
	for _, s := range p.Plan.Steps {
		if s.Host == id {
			names = append(names, step.ParamsOf[step.ReconfigureParams](s.Intent).Configurations...)
			kept = append(kept, step.ParamsOf[step.RestoreFilesParams](s.Intent).Files...)
		}
	}
	if len(names)+len(kept) == 0 {
		return nil
	}
	h, _ := p.Want.Host(id)
	in := scriptInput(p, h, stepsOf(p.Plan)[id])
	read, paths := settings.Live{Failed: "it did not answer"}, settings.Paths(in.Input, names)
	if p.Observed.World.Hosts[id].Reach == observed.Reached && len(paths)+len(kept) > 0 {
		read = probe.Settings(ctx, e.HostOf(p, id), paths, kept)
	}
	var out []diff.Change
	if len(kept) > 0 {
		out = settings.Restored(kept, read)
	}
	out = append(out, settings.OfHost(in.Input, names, read)...)
	return append(out, settings.OfCredentials(names, p.Observed.World.Hosts[id])...)
}

// nodeDiff returns the changes in the Node of a host.
func nodeDiff(p Proposal, id string) []diff.Change {
	if !slices.ContainsFunc(p.Plan.Steps, func(s plan.Step) bool {
		return s.Host == id && s.Intent.Kind == step.NodeReady
	}) {
		return nil
	}
	h, _ := p.Want.Host(id)
	for _, n := range p.Observed.World.API.Nodes {
		if n.Name == p.Plan.NodeOf(id) {
			return settings.OfNode(h, n)
		}
	}
	return nil
}

// clusterDiff returns the changes in the objects in the cluster.
func (e *Engine) clusterDiff(ctx context.Context, p Proposal) []diff.Change {
	w := changedObjects(p)
	if !w.any() {
		return nil
	}
	if p.Observed.Access == nil || p.Observed.World.API.Reached != observed.Yes {
		return []diff.Change{diff.Summary("objects in the cluster", "no API server answers: "+NoAPI(p.Observed))}
	}
	client, err := cluster.Connect(*p.Observed.Access)
	if err != nil {
		return []diff.Change{diff.Summary("objects in the cluster", err.Error())}
	}
	defer client.Close()
	return e.objectsDiff(ctx, client, p, w)
}

func (e *Engine) objectsDiff(ctx context.Context, client *cluster.Client, p Proposal, w objects) []diff.Change {
	var out []diff.Change
	for _, c := range e.live {
		if slices.Contains(w.applied, c.Name) {
			out = append(out, live.PreviewApply(ctx, client.Applier, c)...)
		}
		if slices.Contains(w.set, c.Name) {
			out = append(out, live.PreviewSettings(ctx, client.Applier, c)...)
		}
	}
	for _, key := range w.releases {
		out = append(out, e.releaseDiff(ctx, client, p, key)...)
	}
	if !w.configs {
		return out
	}
	for _, config := range []struct {
		name, key string
		changes   func(text string) []diff.Change
	}{
		{"kubeadm-config", "ClusterConfiguration", func(text string) []diff.Change {
			return settings.OfKubeadmConfig(text, p.Want)
		}},
		{"kubelet-config", "kubelet", func(text string) []diff.Change {
			return settings.OfKubeletConfig(text, p.Want)
		}},
	} {
		held, err := client.Kubernetes.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, config.name,
			metav1.GetOptions{})
		if err != nil {
			why := strings.Join(strings.Fields(err.Error()), " ")
			out = append(out, diff.Summary("ConfigMap "+metav1.NamespaceSystem+"/"+config.name, why))
			continue
		}
		out = append(out, config.changes(held.Data[config.key])...)
	}
	return out
}

// objects names the objects that a plan changes and a diff shows.
type objects struct {
	applied, set []string // names of components
	releases     []string // keys of Helm releases
	configs      bool     // the configuration of kubeadm and the kubelets
}

func (o objects) any() bool { return len(o.applied)+len(o.set)+len(o.releases) > 0 || o.configs }

func changedObjects(p Proposal) objects {
	var out objects
	for _, s := range p.Plan.Steps {
		switch s.Intent.Kind {
		case step.ApplyAddon:
			out.applied = append(out.applied, step.ParamsOf[step.ApplyAddonParams](s.Intent).Addon)
		case step.ApplyRelease:
			p := step.ParamsOf[step.ApplyReleaseParams](s.Intent)
			out.releases = append(out.releases, p.Namespace+"/"+p.Name)
		case step.SetSystem:
			out.set = append(out.set, step.ParamsOf[step.SetSystemParams](s.Intent).Apps...)
		case step.Init: // nothing exists yet
			return objects{}
		case step.Reconfigure:
			leads := slices.ContainsFunc(p.Want.ControlPlane, func(h desired.Host) bool { return h.ID == s.Host })
			out.configs = out.configs || leads
		default:
		}
	}
	return out
}

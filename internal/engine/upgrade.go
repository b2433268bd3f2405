package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"kubeone/internal/cluster"
	"kubeone/internal/desired"
	"kubeone/internal/manifest"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
)

// UpgradeOptions are settings of the manifest's upgrade section that one run has otherwise; nil and "" leave what the
// manifest says.
type UpgradeOptions struct {
	MaxUnavailable string // "2", "25%"
	MaxParallel    *int
	Canary         *bool
	DrainTimeout   *time.Duration
	OnTimeout      string // stop, skip, force
}

// apply puts the options into what is wanted.
func (o UpgradeOptions) apply(u *desired.Upgrade) error {
	if o.MaxUnavailable != "" {
		share, err := manifest.ParseShare(o.MaxUnavailable)
		if err != nil {
			return fmt.Errorf("--max-unavailable: %w", err)
		}
		u.MaxUnavailable = share
	}
	if o.MaxParallel != nil {
		u.MaxParallel = *o.MaxParallel
	}
	if o.Canary != nil {
		u.Canary = *o.Canary
	}
	if o.DrainTimeout != nil {
		if *o.DrainTimeout <= 0 {
			return fmt.Errorf("--drain-timeout: %s is not a time to wait", *o.DrainTimeout)
		}
		u.Drain.Timeout = *o.DrainTimeout
	}
	switch as := desired.OnTimeout(o.OnTimeout); as {
	case "":
	case desired.DrainStop, desired.DrainSkip, desired.DrainForce:
		u.Drain.OnTimeout = as
	default:
		return fmt.Errorf("--on-drain-timeout: %q is none of %s, %s and %s", o.OnTimeout, desired.DrainStop, desired.DrainSkip, desired.DrainForce)
	}
	return nil
}

// override puts the run's own settings over the manifest's.
func (e *Engine) override() error {
	if err := e.opt.Upgrade.apply(&e.want.Upgrade); err != nil {
		return &ConfigError{err}
	}
	if v := strings.TrimPrefix(e.opt.Version, "v"); v != "" {
		e.want.KubernetesVersion = v
	}
	return nil
}

// selected is the limit of this look: the hosts named, and of them those whose Node, or whose entry in the manifest, has the
// labels of the selector.
func (e *Engine) selected(w observed.World) (map[string]bool, error) {
	if e.opt.Selector == "" {
		return e.limit, nil
	}
	selector, err := labels.Parse(e.opt.Selector)
	if err != nil {
		return nil, &ConfigError{fmt.Errorf("--selector: %w", err)}
	}
	out := map[string]bool{}
	for _, h := range e.want.Hosts() {
		if (e.limit == nil || e.limit[h.ID]) && selector.Matches(labelsOf(h, w)) {
			out[h.ID] = true
		}
	}
	if len(out) == 0 {
		return nil, &ConfigError{fmt.Errorf("--selector %q matches the Node of no host of %s", e.opt.Selector, e.opt.Manifest)}
	}
	return out, nil
}

func labelsOf(h desired.Host, w observed.World) labels.Set {
	out := labels.Set{}
	for k, v := range h.Labels {
		out[k] = v
	}
	name := plan.NodeName(h, w.Hosts[h.ID])
	for _, n := range w.API.Nodes {
		if n.Name == name {
			for k, v := range n.Labels {
				out[k] = v
			}
		}
	}
	return out
}

// reportTimeout bounds what is asked only so that the plan's reader knows more.
const reportTimeout = 10 * time.Second

// report adds to an upgrade's plan what its reader should know before saying yes: APIs in use that the new version no longer
// has, and pods that a drain loses or cannot move. What cannot be found out is said so.
func (e *Engine) report(ctx context.Context, l *Look) {
	var nodes []string
	for _, s := range l.Plan.Steps {
		if d := s.Intent.Drain; d != nil && d.Upgrade {
			nodes = append(nodes, s.Intent.NodeName)
		}
	}
	if len(nodes) == 0 || l.Result.Access == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	notes, err := cluster.BeforeUpgrade(ctx, *l.Result.Access, e.want.KubernetesVersion, nodes)
	if err != nil {
		notes = append(notes, "not all could be looked at before the upgrade: "+err.Error())
	}
	l.Plan.Notes = append(l.Plan.Notes, notes...)
}

// systemImages are the images of what kubeadm applies to the cluster, by the app label of its pods.
func systemImages(names desired.Artifacts) map[string]string {
	out := map[string]string{}
	for _, i := range names.Images {
		switch {
		case strings.Contains(i.Name, "/kube-proxy:"):
			out["kube-proxy"] = i.Name
		case strings.Contains(i.Name, "/coredns:"):
			out["kube-dns"] = i.Name
		}
	}
	return out
}

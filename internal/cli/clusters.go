package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/machines/clusters"
	"kubeone/internal/view"
	"kubeone/internal/workspace"
)

// clusterOpener returns a function that opens clusters for their controller, with the options of this process.
func clusterOpener(o workspace.Options) clusters.Opener {
	return func(ctx context.Context, name string, objects []byte) (clusters.Session, error) {
		o := o
		if o.BundleDir != "" {
			bundles, err := filepath.Glob(filepath.Join(o.BundleDir, "*.tar"))
			if err != nil {
				return nil, err
			}
			o.Bundles = slices.Concat(o.Bundles, bundles)
		}
		o.Manifest, o.Objects, o.NewHosts = "Cluster "+name, objects, host.PolicyStrict
		w, err := workspace.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		return openCluster{w}, nil
	}
}

// openCluster is a cluster that its controller has opened.
type openCluster struct{ *workspace.Workspace }

// HostID returns the ID of the host with this address.
func (c openCluster) HostID(address string) (string, error) {
	ids, err := c.HostIDs("the Machine", address)
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// Propose waits for steps that are still running and for members that are starting, and proposes a plan.
func (c openCluster) Propose(ctx context.Context, r engine.Request) (engine.Proposal, error) {
	p, err := c.Engine.Propose(ctx, r)
	if len(p.RunningSteps()) > 0 {
		if err := c.Engine.Await(ctx, p); err != nil {
			return p, err
		}
		p, err = c.Engine.Propose(ctx, r)
	}
	return c.Engine.ProposeUntilReady(ctx, p, err, engine.SettleTimeout, func([]engine.Pending, time.Duration) {})
}

// CarryOut carries out the proposal.
func (c openCluster) CarryOut(ctx context.Context, p engine.Proposal, o engine.RunOptions) (engine.Proposal, error) {
	return c.Engine.CarryOut(ctx, p, o)
}

// PlanText returns the plan as "kubeone plan" prints it, without colors.
func (openCluster) PlanText(p engine.Proposal) string {
	var out strings.Builder
	view.Plan(&out, view.StyleFor(&out, os.Getenv), p.Plan, view.Normal)
	return out.String()
}

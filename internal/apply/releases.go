package apply

import (
	"context"
	"fmt"
	"time"

	"kubeone/internal/cluster/helm"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// removeTimeout limits the time to uninstall a Helm release.
const removeTimeout = 5 * time.Minute

// applyRelease installs or upgrades a Helm release.
func (r *Run) applyRelease(ctx context.Context, client API, s plan.Step) error {
	p := step.ParamsOf[step.ApplyReleaseParams](s.Intent)
	release, found := r.Releases[p.Namespace+"/"+p.Name]
	if !found {
		return fmt.Errorf("unknown Helm release %s/%s", p.Namespace, p.Name)
	}
	return client.ApplyRelease(ctx, release)
}

// removeRelease uninstalls a Helm release.
func (r *Run) removeRelease(ctx context.Context, client API, s plan.Step) error {
	p := step.ParamsOf[step.RemoveReleaseParams](s.Intent)
	return client.RemoveRelease(ctx, p.Namespace, p.Name, removeTimeout)
}

// HelmReleases are Helm releases with their charts, by "namespace/name".
type HelmReleases map[string]helm.Release

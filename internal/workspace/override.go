package workspace

import (
	"fmt"
	"strings"
	"time"

	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
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
		if *o.MaxParallel < 0 {
			return fmt.Errorf("--max-parallel: %d is less than 0, which means as many as maxUnavailable allows",
				*o.MaxParallel)
		}
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
		return fmt.Errorf("--on-drain-timeout: %q is none of %s, %s and %s",
			o.OnTimeout, desired.DrainStop, desired.DrainSkip, desired.DrainForce)
	}
	return nil
}

// override puts the run's own settings over the manifest's.
func (w *Workspace) override() error {
	if v := strings.TrimPrefix(w.opt.Version, "v"); v != "" {
		w.want.KubernetesVersion = v
	}
	return w.opt.Upgrade.apply(&w.want.Upgrade)
}

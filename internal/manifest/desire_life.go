package manifest

import (
	"strings"
	"time"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/desired"
)

func upgradeOf(u v1beta2.UpgradeConfig) desired.Upgrade {
	unavailable, _ := desired.ParseShare(u.MaxUnavailable) // checked by Validate
	out := desired.Upgrade{
		MaxUnavailable: unavailable,
		MaxParallel:    u.MaxParallel,
		Canary:         *u.Canary,
		Drain:          desired.Drain{Timeout: durationOf(u.Drain.Timeout), OnTimeout: desired.OnTimeout(u.Drain.OnTimeout)},
	}
	if u.Drain.GracePeriod != "" {
		period := durationOf(u.Drain.GracePeriod)
		out.Drain.GracePeriod = &period
	}
	return out
}

func (l *loader) backupOf(b v1beta2.BackupConfig) desired.Backup {
	out := desired.Backup{Recipients: b.Recipients, Target: b.Target, Schedule: durationOf(b.Schedule), Keep: *b.Keep}
	if !strings.Contains(b.Target, "://") {
		out.Target = l.absolute(b.Target)
	}
	return out
}

func durationOf(text string) time.Duration {
	d, _ := time.ParseDuration(text) // checked by Validate
	return d
}

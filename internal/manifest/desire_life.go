package manifest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/model/desired"
)

func upgradeOf(u v1beta2.UpgradeConfig) desired.Upgrade {
	unavailable, _ := ParseShare(u.MaxUnavailable) // checked by Validate
	out := desired.Upgrade{
		MaxUnavailable: unavailable,
		MaxParallel:    u.MaxParallel,
		Canary:         *u.Canary,
		Drain: desired.Drain{
			Timeout:   durationOf(u.Drain.Timeout),
			OnTimeout: desired.OnTimeout(u.Drain.OnTimeout),
		},
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

func hooksOf(hooks []v1beta2.Hook) []desired.Hook {
	var out []desired.Hook
	for _, h := range hooks {
		hook := desired.Hook{
			Name: h.Name, When: desired.Before, Activity: desired.Activity(h.Before),
			OnHost: h.RunOn == v1beta2.HookOnHost, Command: h.Command, Timeout: durationOf(h.Timeout),
		}
		switch {
		case h.After != "":
			hook.When, hook.Activity = desired.After, desired.Activity(h.After)
		case h.OnFailure:
			hook.When, hook.Activity = desired.Failed, desired.Applying
		}
		out = append(out, hook)
	}
	return out
}

func durationOf(text string) time.Duration {
	d, _ := time.ParseDuration(text) // checked by Validate
	return d
}

// ParseShare reads a share of nodes, as upgrade.maxUnavailable has it: "2" or "25%". Numbers below 1 and percentages
// outside 1 to 100 are errors.
func ParseShare(text string) (desired.Share, error) {
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || percent && n > 100 {
		return desired.Share{}, fmt.Errorf("%q is neither a number from 1 on nor a percentage up to 100%%", text)
	}
	if percent {
		return desired.Share{Percent: n}, nil
	}
	return desired.Share{Count: n}, nil
}

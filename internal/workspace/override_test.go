package workspace

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
)

func TestOneRunsOwnSettingsGoBeforeTheManifests(t *testing.T) {
	t.Parallel()
	two, less, no, minute, none := 2, -1, false, time.Minute, time.Duration(0)
	manifest := desired.Upgrade{
		MaxUnavailable: desired.Share{Count: 1},
		Canary:         true,
		Drain:          desired.Drain{Timeout: 5 * time.Minute, OnTimeout: desired.DrainStop},
	}
	for name, c := range map[string]struct {
		options UpgradeOptions
		want    desired.Upgrade
		says    string
	}{
		"none": {UpgradeOptions{}, manifest, ""},
		"all of them": {
			UpgradeOptions{
				MaxUnavailable: "25%", MaxParallel: &two, Canary: &no, DrainTimeout: &minute, OnTimeout: "skip",
			},
			desired.Upgrade{
				MaxUnavailable: desired.Share{Percent: 25},
				MaxParallel:    2,
				Drain:          desired.Drain{Timeout: minute, OnTimeout: desired.DrainSkip},
			}, "",
		},
		"no number":  {UpgradeOptions{MaxParallel: &less}, manifest, "--max-parallel"},
		"no share":   {UpgradeOptions{MaxUnavailable: "some"}, manifest, "--max-unavailable"},
		"no time":    {UpgradeOptions{DrainTimeout: &none}, manifest, "--drain-timeout"},
		"no outcome": {UpgradeOptions{OnTimeout: "wait"}, manifest, "--on-drain-timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := manifest
			err := c.options.applyTo(&got)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want an error with %q", err, c.says)
			}
			if diff := cmp.Diff(c.want, got); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

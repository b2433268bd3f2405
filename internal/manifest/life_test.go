package manifest_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
)

const recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"

func TestUpgradeIsCarriedOver(t *testing.T) {
	t.Parallel()
	second, none := time.Second, time.Duration(0)
	base := load(t, demo, "").Cluster.Upgrade
	for text, want := range map[string]func(*desired.Upgrade){
		"{maxUnavailable: 3}":               func(u *desired.Upgrade) { u.MaxUnavailable = desired.Share{Count: 3} },
		"{maxUnavailable: '3'}":             func(u *desired.Upgrade) { u.MaxUnavailable = desired.Share{Count: 3} },
		"{maxUnavailable: 25%}":             func(u *desired.Upgrade) { u.MaxUnavailable = desired.Share{Percent: 25} },
		"{maxParallel: 2, canary: false}":   func(u *desired.Upgrade) { u.MaxParallel, u.Canary = 2, false },
		"{drain: {timeout: 90s}}":           func(u *desired.Upgrade) { u.Drain.Timeout = 90 * time.Second },
		"{drain: {onTimeout: skip}}":        func(u *desired.Upgrade) { u.Drain.OnTimeout = desired.DrainSkip },
		"{drain: {onTimeout: force}}":       func(u *desired.Upgrade) { u.Drain.OnTimeout = desired.DrainForce },
		"{drain: {gracePeriod: 1s}}":        func(u *desired.Upgrade) { u.Drain.GracePeriod = &second },
		"{drain: {gracePeriod: 0s}}":        func(u *desired.Upgrade) { u.Drain.GracePeriod = &none },
		"{maxUnavailable: 1, canary: true}": func(*desired.Upgrade) {},
		`{"drain": {"timeout": "5m"}}`:      func(*desired.Upgrade) {},
		"{drain: {onTimeout: stop}}":        func(*desired.Upgrade) {},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			expected := base
			want(&expected)
			if diff := cmp.Diff(expected, load(t, demo+"upgrade: "+text+"\n", "").Cluster.Upgrade); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBackupIsCarriedOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]desired.Backup{
		"{schedule: 0}":            {Keep: 10},
		"{schedule: 0s}":           {Keep: 10},
		"{schedule: '0', keep: 3}": {Keep: 3},
		"{schedule: 24h}":          {Keep: 10, Schedule: 24 * time.Hour},
		"{recipients: [KEY], target: backups}": {Recipients: []string{recipient},
			Target: filepath.Join(dir, "backups"), Keep: 10, Schedule: 6 * time.Hour},
		"{recipients: [KEY], target: ~/backups}": {Recipients: []string{recipient}, Target: "/home/me/backups",
			Keep: 10, Schedule: 6 * time.Hour},
		"{recipients: [KEY], target: /srv/backups}": {Recipients: []string{recipient}, Target: "/srv/backups",
			Keep: 10, Schedule: 6 * time.Hour},
		"{recipients: [KEY], target: 'ssh://u@h:22/a'}": {Recipients: []string{recipient}, Target: "ssh://u@h:22/a",
			Keep: 10, Schedule: 6 * time.Hour},
		"{recipients: [KEY], target: 's3://b/p'}": {Recipients: []string{recipient}, Target: "s3://b/p", Keep: 10,
			Schedule: 6 * time.Hour},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			text := demo + "backup: " + strings.ReplaceAll(text, "KEY", recipient) + "\n"
			loaded, err := manifest.Load(t.Context(), manifest.Options{
				ManifestPath: filepath.Join(dir, "kubeone.yaml"), ManifestReader: strings.NewReader(text),
				Home: "/home/me",
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, loaded.Cluster.Backup); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSharesAreNumbersOrPercentages(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]desired.Share{
		"1":    {Count: 1},
		"30":   {Count: 30},
		"1%":   {Percent: 1},
		"100%": {Percent: 100},
	} {
		if got, err := manifest.ParseShare(text); err != nil || got != want {
			t.Errorf("%s is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "0%", "101%", "%", "a", "1.5", "10 %"} {
		if share, err := manifest.ParseShare(text); err == nil {
			t.Errorf("%q is %+v", text, share)
		}
	}
}

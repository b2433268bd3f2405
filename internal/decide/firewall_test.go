package decide

import (
	"slices"
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// A firewall is configured again if it has lost the rules, or was switched on after the installation.
func TestAFirewallWithoutOurRulesIsDrift(t *testing.T) {
	t.Parallel()
	const digest = desired.FirewallDigest
	type list = []observed.Firewall
	bare, open, off := list{{Name: "ufw"}}, list{{Name: "ufw", Ours: true}}, list{{Name: "ufw", Off: true}}
	for name, c := range map[string]struct {
		mode      string
		firewalls list
		noted     string
		drifts    bool
	}{
		"none is active":                 {desired.FirewallManage, nil, "same", false},
		"none needs other rules":         {desired.FirewallManage, nil, "other", false},
		"it has the rules":               {desired.FirewallManage, open, "same", false},
		"it has lost the rules":          {desired.FirewallManage, bare, "same", true},
		"other rules are wanted":         {desired.FirewallManage, open, "other", true},
		"it was switched on later":       {desired.FirewallManage, bare, "", true},
		"it is to be on again":           {desired.FirewallManage, off, "other", true},
		"it has noted none":              {desired.FirewallManage, nil, "", false},
		"it is on, and is ignored":       {desired.FirewallIgnore, bare, "other", false},
		"it is off, and is ignored":      {desired.FirewallIgnore, off, "other", false},
		"it is to be off":                {desired.FirewallDisable, bare, "same", true},
		"it has rules, and is to be off": {desired.FirewallDisable, open, "other", true},
		"it is off":                      {desired.FirewallDisable, off, "same", false},
	} {
		s := hostState{Host: &desired.Host{ID: "w"}, is: observed.Host{Firewalls: c.firewalls}}
		if c.noted != "" {
			s.is.Digests = map[string]string{digest: c.noted}
		}
		if got := slices.Contains(s.driftedNames(map[string]string{digest: "same"}, c.mode), digest); got != c.drifts {
			t.Errorf("%s: %t", name, got)
		}
	}
}

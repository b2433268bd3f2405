package decide

import (
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// FirewallsToConfigure returns the firewalls of a host that are not as the manifest wants them: without our rules, or
// on although they are to be off.
func FirewallsToConfigure(is *observed.Host, wanted string) []observed.Firewall {
	var out []observed.Firewall
	for _, f := range is.Firewalls {
		if wanted == desired.FirewallManage && !f.Ours || wanted == desired.FirewallDisable && !f.Off {
			out = append(out, f)
		}
	}
	return out
}

// needsFirewallRules reports whether a firewall of the host is not as the manifest wants it, or has other rules of ours
// than those. A digest alone says nothing: a host without a firewall has no rules.
func (s *hostState) needsFirewallRules(want map[string]string, wanted string) bool {
	noted, ok := s.is.Digests[desired.FirewallDigest]
	other := ok && noted != want[desired.FirewallDigest]
	return len(FirewallsToConfigure(&s.is, wanted)) > 0 ||
		wanted == desired.FirewallManage && other && len(s.is.Firewalls) > 0
}

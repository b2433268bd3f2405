package engine

import (
	"maps"
	"slices"

	"kubeone/internal/cluster/machines"
	"kubeone/internal/componentconfig"
	"kubeone/internal/model/problem"
	"kubeone/internal/probe"
)

// credentialDigests returns the expected content of credential files on hosts, or nil if the caller has no credentials.
func (e *Engine) credentialDigests() *probe.CredentialFiles {
	c := e.cfg.Credentials
	if c == nil {
		return nil
	}
	return &probe.CredentialFiles{
		Content: componentconfig.CredentialFiles(*c),
		Of:      func(path string) (string, bool) { return componentconfig.CredentialOf(path, *c) },
		Kept:    func(secret map[string][]byte) bool { return machines.HasCredentials(secret, *c) },
	}
}

// credentialsLeft returns notes about credentials that stay on hosts although the operator passed none.
func credentialsLeft(p Proposal) []string {
	hosts := map[string][]string{}
	for _, h := range p.Want.Hosts() {
		for _, c := range p.Observed.World.Hosts[h.ID].CredentialsLeft() {
			hosts[c.Of] = append(hosts[c.Of], p.Plan.Hosts[h.ID])
		}
	}
	var out []string
	for _, of := range slices.Sorted(maps.Keys(hosts)) {
		out = append(out, of+" stay unchanged on "+problem.List(hosts[of])+
			": pass --credentials FILE to change them; a file without them removes them")
	}
	return out
}

package decide

import (
	"slices"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// regenerations are the parts to regenerate, by host. A worker needs the API for new credentials, and a living member
// of etcd is restarted only if the quorum allows it.
func (v *view) regenerations() map[string][]string {
	var out map[string][]string
	for i := range v.hosts {
		if s := &v.hosts[i]; v.canRegenerate(s) {
			if out == nil {
				out = make(map[string][]string)
			}
			out[s.ID] = s.Parts
		}
	}
	return out
}

func (v *view) canRegenerate(s *hostState) bool {
	switch {
	case !s.inLimit || s.midUpgrade || s.Condition != condition.Regenerable:
		return false
	case s.Role == desired.Worker:
		return v.in.Is.API.Reached == observed.Yes && v.source() != ""
	case slices.Contains(s.Parts, condition.PartEncryption) && v.keysFor(s.ID) == nil:
		return false // nobody has them
	case slices.Contains(s.Parts, condition.PartCertificates) && v.vote(s) == observed.Yes:
		return quorum.SafeToStop(v.in.Is.Etcd.Members, s.Etcd).Safe
	}
	return true
}

// quarantines are the hosts whose lost etcd data is quarantined, so that they can join again: only while the API and
// etcd answer, another host has the CAs, and the members left keep their quorum, each counted after those before it.
func (v *view) quarantines() []string {
	if v.in.Is.API.Reached != observed.Yes || !v.etcd.listed || !v.etcd.tally.Holds() || v.source() == "" {
		return nil
	}
	var out []string
	left := v.in.Is.Etcd.Members
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if !s.inLimit || s.Condition != condition.Rejoinable {
			continue
		}
		if s.Etcd != "" {
			if !quorum.SafeToRemove(left, s.Etcd).Safe {
				continue
			}
			_, left = quorum.Without(left, s.Etcd)
		}
		out = append(out, s.ID)
	}
	return out
}

// staleNodes names the control-plane Nodes that belong to nobody: not Ready, without a member of etcd, and of no host
// of the manifest. Those of workers may be somebody else's, a controller's for instance.
func (v *view) staleNodes() []string {
	if v.in.Limit != nil || v.in.Is.API.Reached != observed.Yes || !v.etcd.listed {
		return nil
	}
	var out []string
	for i := range v.in.Is.API.Nodes {
		n := &v.in.Is.API.Nodes[i]
		if n.ControlPlane && n.Ready != observed.Yes && !v.known(n) {
			out = append(out, n.Name)
		}
	}
	return out
}

// known reports whether the Node is that of a host of the manifest, or of a member of etcd. Of a host that did not say
// its name, any Node might be the one. One whose name is refused keeps none by that.
func (v *view) known(n *observed.Node) bool {
	for i := range v.hosts {
		s := &v.hosts[i]
		if s.Node == n.Name || s.Node == "" && s.refused == nil || s.node != nil && s.node.Name == n.Name {
			return true
		}
	}
	return slices.ContainsFunc(v.in.Is.Etcd.Members, func(m observed.Member) bool {
		return m.Name == n.Name || m.Name == ""
	})
}

package decide

import (
	"cmp"
	"kubeone/internal/decide/atrest"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/decide/rotation"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"slices"
)

// encryptionPhase returns the next phase of a change to the encryption of Secrets. It concerns the whole control plane:
// nothing is done if some of it was not probed, is outside the limit, is unhealthy, or has a foreign configuration.
func (v *view) encryptionPhase() atrest.Decision {
	for i := range v.controlPlane() {
		if s := &v.hosts[i]; !s.inLimit || s.Condition != condition.Healthy || v.isOutdated(s) {
			return atrest.Decision{}
		}
	}
	if v.serverElsewhere() != "" {
		return atrest.Decision{}
	}
	return v.encryptionWanted()
}

// encryptionWanted returns the next phase, whether or not something prevents it.
func (v *view) encryptionWanted() atrest.Decision {
	members := v.encryptingMembers("")
	if v.in.About != nil || len(members) != v.cps || v.foreignEncryption() != nil {
		return atrest.Decision{}
	}
	return atrest.Decide(members, atrest.Want{Encrypted: v.in.Want.EncryptSecrets, Rotate: v.in.RotateKey})
}

// serverElsewhere returns the name of a control-plane host outside the manifest, whose API server would get no keys; ""
// if there is none. A Node that is not Ready counts only if it belongs to a member of etcd.
func (v *view) serverElsewhere() string {
	for _, m := range v.in.Is.Etcd.Members {
		if len(idsWhere(v.hosts, func(s *hostState) bool { return s.controlPlane() && s.Etcd == m.ID })) == 0 {
			return cmp.Or(m.Name, m.ID)
		}
	}
	for i := range v.in.Is.API.Nodes {
		if n := &v.in.Is.API.Nodes[i]; n.ControlPlane && n.Ready == observed.Yes && !v.isKnownNode(n) {
			return n.Name
		}
	}
	return ""
}

// ServerElsewhere returns the name of a serving control-plane host outside the manifest; "" if there is none.
func ServerElsewhere(in Input) string { return newView(in).serverElsewhere() }

// encryptingMembers returns how the members of the control plane, except one host, store Secrets, as far as they say
// it.
func (v *view) encryptingMembers(but string) []atrest.Host {
	var out []atrest.Host
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if e := s.is.Encryption; s.ID != but && s.hasJoined() && s.is.Reach == observed.Reached &&
			(e == nil || !e.Lost && e.Foreign == "") {
			out = append(out, atrest.Of(s.ID, e))
		}
	}
	return out
}

// keysFor returns the names of the keys for a host that has lost its own; nil if no other host has any.
func (v *view) keysFor(id string) []string { return atrest.Join(v.encryptingMembers(id)) }

func (v *view) askEncryption() (fsm.Event, string) {
	d := v.encryptionPhase()
	switch {
	case d.Phase != atrest.Settled:
	case v.encryptionWanted().Phase != atrest.Settled:
		return fsm.OnSame, "the encryption of Secrets waits until the control plane is healthy and inside the limit"
	case v.in.About != nil:
		return fsm.OnSame, "only a run for the whole cluster changes the encryption of Secrets"
	default:
		return fsm.OnSame, "Secrets are encrypted as desired"
	}
	if d.Writer == observed.Identity {
		return fsm.OnDiffers, "Secrets must be stored unencrypted (phase " + string(d.Phase) + ")"
	}
	return fsm.OnDiffers, "Secrets must be encrypted with key " + d.Writer + " (phase " + string(d.Phase) + ")"
}

// encryptionUnfit returns the problems with the encryption of Secrets for which nothing is done.
func (v *view) encryptionUnfit() []problem.Problem {
	if v.in.About != nil {
		return nil
	}
	var out []problem.Problem
	if p := v.foreignEncryption(); p != nil && v.in.Want.EncryptSecrets {
		out = append(out, *p)
	}
	return append(out, v.differentKeys()...)
}

// encryptionWaits returns the warning that the encryption of Secrets is not changed because of a control-plane host
// outside the manifest.
func (v *view) encryptionWaits() []problem.Problem {
	name := v.serverElsewhere()
	if name == "" || v.encryptionWanted().Phase == atrest.Settled {
		return nil
	}
	return []problem.Problem{{Code: problem.EncryptionWaits, Parameters: problem.Parameters{"name": name}}}
}

// foreignEncryption returns a problem if the API server of a host uses an encryption configuration that is not
// kubeone's.
func (v *view) foreignEncryption() *problem.Problem {
	for i := range v.controlPlane() {
		if e := v.hosts[i].is.Encryption; e != nil && e.Foreign != "" {
			return &problem.Problem{
				Code: problem.EncryptionForeign, Host: v.hosts[i].ID, Parameters: problem.Parameters{"file": e.Foreign},
			}
		}
	}
	return nil
}

// differentKeys returns problems for keys that have one name but differ between hosts: one host cannot read what
// another has stored. A key that has not been created yet has no digest.
func (v *view) differentKeys() []problem.Problem {
	type known struct{ key, host string }
	first, named := map[string]known{}, []string(nil)
	var out []problem.Problem
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if s.is.Encryption == nil {
			continue
		}
		all := slices.Clone(s.is.Encryption.Next.Providers)
		for _, c := range s.is.Encryption.Running {
			all = append(all, c.Providers...)
		}
		for _, p := range all {
			had, ok := first[p.Name]
			switch {
			case p.Key == "":
			case !ok:
				first[p.Name] = known{p.Key, s.ID}
			case had.key != p.Key && !slices.Contains(named, p.Name):
				named = append(named, p.Name)
				out = append(out, problem.Problem{
					Code: problem.EncryptionKeysDiffer, Host: s.ID,
					Parameters: problem.Parameters{"key": p.Name, "other": v.nameOf(had.host)},
				})
			}
		}
	}
	return out
}

// rotationBegun returns the warning that an authority's key is being rotated; only the rotation's own command ends it.
// Hosts of another cluster do not count.
func (v *view) rotationBegun() []problem.Problem {
	if v.in.About != nil {
		return nil
	}
	var ours []desired.Host
	for i := range v.hosts[:v.cps] {
		if h := &v.hosts[i]; h.Condition != condition.Foreign {
			ours = append(ours, *h.Host)
		}
	}
	begun := rotation.Begun(rotation.HostsOf(ours, v.in.Is.Hosts))
	if len(begun) == 0 {
		return nil
	}
	return []problem.Problem{{
		Code: problem.RotationBegun, Parameters: problem.Parameters{"authorities": problem.List(begun)},
	}}
}

// certificatesToRenew returns the control plane's certificates that expire soon, by the ID of each host that can renew
// them: it is healthy, so it has the CAs, and etcd can do without it.
func (v *view) certificatesToRenew() map[string][]string {
	var out map[string][]string
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if !s.inLimit || s.Condition != condition.Healthy {
			continue
		}
		ending := condition.Ending(&s.is, v.in.Want.Certificates.Validity())
		if len(ending) == 0 || s.Etcd != "" && !quorum.SafeToStop(v.in.Is.Etcd.Members, s.Etcd).Safe {
			continue
		}
		if out == nil {
			out = make(map[string][]string)
		}
		out[s.ID] = ending
	}
	return out
}

package plan

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// checkRecovery returns an error if the cluster must not be recovered.
func (b *builder) checkRecovery(assessed decide.Recovery, o RecoverOptions) error {
	var errs []error
	for _, p := range assessed.Unfit {
		errs = append(errs, errors.New(problemText(b.names, p)))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if !assessed.Lost && !assessed.Listed {
		return fmt.Errorf("etcd does not answer, but may regain quorum when stopped units are started and missing files "+
			"are regenerated (hosts in the manifest: %s): run kubeone apply, which does this; if etcd then reports that it "+
			"has no quorum because it also has other members, run recover again", assessed.Why)
	}
	if !assessed.Lost {
		return fmt.Errorf("etcd has quorum, or regains it when stopped units are started (%s): there is nothing to "+
			"recover, and a restore would undo what was written since; run kubeone apply instead",
			assessed.Why)
	}
	if assessed.Serving != "" {
		return fmt.Errorf("etcd or the API server on %s reports that it is serving, although this machine finds no quorum "+
			"(%s): a recovery would start a second cluster next to a working one; check the network between the "+
			"control-plane hosts", assessed.Serving, assessed.Why)
	}
	if assessed.Elsewhere != "" {
		return fmt.Errorf("an API server at %s reports that it is ready, but it is not on any control-plane host that "+
			"answered (%s): a recovery would start a second cluster next to a working one; restore the connection to the "+
			"hosts that serve it, or put them into the manifest, and run kubeone apply; if another cluster answers "+
			"there, correct apiEndpoint", assessed.Elsewhere, assessed.Why)
	}
	return errors.Join(b.ownCopy(o.Copy), b.checkAccountedFor(o))
}

// ownCopy returns an error if the copy is of another cluster, or of another version of Kubernetes.
func (b *builder) ownCopy(c Copy) error {
	if c.Cluster != "" && c.Cluster != b.in.Want.Name {
		return fmt.Errorf("the %s belongs to cluster %q, not to %q", c.From, c.Cluster, b.in.Want.Name)
	}
	for _, h := range b.in.Want.ControlPlane { // workers do not decide this
		if seen := b.in.Is.Hosts[h.ID]; c.CAHash != "" && seen.CAHash != "" && !knowsCA(seen, c.CAHash) {
			return fmt.Errorf("the %s belongs to another cluster: its CA is %s, but the CA on %s is %s", c.From,
				c.CAHash,
				b.displayName(h),
				seen.CAHash)
		}
	}
	if v := c.KubernetesVersion; v != "" && v != b.in.Want.KubernetesVersion {
		return fmt.Errorf("the %s is from Kubernetes %s, but the manifest sets %s: recover with the version that was "+
			"running, and upgrade afterwards", c.From, v, b.in.Want.KubernetesVersion)
	}
	if c.From == step.BareSnapshot && !b.sameCA(c) && !slices.ContainsFunc(c.Members, b.isHost) {
		return fmt.Errorf("the snapshot appears to belong to another cluster: none of its etcd members (%s) has the name "+
			"and the address of a control-plane host in the manifest", memberNames(c.Members))
	}
	return nil
}

// knowsCA reports whether the host trusts that CA, possibly among others during a rotation.
func knowsCA(h observed.Host, ca string) bool {
	return h.CAHash == ca || slices.Contains(h.Authorities[observed.ClusterCA].Trusted, ca)
}

// sameCA reports whether the copy's CA is known to be the hosts'.
func (b *builder) sameCA(c Copy) bool {
	return c.CAHash != "" && (c.CAHash == b.in.CA ||
		slices.ContainsFunc(b.in.Want.ControlPlane, func(h desired.Host) bool {
			return knowsCA(b.in.Is.Hosts[h.ID], c.CAHash)
		}))
}

// isHost reports whether a member has both the name and the address of one control-plane host. One of them is no proof:
// many clusters have a cp-1.
func (b *builder) isHost(m observed.Member) bool {
	return slices.ContainsFunc(b.in.Want.ControlPlane, func(h desired.Host) bool {
		return m.Name == b.nodeName(h) && slices.ContainsFunc(m.PeerURLs,
			func(peer string) bool { return isPeerOf(peer, h) })
	})
}

func memberNames(members []observed.Member) string {
	var out []string
	for _, m := range members {
		name := m.Name
		if u, err := url.Parse(strings.Join(m.PeerURLs, "")); name == "" && err == nil {
			name = u.Hostname()
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

// checkAccountedFor returns an error if a former member may still be serving somewhere.
func (b *builder) checkAccountedFor(o RecoverOptions) error {
	var missing, flags []string
	var errs []error
	for _, h := range b.in.Want.ControlPlane {
		seen, confirmed := b.in.Is.Hosts[h.ID], slices.Contains(o.Destroyed, h.ID)
		switch {
		case seen.Reach == observed.Reached && confirmed, seen.Reach == observed.Denied && confirmed:
			errs = append(errs, fmt.Errorf("%s answers, so it is not destroyed: omit it from --confirm-destroyed%s",
				b.displayName(h), deniedWhy(seen)))
		case seen.Reach == observed.Denied:
			errs = append(errs, fmt.Errorf("%s answers but refuses the login, so etcd cannot be stopped there%s",
				b.displayName(h), deniedWhy(seen)))
		case seen.Reach != observed.Reached && !confirmed:
			missing, flags = append(missing, b.displayName(h)), append(flags, "--confirm-destroyed "+b.nodeName(h))
		}
	}
	if len(missing) > 0 {
		errs = append(errs,
			fmt.Errorf("%s cannot be reached, so etcd cannot be stopped there and might serve the old data alongside the "+
				"new: bring back the hosts that still exist, and confirm the destroyed ones with %s",
				strings.Join(missing, " and "), strings.Join(flags, " ")))
	}
	return errors.Join(append(errs, b.workersAccountedFor(o.Copy), b.strangersAccountedFor(o))...)
}

// workersAccountedFor returns an error if a host that the manifest calls a worker has what only control-plane hosts
// have: no step would stop its etcd. The host's own claim suffices, whatever members others know: it may be the only
// one of a later epoch. What another cluster has left there does not count.
func (b *builder) workersAccountedFor(c Copy) error {
	var errs []error
	for _, h := range b.in.Want.Workers {
		seen := b.in.Is.Hosts[h.ID]
		serves := seen.EtcdData == observed.Yes || slices.Contains(seen.Manifests, "etcd") ||
			slices.Contains(seen.Manifests, "kube-apiserver")
		if h.Machine != "" || seen.Reach != observed.Reached || !serves || b.ofAnotherCluster(seen, c) {
			continue
		}
		errs = append(errs,
			fmt.Errorf("%s is a worker in the manifest, but has etcd data or an API server: the recovery would not stop it, "+
				"and it might serve the old data alongside the new. Switch the machine off, and remove it from the manifest "+
				"until the cluster is back; if you know that it belongs to this control plane, put it under controlPlane.hosts",
				b.displayName(h)))
	}
	return errors.Join(errs...)
}

// ofAnotherCluster reports whether a host belongs to another cluster, by its marker, or by its CA if this cluster's is
// known.
func (b *builder) ofAnotherCluster(seen observed.Host, c Copy) bool {
	if m := seen.Marker; m != nil && m.Cluster != b.in.Want.Name {
		return true
	}
	if seen.CAHash == "" || knowsCA(seen, b.in.CA) || knowsCA(seen, c.CAHash) {
		return false
	}
	known := b.in.CA != "" || c.CAHash != ""
	for _, h := range b.in.Want.ControlPlane {
		if is := b.in.Is.Hosts[h.ID]; is.CAHash != "" {
			if known = true; knowsCA(is, seen.CAHash) || knowsCA(seen, is.CAHash) {
				return false
			}
		}
	}
	return known
}

// strangersAccountedFor returns an error if an etcd member may be serving that is not on a control-plane host of the
// manifest.
func (b *builder) strangersAccountedFor(o RecoverOptions) error {
	var names, flags []string
	for _, m := range b.strangersOf(b.etcdMembers(o)) {
		if !slices.Contains(o.Destroyed, m.Name) {
			names, flags = append(names, m.Name), append(flags, "--confirm-destroyed "+m.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	from := "etcd lists"
	if len(b.in.Is.Etcd.Members) == 0 {
		from = "the data of etcd, on a disk or in the " + string(o.Copy.From) + ", has"
		if o.Copy.From == step.SurvivingMember {
			from = "the data of etcd on a disk has"
		}
	}
	return fmt.Errorf("%s %s, and no control-plane host of the manifest is that: it might serve the old data beside "+
		"the new. Put what is there into the manifest; what is destroyed for good, or has left etcd long ago, confirm "+
		"with %s", from, strings.Join(names, " and "), strings.Join(flags, " "))
}

func deniedWhy(seen observed.Host) string {
	if seen.Reach != observed.Denied {
		return ""
	}
	return "; correct the login: " + seen.Problem
}

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// dataHolders returns the hosts that answered and hold etcd data of the cluster's latest epoch that is not known to be
// damaged, in the manifest's order, the leader first.
func (b *builder) dataHolders() []desired.Host {
	var out []desired.Host
	epoch := condition.EpochBegun(&b.in.Want, &b.in.Is)
	for _, h := range leaderFirst(b.in.Want) {
		seen := b.in.Is.Hosts[h.ID]
		if seen.Reach == observed.Reached && seen.EtcdData == observed.Yes && seen.EtcdLost == "" &&
			seen.Marker != nil && seen.Marker.Epoch >= epoch {
			out = append(out, h)
		}
	}
	return out
}

// etcdMembers returns the members in etcd's own list. If there is none, it returns those in the data on disks and in
// the copy.
func (b *builder) etcdMembers(o RecoverOptions) []observed.Member {
	if listed := b.in.Is.Etcd.Members; len(listed) > 0 {
		return listed
	}
	return slices.Concat(b.onDisks(o), o.Copy.Members)
}

// strangersOf returns the members that may serve and are not on a control-plane host in the manifest, each name once.
// It skips members without a name, which have never started, and those whose host is now a worker without etcd data.
func (b *builder) strangersOf(members []observed.Member) []observed.Member {
	var out []observed.Member
	for _, m := range members {
		known := slices.ContainsFunc(out, func(other observed.Member) bool { return other.Name == m.Name })
		if m.Name != "" && !known && b.hostOfMember(m) == "" && !b.nowWorks(m) {
			out = append(out, m)
		}
	}
	return out
}

// nowWorks reports whether the member's host is now a worker without etcd data. Only a name in the manifest counts: a
// worker must not claim to be a member that may be serving elsewhere.
func (b *builder) nowWorks(m observed.Member) bool {
	return slices.ContainsFunc(b.in.Want.Workers, func(h desired.Host) bool {
		seen := b.in.Is.Hosts[h.ID]
		is := h.Hostname != "" && m.Name == b.nodeName(h) ||
			slices.ContainsFunc(m.PeerURLs, func(peer string) bool { return isPeerOf(peer, h) })
		return is && seen.Reach == observed.Reached && seen.EtcdData == observed.No
	})
}

// onDisks returns the members in the databases of control-plane hosts, of the cluster's latest epoch.
func (b *builder) onDisks(o RecoverOptions) []observed.Member {
	var out []observed.Member
	epoch := condition.EpochBegun(&b.in.Want, &b.in.Is)
	for _, h := range b.in.Want.ControlPlane {
		if m := b.in.Is.Hosts[h.ID].Marker; m == nil || m.Epoch >= epoch {
			out = append(out, o.Progress[h.ID].Members...)
		}
	}
	return quorum.Merged(out)
}

// membersKnown reports whether the etcd members are known from any source.
func (b *builder) membersKnown(o RecoverOptions) bool {
	return len(b.in.Is.Etcd.Members) > 0 || len(o.Copy.Members) > 0 ||
		slices.ContainsFunc(b.in.Want.ControlPlane, func(h desired.Host) bool { return o.Progress[h.ID].Searched })
}

// keepsEtcdData reports whether a recovery has moved the host's etcd data aside, so that it is in /var/lib/kubeone-old,
// if there was any.
func (b *builder) keepsEtcdData(h desired.Host) bool {
	seen := b.in.Is.Hosts[h.ID]
	m := seen.Marker
	return seen.Reach == observed.Reached && seen.EtcdData == observed.No && m != nil && m.Fenced != "" &&
		!m.Complete && !m.Restoring &&
		m.Epoch >= condition.EpochBegun(&b.in.Want, &b.in.Is)
}

func leaderFirst(want desired.Cluster) []desired.Host {
	leader := want.Leader()
	out := []desired.Host{leader}
	for _, h := range want.ControlPlane {
		if h.ID != leader.ID {
			out = append(out, h)
		}
	}
	return out
}

// maybeNewer returns the holders whose data may be newer than the target's.
func (b *builder) maybeNewer(target desired.Host, o RecoverOptions) []desired.Host {
	best := o.Progress[target.ID]
	return slices.DeleteFunc(b.dataHolders(), func(h desired.Host) bool {
		theirs := o.Progress[h.ID]
		return h.ID == target.ID || best.isKnown() && theirs.isKnown() && theirs.mayReach() <= best.Revision
	})
}

// progressOf returns a sentence about how far a host's data goes.
func (b *builder) progressOf(h desired.Host, o RecoverOptions) string {
	switch p := o.Progress[h.ID]; {
	case !p.isKnown():
		return b.displayName(h) + " does not report its revision"
	case p.AtLeast:
		return fmt.Sprintf("%s, where etcd is not running, has revision %d on disk, or slightly more",
			b.displayName(h), p.Revision)
	default:
		return fmt.Sprintf("%s has revision %d", b.displayName(h), p.Revision)
	}
}

// recoverOn chooses the host to restore on: one where a recovery has begun; otherwise, for SurvivingMember, the one
// with the newest data, and for a copy the leader, or a host that still has the cluster's keys.
func (b *builder) recoverOn(o RecoverOptions) (desired.Host, error) {
	if o.On != "" {
		return b.checkTarget(b.hostByID(o.On), o.Copy)
	}
	var reached []desired.Host
	for _, h := range leaderFirst(b.in.Want) {
		switch seen := b.in.Is.Hosts[h.ID]; {
		case seen.Reach != observed.Reached:
		case seen.Marker != nil && seen.Marker.Restoring:
			return b.checkTarget(h, o.Copy)
		default:
			reached = append(reached, h)
		}
	}
	if o.Copy.From == step.SurvivingMember {
		return b.newestHolder(o)
	}
	for _, h := range reached {
		if b.in.Is.Hosts[h.ID].PKI == observed.Yes {
			return b.checkTarget(h, o.Copy)
		}
	}
	if len(reached) == 0 {
		return desired.Host{}, errors.New("no control-plane host can be reached, so there is no host to restore on")
	}
	return b.checkTarget(reached[0], o.Copy)
}

// newestHolder returns the host with the newest data. It returns an error if another host may have newer data.
func (b *builder) newestHolder(o RecoverOptions) (desired.Host, error) {
	holders := b.dataHolders()
	if len(holders) == 0 {
		return desired.Host{}, b.noHolder()
	}
	best := slices.MaxFunc(holders, func(x, y desired.Host) int {
		a, b := o.Progress[x.ID], o.Progress[y.ID]
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.mayReach(), b.mayReach()))
	})
	if len(b.maybeNewer(best, o)) > 0 {
		all := make([]string, 0, len(holders))
		for _, h := range holders {
			all = append(all, b.progressOf(h, o))
		}
		return desired.Host{}, fmt.Errorf("it is not known which host has the newest data, and newer data on other hosts "+
			"would be lost: %s. Start etcd there to find out, or choose a host with --host",
			strings.Join(all, "; "))
	}
	return b.checkTarget(best, o.Copy)
}

// noHolder returns why no host can be chosen, and what the operator can do instead.
func (b *builder) noHolder() error {
	var damaged, stopped []desired.Host
	for _, h := range b.in.Want.ControlPlane {
		switch seen := b.in.Is.Hosts[h.ID]; {
		case b.keepsEtcdData(h):
			stopped = append(stopped, h)
		case seen.Reach == observed.Reached && seen.EtcdData == observed.Yes && seen.EtcdLost != "":
			damaged = append(damaged, h)
		}
	}
	text := "no control-plane host that answered holds etcd data"
	if len(damaged) > 0 {
		text += " that is undamaged (damaged: " + b.joinDisplayNames(damaged, ", ") + "; --host tries one anyway)"
	}
	text += ": recover from a backup or a snapshot"
	if len(stopped) > 0 {
		text += "; or from the data that a recovery has moved aside on " + b.joinDisplayNames(stopped, ", ") +
			", with --host"
	}
	return errors.New(text)
}

func (b *builder) joinDisplayNames(hosts []desired.Host, separator string) string {
	names := make([]string, 0, len(hosts))
	for _, h := range hosts {
		names = append(names, b.displayName(h))
	}
	return strings.Join(names, separator)
}

// checkTarget returns an error if this copy cannot be restored on the host.
func (b *builder) checkTarget(h desired.Host, c Copy) (desired.Host, error) {
	seen := b.in.Is.Hosts[h.ID]
	switch {
	case h.Role != desired.ControlPlane:
		return h, fmt.Errorf("%s is not a control-plane host", b.displayName(h))
	case seen.Reach != observed.Reached:
		return h, fmt.Errorf("%s cannot be reached, so nothing can be restored on it: %s", b.displayName(h),
			seen.Problem)
	case c.From == step.SurvivingMember && b.keepsEtcdData(h): // its data and keys are moved back
	case c.From == step.SurvivingMember && seen.EtcdData != observed.Yes &&
		(seen.Marker == nil || !seen.Marker.Restoring):
		return h, fmt.Errorf("%s holds no etcd data: choose another host, or recover from a backup", b.displayName(h))
	case c.From != step.FullBackup && seen.PKI != observed.Yes:
		return h, fmt.Errorf("%s lacks the cluster CAs and service-account keys, and a %s does not contain them: "+
			"recover from a backup", b.displayName(h), c.From)
	case c.From != step.FullBackup && condition.ExpiredCA(&seen) != nil:
		return h, fmt.Errorf("on %s the CA has expired (%s), so no client accepts what it signs: create a new certificate "+
			"for the same key in /etc/kubernetes/pki first (openssl x509 -in ca.crt -signkey ca.key "+
			"-days 3650 -out ca.new && mv ca.new ca.crt), or recover from a backup with a valid one", b.displayName(h),
			strings.Join(condition.ExpiredCA(&seen), ", "))
	case seen.APIServerVersion != "" && seen.APIServerVersion != b.in.Want.KubernetesVersion:
		return h, fmt.Errorf("%s ran Kubernetes %s, but the manifest sets %s: recover with the version that was running, "+
			"and upgrade afterwards", b.displayName(h), seen.APIServerVersion, b.in.Want.KubernetesVersion)
	}
	return h, nil
}

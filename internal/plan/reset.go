package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
)

// Reset plans the way of hosts back to bare machines. IDs names the hosts; empty means all, which ends the cluster.
// Hosts that did not answer stay as they are, and hosts of another cluster are an error. One control-plane host leaves
// etcd first, which is refused if that would lose the quorum.
func Reset(in decide.Input, ids []string) (Plan, error) {
	b := &builder{in: in, is: clone(in.Is), names: displayNames(in)}
	b.plan = Plan{Format: FormatVersion, Cluster: in.Want.Name, Routes: []string{"reset"}, Hosts: b.names}
	whole := len(ids) == 0
	if whole {
		for _, h := range in.Want.Hosts() {
			ids = append(ids, h.ID)
		}
	}
	var errs []error
	for _, id := range ids {
		if err := b.resetHost(b.host(id), whole); err != nil {
			errs = append(errs, err)
		}
	}
	return b.plan, errors.Join(errs...)
}

func (b *builder) resetHost(h desired.Host, whole bool) error {
	seen := b.is.Hosts[h.ID]
	switch {
	case seen.Reach != observed.Reached:
		if !whole {
			return fmt.Errorf("%s cannot be reached, so it cannot be reset: %s", b.node(h), seen.Problem)
		}
		b.plan.Notes = append(b.plan.Notes, fmt.Sprintf("%s cannot be reached and will not be reset: %s", b.node(h), seen.Problem))
		return nil
	case seen.Marker != nil && seen.Marker.Cluster != b.in.Want.Name:
		return fmt.Errorf("%s belongs to cluster %q, not to %q", b.node(h), seen.Marker.Cluster, b.in.Want.Name)
	case seen.Marker == nil && hasData(seen):
		return fmt.Errorf("%s holds data of unknown origin (it has no marker of ours); look at /etc/kubernetes and /var/lib/etcd there, and clean it by hand", b.node(h))
	case seen.Marker == nil && !seen.Kubelet.Installed:
		return nil // bare, as far as we are concerned: a container runtime that is there is somebody else's
	}
	needs, err := b.leave(h, whole)
	if err != nil {
		return err
	}
	last := b.step(h, ResetHost, "reset to a bare host", "asked for", Remove, Restarts, needs,
		[]string{"containers, their mounts, network interfaces and rules", "/etc/kubernetes, /var/lib/etcd, /var/lib/kubelet, /var/lib/containerd", "kubelet, containerd and their units"})
	if h.Role == desired.ControlPlane && !whole && b.is.Etcd.Reached == observed.Yes {
		b.intent(last, func(i *Intent) { i.Confirm = true })
	}
	if _, found := b.findNode(h); found && !whole && b.is.API.Reached == observed.Yes {
		last = b.deleteNode(h, "the host has left the cluster", []string{last})
	}
	if h.Role == desired.ControlPlane && !whole {
		b.barrier = []string{last} // one control-plane host at a time
	}
	b.predictBare(h)
	return nil
}

// predictBare makes the host what it is after a reset: the same machine without anything of ours.
func (b *builder) predictBare(h desired.Host) {
	seen := b.is.Hosts[h.ID]
	b.is.Hosts[h.ID] = observed.Host{
		ID: seen.ID, Reach: seen.Reach, FirstContact: seen.FirstContact, Hostname: seen.Hostname, MachineID: seen.MachineID, BootID: seen.BootID,
		OS: seen.OS, Arch: seen.Arch, Kernel: seen.Kernel, CPUs: seen.CPUs, MemoryMiB: seen.MemoryMiB, DiskMiB: seen.DiskMiB,
		ClockSkew: seen.ClockSkew, Addresses: seen.Addresses, Tools: seen.Tools,
		KubeletConf: observed.No, AdminConf: observed.No, PKI: observed.No, EtcdData: observed.No,
	}
}

func hasData(h observed.Host) bool {
	return h.PKI == observed.Yes || h.EtcdData == observed.Yes || h.KubeletConf == observed.Yes || h.AdminConf == observed.Yes
}

func (b *builder) findNode(h desired.Host) (observed.Node, bool) {
	for _, n := range b.is.API.Nodes {
		if n.Name == b.node(h) {
			return n, true
		}
	}
	return observed.Node{}, false
}

// leave plans what comes before one host of a living cluster is reset: its pods go elsewhere, its member leaves etcd.
func (b *builder) leave(h desired.Host, whole bool) ([]string, error) {
	if err := b.mayLeave(h); err != nil && !whole {
		return nil, err
	}
	if whole || b.is.API.Reached != observed.Yes {
		if !whole && b.isMember(h) {
			return nil, fmt.Errorf("%s is in the cluster, whose API does not answer: it cannot be taken out safely; to end the whole cluster, reset without --host", b.node(h))
		}
		return nil, nil
	}
	var needs []string
	if _, found := b.findNode(h); found {
		id := b.step(h, DrainNode, "drain", "the host leaves the cluster", Change, Drains, nil, []string{"pods move to other nodes"})
		b.intent(id, func(i *Intent) { i.Drain = b.draining(false) })
		needs = append(needs, id)
	}
	if i := b.member(h); i >= 0 && h.Role == desired.ControlPlane {
		m := b.is.Etcd.Members[i]
		v := quorum.SafeToRemove(b.is.Etcd.Members, m.ID)
		if !v.Safe {
			return nil, fmt.Errorf("etcd member %s must not leave: %s; bring the other members back first, kubeone plan says how", m.Name, v.Why)
		}
		id := b.step(h, RemoveEtcd, "leave etcd", "the host leaves the cluster; "+v.Why, Remove, NoRisk, append(needs, b.snapshot(h.ID)...),
			[]string{"etcd member " + strings.TrimSpace(m.Name+" ("+m.ID+")")})
		b.intent(id, func(i *Intent) { i.Member, i.Peer = m.ID, h.ID })
		needs = []string{id}
		b.is.Etcd.Members = slices.Delete(b.is.Etcd.Members, i, i+1) // the next one is counted without it
	}
	return needs, nil
}

// mayLeave says why a control-plane host must not be reset alone: it is the last one, or nobody knows what etcd would lose.
func (b *builder) mayLeave(h desired.Host) error {
	data := b.is.Hosts[h.ID].EtcdData != observed.No
	switch {
	case h.Role != desired.ControlPlane:
		return nil
	case (data || b.member(h) >= 0) && b.lastControlPlane(h):
		return b.endsCluster(h)
	case data && b.is.Etcd.Reached != observed.Yes:
		return b.unknownMembers(h)
	}
	return nil
}

// isMember reports whether the cluster may count on the host: it has joined, or may hold data of etcd.
func (b *builder) isMember(h desired.Host) bool {
	seen := b.is.Hosts[h.ID]
	return seen.Marker != nil && seen.Marker.Complete || h.Role == desired.ControlPlane && seen.EtcdData != observed.No
}

// draining is how the manifest wants nodes to be drained.
func (b *builder) draining(upgrade bool) *Drain {
	how := b.in.Want.Upgrade.Drain
	d := &Drain{TimeoutSeconds: int(how.Timeout.Seconds()), OnTimeout: string(how.OnTimeout), Upgrade: upgrade}
	if how.GracePeriod != nil {
		seconds := int(how.GracePeriod.Seconds())
		d.GraceSeconds = &seconds
	}
	return d
}

// deleteNode plans that the host's Node goes.
func (b *builder) deleteNode(h desired.Host, reason string, needs []string) string {
	id := b.step(h, DeleteNode, "delete the Node", reason, Remove, NoRisk, needs, []string{"Node " + b.node(h)})
	b.predictNodeGone(b.node(h))
	return id
}

package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/match"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// ResetOptions say what to reset.
type ResetOptions struct {
	Hosts []string // IDs; empty means all, which ends the cluster
	Purge bool     // also delete what the hosts have kept of etcd, by this reset and before
	// AbandonMachines leaves Machine hosts as they are when the cluster ends. Otherwise they are returned first.
	AbandonMachines bool
}

// Reset plans how hosts become bare machines again. Hosts that did not answer stay as they are, and hosts of another
// cluster are an error. A single control-plane host leaves etcd first, unless that would lose the quorum. Before a
// whole cluster is reset, its Machines are deleted and their hosts returned; without a running controller this is
// refused.
func Reset(in decide.Input, o ResetOptions) (Plan, error) {
	if err := contradictionErrors(in); err != nil {
		return Plan{}, err
	}
	b := newBuilder(in, "reset")
	ids, wholeCluster := o.Hosts, len(o.Hosts) == 0
	var errs []error
	if wholeCluster {
		for _, h := range in.Want.Hosts() {
			ids = append(ids, h.ID)
		}
		if err := b.emptyPool(o.AbandonMachines); err != nil {
			errs = append(errs, err)
		}
	}
	for _, id := range ids {
		before := len(b.plan.Steps)
		if wholeCluster && o.AbandonMachines && b.leavesMachine(b.hostByID(id)) {
			continue
		}
		err := b.resetHost(b.hostByID(id), wholeCluster)
		if err != nil {
			errs = append(errs, err)
		}
		switch h := b.hostByID(id); {
		case o.Purge && err == nil:
			b.purgeKept(h, wholeCluster, len(b.plan.Steps) > before)
		case len(b.world.Is.Hosts[id].Kept) > 0:
			b.plan.Notes = append(b.plan.Notes, fmt.Sprintf("%s keeps %s until kubeone reset --purge", b.displayName(h),
				strings.Join(b.world.Is.Hosts[id].Kept, ", ")))
		}
	}
	if wholeCluster {
		b.unseenMachines()
	}
	b.addHooks()
	return b.plan, errors.Join(append(errs, b.refused...)...)
}

func (b *builder) resetHost(h desired.Host, wholeCluster bool) error {
	seen := b.world.Is.Hosts[h.ID]
	switch {
	case seen.Reach != observed.Reached:
		if machine := b.machineOn(h); machine != "" && !wholeCluster {
			return fmt.Errorf("%s belongs to %s", b.displayName(h), machineOwner(machine))
		}
		if !wholeCluster {
			return fmt.Errorf("%s cannot be reached, so it cannot be reset: %s", b.displayName(h), seen.Problem)
		}
		b.plan.Notes = append(b.plan.Notes,
			fmt.Sprintf("%s cannot be reached and will not be reset: %s", b.displayName(h), seen.Problem))
		return nil
	case seen.Unwritable != "" && !b.controlPlane(h):
		if !wholeCluster {
			return unwritableError(b.displayName(h), seen)
		}
		b.plan.Notes = append(b.plan.Notes,
			fmt.Sprintf("%s cannot be locked and will not be reset: %s", b.displayName(h), seen.Unwritable))
		return nil
	case seen.Marker != nil && seen.Marker.Cluster != b.in.Want.Name:
		return fmt.Errorf("%s belongs to cluster %q, not to %q", b.displayName(h), seen.Marker.Cluster, b.in.Want.Name)
	case seen.Marker != nil && seen.Marker.Machine != h.Machine:
		return fmt.Errorf("%s belongs to %s", b.displayName(h), machineOwner(seen.Marker.Machine))
	case seen.Marker == nil && hasData(seen):
		return fmt.Errorf("%s holds data of unknown origin (it has no kubeone marker); inspect /etc/kubernetes and "+
			"/var/lib/etcd there, and clean the host manually", b.displayName(h))
	case seen.Marker == nil && !seen.Kubelet.Installed:
		return nil // bare: a container runtime on it belongs to others
	}
	controlPlane := b.controlPlane(h)
	_, hasNode := b.findNode(h)
	needs, err := b.leaveCluster(h, wholeCluster)
	if err != nil {
		return err
	}
	last := b.onHost(h, Step{
		Intent: step.With(step.ResetHostParams{MemberLeft: !wholeCluster}), Action: Remove, Risk: Restarts,
		Title: "reset to a bare host", Reason: b.resetReason(h), Needs: needs,
		Changes: []string{
			"containers, their mounts, network interfaces and rules",
			"/etc/kubernetes, /var/lib/etcd, /var/lib/kubelet, /var/lib/containerd",
			"kubelet, containerd and their units",
		},
	})
	if hasNode && !wholeCluster && b.world.Is.API.Reached == observed.Yes {
		last = b.deleteNode(h, "the host has left the cluster", []string{last}, step.Death{})
	}
	if controlPlane && !wholeCluster {
		b.barrier = []string{last} // one control-plane host at a time
	}
	return nil
}

// machineOwner returns the owner of a host whose marker names that Machine, as part of a sentence.
func machineOwner(machine string) string {
	if machine == "" {
		return "the manifest, not to a Machine"
	}
	namespace, name, _ := strings.Cut(machine, "/")
	return fmt.Sprintf("Machine %s: kubectl -n %s delete machine %s returns it", machine, namespace, name)
}

func (b *builder) resetReason(h desired.Host) string {
	if b.resetKeeps(h) {
		return "asked for; etcd data, snapshots and the PKI stay until kubeone reset --purge"
	}
	return "asked for"
}

// purgeKept plans to delete what a host has kept.
func (b *builder) purgeKept(h desired.Host, wholeCluster, reset bool) {
	seen := b.world.Is.Hosts[h.ID]
	keeps := reset && b.resetKeeps(h)
	if seen.Reach != observed.Reached || len(seen.Kept) == 0 && !keeps {
		return
	}
	var needs []string
	if reset {
		needs = []string{b.plan.Steps[len(b.plan.Steps)-1].ID}
	}
	kept := slices.Clone(seen.Kept)
	if keeps {
		kept = append(kept, "etcd data, snapshots and the PKI that this reset has kept")
	}
	b.onHost(h, Step{
		Intent: step.With(step.PurgeParams{Quorum: !wholeCluster}), Action: Remove, Title: "delete what was kept",
		Reason: "asked for; " + strings.Join(kept, ", "), Needs: needs, Changes: kept,
	})
}

// resetKeeps reports whether a reset of the host keeps something: it had etcd data, or the CAs, before the plan.
func (b *builder) resetKeeps(h desired.Host) bool {
	seen := b.in.Is.Hosts[h.ID]
	return seen.EtcdData != observed.No || seen.PKI != observed.No
}

// unwritableError returns the error of a host that cannot be reset.
func unwritableError(name string, seen observed.Host) error {
	return fmt.Errorf("%s cannot be locked, so it cannot be reset: %s; free space in /var/lib/kubeone or repair the "+
		"disk. To give up the host, switch it off and use kubeone node remove %s --unreachable",
		name, seen.Unwritable, name)
}

func hasData(h observed.Host) bool {
	return h.PKI == observed.Yes || h.EtcdData == observed.Yes || h.KubeletConf == observed.Yes ||
		h.AdminConf == observed.Yes
}

// findNode returns the host's Node, by its name and an address, or by the record. A kubelet writes its own addresses,
// and must not prevent its Node's removal with them.
func (b *builder) findNode(h desired.Host) (observed.Node, bool) {
	recorded := recordedNode(b.world.Is.API, h)
	for _, n := range b.world.Is.API.Nodes {
		if is := b.world.Is.Hosts[h.ID]; n.Name == b.nodeName(h) &&
			(n.Name == recorded || match.OwnsAsMachine(&h, &is, &n)) {
			return n, true
		}
	}
	return observed.Node{}, false
}

// leaveCluster plans what comes before the reset of one host of a running cluster: its pods move to other hosts, and
// its member leaves etcd.
func (b *builder) leaveCluster(h desired.Host, wholeCluster bool) ([]string, error) {
	if err := b.checkLeave(h); err != nil && !wholeCluster {
		return nil, err
	}
	if wholeCluster || b.world.Is.API.Reached != observed.Yes {
		if !wholeCluster && b.isMember(h) {
			return nil, fmt.Errorf("%s belongs to the cluster, but the cluster API does not answer, so the host cannot be "+
				"removed safely; to end the whole cluster, reset without --host", b.displayName(h))
		}
		return nil, nil
	}
	var needs []string
	if _, found := b.findNode(h); found {
		needs = append(needs, b.drainNode(h, "drain", "the host leaves the cluster", nil, false))
	}
	if i := b.memberIndex(h); i >= 0 {
		m := b.world.Is.Etcd.Members[i]
		v := quorum.SafeToRemove(b.world.Is.Etcd.Members, m.ID)
		if !v.Safe {
			return nil, fmt.Errorf("etcd member %s must not leave: %s; bring the other members back first, as kubeone plan "+
				"shows", m.Name, v.Why)
		}
		needs = []string{b.onHost(h, Step{
			Intent: step.With(step.RemoveEtcdParams{Member: m.ID, Death: step.Death{Peer: h.ID}}),
			Action: Remove, Title: "leave etcd", Reason: "the host leaves the cluster; " + v.Why,
			Needs:   append(needs, b.snapshotBeforeLeaving(h.ID)...),
			Changes: []string{"etcd member " + strings.TrimSpace(m.Name+" ("+m.ID+")")},
		})}
	}
	return needs, nil
}

// checkLeave reports why a control-plane host must not be reset alone: it is the last one, or it is unknown what etcd
// would lose.
func (b *builder) checkLeave(h desired.Host) error {
	data := b.etcdPart(h).Data != observed.No
	switch {
	case (data || b.memberIndex(h) >= 0) && b.lastControlPlane(h):
		return b.endsCluster(h)
	case b.in.Want.IsEndpoint(h) && len(b.in.Want.ControlPlane) > 1:
		return fmt.Errorf("%s is the API endpoint (%s), and every kubelet would lose its connection; first point that "+
			"address to a load balancer or another control-plane host, and give this host another "+
			"address in the manifest", b.displayName(h), b.in.Want.Endpoint.Host)
	case data && b.world.Is.Etcd.Reached != observed.Yes:
		return b.unknownMembers(h)
	}
	return nil
}

// isMember reports whether the host may be part of the cluster: it has joined, or may hold etcd data.
func (b *builder) isMember(h desired.Host) bool {
	seen := b.world.Is.Hosts[h.ID]
	return seen.Marker != nil && seen.Marker.Complete || seen.EtcdData != observed.No
}

// controlPlane reports whether the host belongs to the control plane, according to the cluster or to what it has. The
// manifest may call it a worker.
func (b *builder) controlPlane(h desired.Host) bool {
	part, seen := b.etcdPart(h), b.world.Is.Hosts[h.ID]
	reached := seen.Reach == observed.Reached
	node := match.Node(b.world.Is.API.Nodes, &h, &seen)
	return ofControlPlane(h, b.world.Is, node) || part.Member != "" || reached && part.Any()
}

// contradictionErrors returns why hosts cannot be told apart, or are not what the manifest says. Then nothing may be
// done to any of them.
func contradictionErrors(in decide.Input) error {
	names := displayNames(in.Want, decide.NodeNames(in))
	var errs []error
	for _, p := range decide.Contradictions(in) {
		errs = append(errs, errors.New(problemText(names, p)))
	}
	return errors.Join(errs...)
}

// drainNode plans to drain a host's Node with the manifest's settings, and returns the step's ID.
func (b *builder) drainNode(h desired.Host, title, reason string, needs []string, upgrade bool) string {
	how := b.in.Want.Upgrade.Drain
	d := step.DrainNodeParams{
		TimeoutSeconds: int(how.Timeout.Seconds()),
		OnTimeout:      string(how.OnTimeout),
		Upgrade:        upgrade,
	}
	if upgrade && h.Role == desired.Worker {
		d.MaxUnavailable = b.in.Want.Upgrade.MaxUnavailable.Of(len(b.in.Want.Workers))
	}
	if how.GracePeriod != nil {
		seconds := int(how.GracePeriod.Seconds())
		d.GraceSeconds = &seconds
	}
	return b.onHost(h, Step{
		Intent: step.With(d), Action: Change, Risk: Drains, Title: title, Reason: reason,
		Needs: needs, Changes: []string{"pods move to other nodes"},
	})
}

// deleteNode plans to delete the host's Node.
func (b *builder) deleteNode(h desired.Host, reason string, needs []string, why step.Death) string {
	return b.onHost(h, Step{
		Intent: step.With(step.DeleteNodeParams{Death: why}), Action: Remove, Title: "delete the Node", Reason: reason,
		Needs: needs, Changes: []string{"Node " + b.nodeName(h)},
	})
}

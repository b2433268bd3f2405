package plan

import (
	"slices"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
	"kubeone/internal/text/set"
)

// reconfigureHosts plans that hosts get the desired settings: the control plane host by host, and then the workers in
// waves, as in an upgrade. It drains no host: pods keep running. If a host refuses its settings, no other host follows.
// It returns whether another route may follow.
func (b *builder) reconfigureHosts(d decide.Decision) bool {
	b.uncordonLeft(d)
	d.Drift = b.fetchRenamed(d.Drift)
	var ids []string
	for _, h := range b.in.Want.Hosts() {
		if d.Drift[h.ID] != nil {
			ids = append(ids, h.ID)
		}
	}
	control, workers := b.splitByRole(ids)
	previous := set.Union(b.plannedSteps(step.JoinFinish), b.renamed) // only one host may be out of service at a time
	for _, h := range control {
		changes := b.configurationChanges(h, d.Drift[h.ID])
		is := b.world.Is.Hosts[h.ID]
		if pods := decide.EditedPods(&is); len(pods) > 0 && restartsControlPlane(d.Drift[h.ID]) {
			if !b.in.DiscardEdits {
				b.addBlocked("reconfiguring " + b.displayName(h) + " would overwrite edits of " +
					problem.List(pods) + ": undo them, or keep them elsewhere and apply with --discard-edits")
				return false
			}
			changes = append(changes, problem.List(pods)+" (manual edits are overwritten)")
		}
		verdict := b.checkStop(h)
		if !verdict.Safe {
			b.blockStop(h, verdict)
			return false
		}
		if verdict.Outage && restartsControlPlane(d.Drift[h.ID]) {
			changes = append(changes, "outage: "+verdict.Why)
		}
		previous = []string{b.reconfigureHost(h, d.Drift[h.ID], changes, previous)}
	}
	b.inWaves(workers, previous, func(h desired.Host, after []string) (first, last string) {
		id := b.reconfigureHost(h, d.Drift[h.ID], b.configurationChanges(h, d.Drift[h.ID]), after)
		return id, id
	})
	return true
}

func (b *builder) reconfigureHost(h desired.Host, drift, changes, needs []string) string {
	return b.onHost(h, Step{
		Intent: step.With(step.ReconfigureParams{
			Configurations: drift, DiscardEdits: b.in.DiscardEdits && h.Role == desired.ControlPlane,
		}),
		Action: Change, Risk: reconfigureRisk(drift), Title: "reconfigure " + problem.List(drift),
		Reason: "the configuration differs from the manifest", Needs: slices.Clone(needs), Changes: changes,
	})
}

// reconfigureRisk returns Restarts, unless every configuration concerns only the host and is read by no component.
func reconfigureRisk(drift []string) Risk {
	for _, name := range drift {
		switch name {
		case "kernel", desired.FirewallDigest, desired.SwapConfiguration, desired.EtcdDefragAddon,
			desired.UnattendedUpgradesAddon:
		default:
			if !desired.IsImagesDigest(name) {
				return Restarts
			}
		}
	}
	return NoRisk
}

// credentialChanges returns which kinds of credentials of a host change, without their content.
func credentialChanges(is observed.Host) []string {
	var out []string
	for _, c := range is.CredentialsToChange() {
		switch c.Is {
		case observed.CredentialMissing:
			out = append(out, c.Of+" are uploaded")
		case observed.CredentialExtra:
			out = append(out, c.Of+" are removed")
		default:
			out = append(out, c.Of+" differ")
		}
	}
	return append(out, "containerd restarts for its credentials; containers keep running")
}

func restartsControlPlane(drift []string) bool {
	return slices.Contains(drift, desired.ComponentsDigest)
}

// hostAddonChange returns what happens to a timer on a host.
func (b *builder) hostAddonChange(h desired.Host, name string) string {
	timer := "timer kubeone-" + name
	for _, a := range b.in.Want.HostAddonsOf(h) {
		switch is := b.world.Is.Hosts[h.ID]; {
		case a.Name != name:
		case is.Digests[name] == b.in.Config[h.ID][name]:
			return timer + " is started again"
		case name == desired.UnattendedUpgradesAddon:
			return timer + " runs at " + a.Schedule.String() + "; its package is installed if it is missing"
		default:
			return timer + " runs at " + a.Schedule.String()
		}
	}
	return timer + " is removed"
}

// configurationChanges returns what changes on a host for each configuration.
func (b *builder) configurationChanges(h desired.Host, drift []string) []string {
	var out []string
	for _, name := range drift {
		text := name
		if name == desired.CredentialsConfiguration {
			out = append(out, credentialChanges(b.world.Is.Hosts[h.ID])...)
			continue
		}
		if name == desired.SwapConfiguration {
			out = append(out, swapChanges(b.world.Is.Hosts[h.ID])...)
			continue
		}
		if changes := b.firewallChanges(h); name == desired.FirewallDigest && len(changes) > 0 {
			out = append(out, changes...)
			continue
		}
		switch name {
		case desired.FirewallDigest:
			text = "other kubeone rules in the firewall"
		case desired.EtcdDefragAddon, desired.UnattendedUpgradesAddon:
			text = b.hostAddonChange(h, name)
		case "kernel":
			text = "kernel modules and settings"
		case "containerd":
			text = "containerd: its configuration, mirrors, proxy and trusted CAs; containers keep running"
		case "kubelet":
			text = "kubelet: its configuration; pods keep running"
		case desired.HardeningDigest:
			text = "hardening: file modes"
		case desired.ComponentsDigest:
			text = "API server, controller manager, scheduler, etcd: those whose manifests change restart"
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

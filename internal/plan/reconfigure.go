package plan

import (
	"errors"
	"fmt"
	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
	"kubeone/internal/text/set"
	"maps"
	"slices"
	"strings"
)

// reconfigure plans that hosts get the wanted settings: the control plane host by host, and then the workers in waves,
// as in an upgrade. Nothing is drained: pods go on. The first host that refuses its settings is the last one. It
// returns whether another route may follow.
func (b *builder) reconfigure(d decide.Decision) bool {
	b.uncordonLeft(d)
	d.Drift = b.fetchRenamed(d.Drift)
	var ids []string
	for _, h := range b.in.Want.Hosts() {
		if d.Drift[h.ID] != nil {
			ids = append(ids, h.ID)
		}
	}
	control, workers := b.split(ids)
	previous := set.Union(b.planned(step.JoinFinish), b.renamed) // of all, one is out of service at a time
	for _, h := range control {
		changes := b.configurationChanges(h, d.Drift[h.ID])
		is := b.world.Is.Hosts[h.ID]
		if pods := decide.EditedPods(&is); len(pods) > 0 && restartsControlPlane(d.Drift[h.ID]) {
			if !b.in.DiscardEdits {
				b.block("to reconfigure " + b.name(h) + " would lose what somebody has changed in " +
					problem.List(pods) + ": undo that, or keep it elsewhere and apply with --discard-edits")
				return false
			}
			changes = append(changes, problem.List(pods)+" without what somebody has changed there")
		}
		verdict := b.judgeStop(h)
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

// reconfigureRisk returns Restarts unless every configuration is one of the host alone, which no component reads.
func reconfigureRisk(drift []string) Risk {
	for _, name := range drift {
		switch name {
		case "kernel", desired.FirewallDigest, desired.SwapConfiguration, desired.DNSImageDigest:
		default:
			return Restarts
		}
	}
	return NoRisk
}

// credentialChanges say which credentials of a host become others, and nothing of them.
func credentialChanges(is observed.Host) []string {
	var out []string
	for _, c := range is.CredentialsToChange() {
		switch c.Is {
		case observed.CredentialMissing:
			out = append(out, c.Of+" are brought")
		case observed.CredentialExtra:
			out = append(out, c.Of+" are removed")
		default:
			out = append(out, c.Of+" differ")
		}
	}
	return append(out, "containerd starts anew for its credentials; containers go on")
}

func restartsControlPlane(drift []string) bool {
	return slices.Contains(drift, desired.ComponentsDigest)
}

// configurationChanges says what changes on a host for each configuration.
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
			text = "other rules of kubeone in the firewall"
		case "kernel":
			text = "kernel modules and settings"
		case "containerd":
			text = "containerd: its configuration, mirrors, proxy and trusted CAs; containers go on"
		case "kubelet":
			text = "kubelet: its configuration; pods go on"
		case desired.HardeningDigest:
			text = "hardening: the modes of files"
		case desired.ComponentsDigest:
			text = "API server, controller manager, scheduler, etcd: those whose manifests change start anew"
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

func (b *builder) resources(d decide.Decision) {
	for _, id := range d.ControllerFiles {
		b.controllerFiles(b.host(id))
	}
	b.applyAddons(d.Addons)
	for _, id := range d.Metadata {
		if h := b.host(id); !b.has(b.id(step.NodeReady, h)) {
			b.onHost(h, Step{
				Intent: nodeMeta(h), Action: Change, Title: "set labels, annotations and taints",
				Reason: "the Node's differ from the manifest", Changes: []string{"Node " + b.node(h)},
			})
		}
	}
	b.uncordonLeft(d)
	b.staleNodes(d.StaleNodes)
	if d.AutoApproval {
		b.ownTokens()
	}
	if len(d.Serving) > 0 {
		b.onCluster(string(step.ApproveServing), Step{
			Intent: only(step.ApproveServing), Action: Change,
			Title:   "approve serving certificates",
			Reason:  "kubelets wait for them: " + problem.List(d.Serving),
			Changes: []string{"CertificateSigningRequests of kubelets"},
		})
	}
	b.systemSettings(d)
	b.systemAddons(d)
	b.removeAddons(d.RemoveAddons)
	switch {
	case len(d.Addons)+len(d.System) > 0:
		b.awaitWorkloads("addons were applied")
	case len(d.Settings) > 0:
		b.awaitWorkloads("settings were changed")
	}
	b.machines(d)
	if d.Record {
		b.saveRecord(b.recordReason())
	}
}

// recordReason is why the record is to be another one.
func (b *builder) recordReason() string {
	switch {
	case b.credentialsOfMachines():
		return "the hosts of Machines have other credentials"
	case b.world.Is.API.Record.IsUnreadable(decide.RepairableKeys(b.world.Want, b.world.Is)...):
		return "the cluster's record cannot be read as a whole"
	}
	return "the cluster's record is of another manifest"
}

// credentialsOfMachines reports whether the hosts of Machines are given other credentials than the manifest's.
func (b *builder) credentialsOfMachines() bool {
	p := b.world.Is.API.Pool
	return p != nil && p.Credentials == observed.No
}

// awaitWorkloads plans to wait, once, until what was applied runs.
func (b *builder) awaitWorkloads(reason string) {
	if !b.has("await-workloads") {
		b.onCluster("await-workloads", Step{
			Intent: only(step.AwaitWorkloads), Action: Change, Title: "wait for cluster DNS and addons", Reason: reason,
			Needs: slices.Concat(b.addons, b.controllers),
		})
	}
}

// applyAddons plans the addons of these names.
func (b *builder) applyAddons(names []string) {
	for _, name := range names {
		var needs []string
		if b.init != "" {
			needs = []string{b.init}
		}
		if name == desired.ControllersAddon {
			needs = append(needs, b.planned(step.ControllerFiles)...)
		}
		had, intent := b.world.Is.API.Addons[name], step.With(step.ApplyAddonParams{Addon: name})
		intent.Digest = b.in.Addons[name]
		id := b.onCluster("addon/"+name, Step{
			Intent: intent, Action: addonAction(had), Title: "apply addon " + name,
			Reason: b.addonReason(name, had), Needs: needs,
		})
		if name == desired.ControllersAddon {
			b.controllers = []string{id} // no Node waits for it
		} else {
			b.addons = append(b.addons, id)
		}
	}
}

// missingAddons are those that the cluster does not have at all, sorted: where an installation was interrupted before
// the network plugin, no Node is Ready, and an upgrade would wait for that.
func (b *builder) missingAddons() []string {
	if b.in.About != nil || b.in.Want.Endpoint.Later != "" ||
		b.world.Is.API.Record.IsUnreadable(observed.RecordAddons) {
		return nil
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(b.in.Addons)) {
		if name != desired.ControllersAddon && b.world.Is.API.Addons[name] == "" {
			out = append(out, name)
		}
	}
	return out
}

func (b *builder) addonReason(name, had string) string {
	switch {
	case had == "":
		return "not in the cluster"
	case had != b.in.Addons[name]:
		return "the cluster has an older version of it"
	}
	return differences(b.world.Is.API.Compared[name].Differences)
}

// namedDifferences is how many are named in a reason.
const namedDifferences = 3

// differences says which objects are not as they must be.
func differences(of []observed.Difference) string {
	var parts []string
	for i, d := range of {
		if i == namedDifferences {
			parts = append(parts, fmt.Sprintf("and %d more", len(of)-i))
			break
		}
		parts = append(parts, d.String())
	}
	return strings.Join(parts, "; ")
}

func addonAction(had string) Action {
	if had == "" {
		return Create
	}
	return Change
}

// Worker decides and plans what is to be done about one worker that is a Machine, as Build does about a cluster: it
// imagines the world after each route, and decides again, until nothing remains to do or what follows cannot be known.
// It returns the decisions too, the first one first.
func Worker(in decide.WorkerInput) (Plan, []decide.Decision) {
	in.About = map[string]bool{in.Want.Workers[0].ID: true}
	b := newBuilder(in.Input)
	var decisions []decide.Decision
	for len(decisions) < maxRoutes {
		next := in
		next.Is, next.CA = b.world.Is, b.world.CA
		d := decide.Worker(next)
		decisions = append(decisions, d)
		if !b.followWorker(d) {
			break
		}
	}
	if err := errors.Join(b.refused...); err != nil {
		return Plan{
			Format: FormatVersion, Cluster: b.plan.Cluster, Routes: b.plan.Routes, Hosts: b.names, Nodes: b.plan.Nodes,
			Blocked: err.Error(),
		}, decisions
	}
	b.revokeTokens()
	for _, w := range decisions[0].Warnings {
		b.plan.Notes = append(b.plan.Notes, problemText(b.names, w))
	}
	return b.plan, decisions
}

// followWorker plans one route of a worker. It returns whether another one may follow.
func (b *builder) followWorker(d decide.Decision) bool {
	if d.Route != fsm.Nothing || len(b.plan.Routes) == 0 {
		b.plan.Routes = append(b.plan.Routes, string(d.Route))
	}
	h := b.in.Want.Workers[0]
	switch d.Route {
	case fsm.Join:
		b.join(d)
	case fsm.Repair:
		b.repairHosts(d)
	case fsm.Upgrade:
		b.upgrade(d)
	case fsm.Reconfigure:
		b.reconfigure(d)
	case fsm.Resources:
		b.resources(d)
	case fsm.Return:
		b.giveBack()
	case fsm.Abandon:
		b.deleteNode(h, "its host does not answer, and nobody waits for it any longer", nil,
			step.Death{Peer: h.ID, Confirm: true})
	case fsm.Wait, fsm.Error:
		b.plan.Again = strings.Join(problem.Whats(d.Problems), "; ")
		return false
	default: // nothing
		return false
	}
	return len(b.refused) == 0
}

// giveBack plans that the worker leaves the cluster, and that its host becomes bare: at last its Node goes, which is
// all that is left where a reset was interrupted before that.
func (b *builder) giveBack() {
	h, before := b.in.Want.Workers[0], len(b.plan.Steps)
	if err := b.resetHost(h, false); err != nil {
		b.refused = append(b.refused, err)
		return
	}
	if _, found := b.findNode(h); found && len(b.plan.Steps) == before {
		b.deleteNode(h, "its host is bare", nil, step.Death{})
	}
}

package decide

import (
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"maps"
	"slices"
)

// lacksControllerFiles reports whether a control-plane host lacks files that the controllers need, if they are to run.
func (v *view) lacksControllerFiles(s *hostState) bool {
	want := v.in.Want.Controllers
	if want == nil || v.in.About != nil || !s.controlPlane() || !s.inLimit || !s.hasJoined() ||
		s.is.Reach != observed.Reached || s.is.Arch != want.Arch {
		return false
	}
	if s.is.ControllerFiles.Image != want.Image.Name+" "+want.Image.Digest {
		return true
	}
	return slices.ContainsFunc(want.Bundles, func(b desired.BundleFile) bool {
		return s.is.ControllerFiles.Bundles[b.Name] != b.Size
	})
}

// unwantedAddons lists the addons to remove.
func (v *view) unwantedAddons() []string {
	if v.in.About != nil {
		return nil
	}
	isFalse := func(choice *bool) bool { return choice != nil && !*choice }
	unwanted := map[string]bool{
		desired.ControllersAddon: v.in.Want.NoControllers,
		desired.DNSBudgetAddon:   isFalse(v.in.Want.Network.DNS.Budget),
	}
	for _, name := range desired.DefaultAddons() {
		unwanted[name] = isFalse(v.in.Want.DefaultAddon(name))
	}
	var out []string
	for name, unwanted := range unwanted {
		if _, applied := v.in.Is.API.Addons[name]; applied && unwanted {
			out = append(out, name)
		}
	}
	out = append(out, v.removedPlugins()...)
	out = append(out, v.undeclaredAddons()...)
	slices.Sort(out)
	return out
}

// undeclaredAddons lists the custom addons that are in the cluster and no longer in the manifest.
func (v *view) undeclaredAddons() []string {
	if !v.in.KnowsAddons || v.addonsUnknown() {
		return nil
	}
	var out []string
	for name, held := range v.in.Is.API.Inventories {
		if _, wanted := v.in.Addons[name]; !wanted && held.Problem == "" && !v.in.Want.IsOwnAddon(name) {
			out = append(out, name)
		}
	}
	return out
}

// missingMachines returns the desired MachineDeployments that are not in the cluster. Once one exists, it belongs to
// its users, and kubeone does not compare its content.
func (v *view) missingMachines() []string {
	if pool := v.in.Is.API.Pool; v.in.About != nil || pool != nil && pool.Problem != "" {
		return nil // which ones exist is unknown
	}
	var out []string
	for _, want := range v.in.Want.MachineDeployments {
		if !slices.ContainsFunc(v.in.Is.API.Pool.Deployed(), func(is observed.MachineDeployment) bool {
			return is.Namespace == want.Namespace && is.Name == want.Name
		}) {
			out = append(out, want.Namespace+"/"+want.Name)
		}
	}
	return out
}

// machinesBehind returns the Machines whose Nodes do not run the desired cluster version. Their hosts hold only the
// images of their own version, so kube-proxy of another version might not start there.
func (v *view) machinesBehind() []string {
	if v.in.Is.API.Pool == nil {
		return nil
	}
	var out []string
	for _, m := range v.in.Is.API.Pool.Machines {
		if m.Node != "" && m.Kubelet != "" && m.Kubelet != v.in.Want.KubernetesVersion && !m.Deleting {
			out = append(out, m.ID())
		}
	}
	return out
}

// systemWaits returns the warning that kube-proxy and cluster DNS are not updated yet, because Machines are behind.
func (v *view) systemWaits() []problem.Problem {
	behind := v.machinesBehind()
	if v.in.About != nil || len(behind) == 0 || len(v.oldSystem()) == 0 {
		return nil
	}
	return []problem.Problem{{Code: problem.SystemAwaitsMachines, Parameters: problem.Parameters{
		"apps": v.oldSystem(), "version": v.in.Want.KubernetesVersion, "machines": behind,
	}}}
}

// oldMachines returns the MachineDeployments whose kubelets must follow the cluster's version. They follow after every
// control-plane host in the manifest: no kubelet may be newer than an API server.
func (v *view) oldMachines() []string {
	if v.in.About != nil || !v.in.UpgradeMachines || len(idsWhere(v.controlPlane(), func(s *hostState) bool {
		return v.isOutdated(s)
	})) > 0 {
		return nil
	}
	var out []string
	for _, is := range v.in.Is.API.Pool.Deployed() {
		if is.Kubelet != v.in.Want.KubernetesVersion {
			out = append(out, is.Namespace+"/"+is.Name)
		}
	}
	slices.Sort(out)
	return out
}

// foreignDefinitions returns a problem if the controllers must run in the cluster, but Machines there belong to another
// program.
func (v *view) foreignDefinitions() []problem.Problem {
	pool := v.in.Is.API.Pool
	if v.in.About != nil || v.in.Want.Controllers == nil || pool == nil || len(pool.Foreign) == 0 {
		return nil
	}
	return []problem.Problem{{
		Code: problem.DefinitionsOfOthers, Parameters: problem.Parameters{"names": pool.Foreign},
	}}
}

// nodesWithoutMachine warns of Nodes that should not exist. Such a Node is not in the manifest and has no Machine, but
// is either named after a Host in the pool or still labelled as owned by a deleted Machine. It returns nothing unless
// all Machines are known.
func (v *view) nodesWithoutMachine() []problem.Problem {
	pool := v.in.Is.API.Pool
	if v.in.About != nil || pool == nil || pool.Problem != "" || pool.More {
		return nil
	}
	var out []problem.Problem
	for _, n := range v.in.Is.API.Nodes {
		inManifest := slices.ContainsFunc(v.hosts, func(s hostState) bool {
			return s.node != nil && s.node.Name == n.Name
		})
		isOwned := n.Labels[desired.OwnerLabel] != ""
		if inManifest || pool.MachineOn(n.Name) != "" || !isOwned && !pool.HasHost(n.Name) {
			continue
		}
		out = append(out, problem.Problem{
			Code: problem.NodeWithoutMachine, Parameters: problem.Parameters{"node": n.Name},
		})
	}
	return out
}

// hostsInPool warns of hosts in the manifest without a Node, whose name a free Host of the pool has: the API server
// refuses such a Node.
func (v *view) hostsInPool() []problem.Problem {
	pool := v.in.Is.API.Pool
	if v.in.About != nil || pool == nil {
		return nil
	}
	var out []problem.Problem
	for i := range v.hosts {
		s := &v.hosts[i]
		for _, name := range []string{s.Node, s.Hostname, s.is.Hostname} {
			if s.node == nil && name != "" && pool.HasHost(name) && pool.MachineOn(name) == "" {
				out = append(out, problem.Problem{
					Code: problem.HostInPool, Host: s.ID, Parameters: problem.Parameters{"name": name},
				})
				break
			}
		}
	}
	return out
}

// Anyone who may write ConfigMaps can make a key of the cluster record unreadable. Such a key counts as missing, except
// that work which a missing key would allow waits for it.

// RepairableKeys returns the keys of the record that a run writes again if they cannot be read. Only the record knows
// the cluster's addons, and the Node of a host that does not answer.
func RepairableKeys(want desired.Cluster, is observed.World) []string {
	keys := []string{
		observed.RecordCluster, observed.RecordManifestDigest, observed.RecordManifest, observed.RecordRunID,
		observed.RecordFormerEndpoints, observed.RecordHardening, observed.RecordHistory,
	}
	if !slices.ContainsFunc(want.Hosts(), func(h desired.Host) bool {
		return is.Hosts[h.ID].Reach != observed.Reached
	}) {
		keys = append(keys, observed.RecordNodes)
	}
	return keys
}

// mendsRecord reports whether a run would repair an unreadable key.
func (v *view) mendsRecord() bool {
	return v.in.Is.API.Record.IsUnreadable(RepairableKeys(v.in.Want, v.in.Is)...)
}

// addonsUnknown reports whether the record of applied addons cannot be read. Then none is applied or removed, because
// it may replace an existing one.
func (v *view) addonsUnknown() bool { return v.in.Is.API.Record.IsUnreadable(observed.RecordAddons) }

// unreadableWarnings warns of each unreadable key that is not already among the unfit problems.
func (v *view) unreadableWarnings(unfit []problem.Problem) []problem.Problem {
	r := v.in.Is.API.Record
	var out []problem.Problem
	for _, key := range []string{
		observed.RecordCluster, observed.RecordManifestDigest, observed.RecordManifest, observed.RecordRunID,
		observed.RecordNodes, observed.RecordFormerEndpoints, observed.RecordHardening, observed.RecordHistory,
	} {
		if r.IsUnreadable(key) {
			out = append(out, problem.Problem{
				Code:       problem.RecordUnreadable,
				Parameters: problem.Parameters{"key": key, "problem": r.Unreadable[key]},
			})
		}
	}
	if v.addonsUnknown() && !problem.Has(unfit, problem.AddonsUnreadable) {
		out = append(out, v.unreadableAddons())
	}
	for _, name := range slices.Sorted(maps.Keys(v.in.Is.API.Inventories)) {
		if why := v.in.Is.API.Inventories[name].Problem; why != "" {
			out = append(out, problem.Problem{
				Code:       problem.InventoryUnreadable,
				Parameters: problem.Parameters{"addon": name, "problem": why},
			})
		}
	}
	return out
}

func (v *view) unreadableAddons() problem.Problem {
	return problem.Problem{
		Code: problem.AddonsUnreadable, Parameters: problem.Parameters{
			"problem": v.in.Is.API.Record.Unreadable[observed.RecordAddons],
		},
	}
}

// takesNode returns a problem if the host would join under the name of an existing Node, and the record does not say
// whether the Node belongs to an unresponsive host of the same role: the join would delete it.
func (v *view) takesNode(s *hostState) *problem.Problem {
	if !s.isMissing() || !v.in.Is.API.Record.IsUnreadable(observed.RecordNodes) ||
		!slices.ContainsFunc(v.in.Is.API.Nodes, func(n observed.Node) bool { return n.Name == s.Node }) {
		return nil
	}
	silent := idsWhere(v.hosts, func(o *hostState) bool {
		return o.ID != s.ID && o.Role == s.Role && o.is.Reach != observed.Reached
	})
	if len(silent) == 0 {
		return nil
	}
	return &problem.Problem{
		Code: problem.NodeOwnerUnknown, Host: s.ID, Parameters: problem.Parameters{"node": s.Node, "hosts": silent},
	}
}

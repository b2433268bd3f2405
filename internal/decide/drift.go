package decide

import (
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"maps"
	"slices"
	"strings"
)

// driftByHost returns, by host ID, the sorted names of a member's configurations that differ from the desired ones. It
// omits hosts outside the limit and, except for addons and images, configurations that are missing on a host.
func (v *view) driftByHost() map[string][]string {
	var out map[string][]string
	for i := range v.hosts {
		s := &v.hosts[i]
		if !s.inLimit || !s.hasJoined() {
			continue
		}
		names := s.driftedNames(v.in.Config[s.ID], v.in.Want.Firewall)
		if len(names) == 0 {
			continue
		}
		if out == nil {
			out = make(map[string][]string)
		}
		out[s.ID] = names
	}
	return out
}

// driftedNames lists, sorted, the configurations whose digest on the host differs from the desired one. It includes
// missing images, credentials that differ from the caller's, unconfigured firewalls, and swap in use.
func (s *hostState) driftedNames(want map[string]string, firewall string) []string {
	var out []string
	for name, digest := range want {
		have, ok := s.is.Digests[name]
		if name != desired.FirewallDigest && !desired.IsImagesDigest(name) &&
			!slices.Contains(desired.HostAddons(), name) && ok && have != digest {
			out = append(out, name)
		}
	}
	for _, name := range desired.HostAddons() {
		if s.needsHostAddon(want, name) {
			out = append(out, name)
		}
	}
	for _, name := range []string{desired.AddonImagesDigest, desired.WorkloadImagesDigest} {
		if s.lacksImages(want, name) {
			out = append(out, name)
		}
	}
	if s.needsFirewallRules(want, firewall) {
		out = append(out, desired.FirewallDigest)
	}
	if s.lacksDNSImage(want) {
		out = append(out, desired.DNSImageDigest)
	}
	if len(s.is.CredentialsToChange()) > 0 {
		out = append(out, desired.CredentialsConfiguration)
	}
	if s.hasSwap() {
		out = append(out, desired.SwapConfiguration)
	}
	slices.Sort(out)
	return out
}

// hasSwap reports whether the host has joined and uses swap, so that its kubelet would not start again.
func (s *hostState) hasSwap() bool { return s.hasJoined() && len(s.is.Swaps) > 0 && !s.is.SwapAllowed }

// needsHostAddon reports whether a timer of the host must be installed, changed, started or removed. A missing note
// counts: it means that the host does not have the addon.
func (s *hostState) needsHostAddon(want map[string]string, name string) bool {
	if !s.hasJoined() || s.is.Reach != observed.Reached || want == nil {
		return false
	}
	return s.is.Digests[name] != want[name] || want[name] != "" && slices.Contains(s.is.StoppedTimers, name)
}

// lacksDNSImage reports whether the host has joined and lacks the image of cluster DNS under the desired name. Unlike
// with a configuration, a missing note counts: it means that the host has the image under its default name.
func (s *hostState) lacksDNSImage(want map[string]string) bool {
	return s.hasJoined() && s.is.Reach == observed.Reached &&
		s.is.Digests[desired.DNSImageDigest] != want[desired.DNSImageDigest]
}

// lacksImages reports whether the host has joined and lacks images of addons or workloads, which it notes under that
// name. A missing note counts. Images that are no longer desired may stay.
func (s *hostState) lacksImages(want map[string]string, name string) bool {
	return s.hasJoined() && s.is.Reach == observed.Reached && want[name] != "" && s.is.Digests[name] != want[name]
}

// staleAddons lists the addons that are missing in the cluster or differ there, for whatever reason, sorted.
func (v *view) staleAddons() []string {
	if v.in.About != nil || v.in.Want.Endpoint.Later != "" {
		return nil // they belong to the whole cluster and are made for the manifest's endpoint
	}
	if v.addonsUnknown() {
		return nil
	}
	var out []string
	for name, want := range v.in.Addons {
		if v.differsFromApplied(name, want) || len(v.in.Is.API.Compared[name].Differences) > 0 || v.lacksInventory(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// differsFromApplied reports whether another digest of the addon was applied. Stored objects may have been edited in
// the cluster since then, and now be the same as the desired ones.
func (v *view) differsFromApplied(name, want string) bool {
	applied := v.in.Is.API.Addons[name]
	if _, compared := v.in.Is.API.Compared[name]; name == desired.ClusterAddon && applied != "" && compared {
		return false
	}
	return applied != want
}

// autoApproval reports whether kubeadm accepts any join token for any Node. Only decisions about the whole cluster, or
// about hosts that join, change that.
func (v *view) autoApproval() bool {
	return v.in.About == nil && v.in.Is.API.AutoApproval == observed.Yes
}

// staleSystem lists the apps to update to the desired version. They follow when every member has that version and its
// images: kube-proxy must not be newer than an API server, and its image comes with the version.
func (v *view) staleSystem() []string {
	if v.in.About != nil || v.systemHost() == "" || !v.canJoin() || len(v.machinesBehind()) > 0 ||
		len(idsWhere(v.hosts, func(s *hostState) bool {
			return s.hasJoined() && v.isOutdated(s) || s.lacksDNSImage(v.in.Config[s.ID])
		})) > 0 {
		return nil
	}
	return v.oldSystem()
}

// followingSystem lists the apps that an upgrade updates after the control plane, if it leaves no member and no Machine
// behind. The upgrade fetches what members lack.
func (v *view) followingSystem() []string {
	if v.systemHost() == "" || len(v.machinesBehind()) > 0 ||
		len(idsWhere(v.hosts, func(s *hostState) bool {
			upgraded := s.inLimit && v.isOutdated(s)
			return !upgraded && (s.hasJoined() && v.isOutdated(s) || s.lacksDNSImage(v.in.Config[s.ID]))
		})) > 0 {
		return nil
	}
	return v.oldSystem()
}

// oldSystem lists the apps with a ready pod of another image than the desired one, or with a changed object, sorted.
func (v *view) oldSystem() []string {
	var out []string
	for app := range v.in.System {
		if len(v.in.Is.API.Compared[app].Differences) > 0 {
			out = append(out, app)
		}
	}
	for _, p := range v.in.Is.API.Pods {
		want, ours := v.in.System[p.App]
		if ours && p.Ready == observed.Yes && p.Image != want && !slices.Contains(out, p.App) {
			out = append(out, p.App)
		}
	}
	slices.Sort(out)
	return out
}

// waitingForServing lists the Nodes whose kubelets request a serving certificate with no other names than the manifest
// gives their hosts: kubelets renew certificates while no run is there to approve them. Only decisions about the whole
// cluster approve them.
func (v *view) waitingForServing() []string {
	if v.in.About != nil {
		return nil
	}
	var out []string
	for _, r := range v.in.Is.API.ServingRequests {
		for i := range v.hosts {
			s := &v.hosts[i]
			if s.hasJoined() && s.node != nil && s.node.Name == r.Node && !slices.Contains(out, r.Node) &&
				allAmong(r.Names, append(s.Names(), r.Node)) {
				out = append(out, r.Node)
			}
		}
	}
	slices.Sort(out)
	return out
}

func allAmong(names, allowed []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, name) })
	})
}

// staleSettings lists the apps whose settings differ from the desired ones, sorted.
func (v *view) staleSettings() []string {
	if v.in.About != nil || v.in.Want.Endpoint.Later != "" {
		return nil // they belong to the whole cluster and are compared with the manifest's endpoint
	}
	var out []string
	for app := range v.in.System {
		if len(v.in.Is.API.Compared[app].Settings) > 0 {
			out = append(out, app)
		}
	}
	slices.Sort(out)
	return out
}

// systemHost returns the control-plane host inside the limit on which kubeadm applies its objects; empty if there is
// none.
func (v *view) systemHost() string {
	sound := idsWhere(v.controlPlane(), func(s *hostState) bool {
		return s.inLimit && s.Condition == condition.Healthy && s.is.PKI == observed.Yes
	})
	if len(sound) == 0 {
		return ""
	}
	return sound[0]
}

// allAddons lists every desired addon, sorted.
func (v *view) allAddons() []string { return slices.Sorted(maps.Keys(v.in.Addons)) }

// staleRecord reports whether a run must write the record: it is missing, unreadable where a run repairs it, or of
// another cluster or manifest, or the credentials with it, for Machine hosts, differ.
func (v *view) staleRecord() bool {
	if v.in.About != nil {
		return false // it belongs to the whole cluster
	}
	r, pool := v.in.Is.API.Record, v.in.Is.API.Pool
	return pool != nil && pool.Credentials == observed.No ||
		r == nil || v.mendsRecord() || r.Cluster != v.in.Want.Name || r.Hardening != v.in.Want.Hardening ||
		r.ManifestDigest != v.in.Want.Digest
}

// staleNode reports whether the member's Node lacks desired labels, annotations or taints, or has some that the
// manifest removes. Others are left alone.
func (v *view) staleNode(s *hostState) bool {
	if !s.inLimit || !s.hasJoined() || s.node == nil {
		return false
	}
	return differsFrom(s.Labels, s.node.Labels) || differsFrom(s.Annotations, s.node.Annotations) || taintsDiffer(s)
}

// differsFrom reports whether a desired key has another value, or a key written with a final "-" still exists.
func differsFrom(want, have map[string]string) bool {
	for key, value := range want {
		got, ok := have[key]
		mustBeAbsent := strings.HasSuffix(key, "-")
		if mustBeAbsent {
			_, ok = have[strings.TrimSuffix(key, "-")]
		}
		if mustBeAbsent && ok || !mustBeAbsent && (!ok || got != value) {
			return true
		}
	}
	return false
}

// controlPlaneTaint is the taint that kubeadm gives to control-plane nodes automatically.
const controlPlaneTaint = "node-role.kubernetes.io/control-plane"

// taintsDiffer reports whether a desired taint is missing, or the control-plane taint exists and is not desired. The
// join added that one; others may belong to other programs.
func taintsDiffer(s *hostState) bool {
	for _, t := range s.Taints {
		if !slices.Contains(s.node.Taints, observed.Taint(t)) {
			return true
		}
	}
	unwanted := func(t observed.Taint) bool {
		return t.Key == controlPlaneTaint && !slices.Contains(s.Taints, desired.Taint(t))
	}
	return s.Role == desired.ControlPlane && slices.ContainsFunc(s.node.Taints, unwanted)
}

// A stage writes the files of hosts; later changes come from elsewhere. Those of kubelet, container runtime and kernel
// are restored as written: for the version and settings that the host has now, whatever is desired. Static pods stay as
// they are.

// restorableFiles returns the host's files that can be restored. During an upgrade there are none, because it writes
// them. A control-plane host's upgrade to a version that is no longer desired counts as over.
func (v *view) restorableFiles(s *hostState) []string {
	if s.is.Upgrading != "" && v.isOutdated(s) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.is.Restorable), func(path string) bool {
		return !condition.IsRestored(path)
	})
}

// exposedFiles returns the host's files with keys that other users can read and whose mode can be fixed: whenever its
// files can be restored, and without a restart.
func (s *hostState) exposedFiles() []string {
	var out []string
	for _, file := range s.is.Exposed {
		if !slices.Contains(s.is.Restorable, file.Path) { // which is restored with its mode
			out = append(out, file.Path)
		}
	}
	return out
}

// canRestore reports whether files of the host can be restored now. Containers keep running. But the effect of foreign
// files on a kubelet or container runtime is unknown, so etcd must tolerate that the host stops.
func (v *view) canRestore(s *hostState) bool {
	files := v.restorableFiles(s)
	switch s.Condition {
	case condition.Healthy, condition.Restartable, condition.Unready:
	default:
		return false
	}
	if !s.inLimit || s.midUpgrade || len(files)+len(s.is.Exposed) == 0 {
		return false
	}
	starts := slices.ContainsFunc(files, func(path string) bool { return condition.UnitOf(path) != "" })
	return !starts || v.memberVote(s) != observed.Yes || !v.etcd.tally.Holds() ||
		quorum.SafeToStop(v.in.Is.Etcd.Members, s.Etcd).Safe
}

// brokenByEdits reports whether the host is unhealthy and has restorable files that may be the cause.
func (v *view) brokenByEdits(s *hostState) bool {
	return s.Condition != condition.Healthy && len(v.restorableFiles(s)) > 0 && v.canRestore(s)
}

// filesToRestore returns the files to restore or to close to other users, by host: of unhealthy hosts, or of all.
func (v *view) filesToRestore(all bool) map[string][]string {
	var out map[string][]string
	for i := range v.hosts {
		s := &v.hosts[i]
		if !v.canRestore(s) || !all && !v.brokenByEdits(s) {
			continue
		}
		if out == nil {
			out = map[string][]string{}
		}
		out[s.ID] = append(v.restorableFiles(s), s.exposedFiles()...)
	}
	return out
}

// editWarnings warns of files that other users can read, and of changed files on a healthy host. On other hosts changed
// files are among the reasons of the condition.
func (s *hostState) editWarnings() []problem.Problem {
	var out []problem.Problem
	if len(s.is.Exposed) > 0 && s.hasJoined() {
		var files []string
		for _, file := range s.is.Exposed {
			files = append(files, file.String())
		}
		out = append(out, problem.Problem{
			Code: problem.FilesExposed, Host: s.ID, Parameters: problem.Parameters{"files": files},
		})
	}
	if s.Condition != condition.Healthy {
		return out
	}
	var others []string
	for _, path := range s.is.Edited {
		if !condition.IsStaticPod(path) {
			others = append(others, path)
		}
	}
	pods := EditedPods(&s.is)
	if len(others) > 0 {
		out = append(out, problem.Problem{
			Code: problem.FilesEdited, Host: s.ID, Parameters: problem.Parameters{"files": others},
		})
	}
	if len(pods) > 0 {
		out = append(out, problem.Problem{
			Code: problem.StaticPodsEdited, Host: s.ID, Parameters: problem.Parameters{"files": pods},
		})
	}
	return out
}

// EditedPods returns the changed static pods of the host: their files, each with the difference.
func EditedPods(is *observed.Host) []string {
	var out []string
	for _, path := range is.Edited {
		if !condition.IsStaticPod(path) {
			continue
		}
		if other := is.PodEdits[path]; len(other) > 0 {
			path += " (" + strings.Join(other, ", ") + ")"
		}
		out = append(out, path)
	}
	return out
}

// blockingPodEdits returns a problem if the upgrade would overwrite manual edits of static pods. Additions such as the
// encryption of Secrets would be lost. It returns nil if there are no such edits, or if the operator discards them.
func (v *view) blockingPodEdits() *problem.Problem {
	if v.in.DiscardEdits {
		return nil
	}
	upgrades := v.hostsToUpgrade()
	var pods []string
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if !slices.Contains(upgrades, s.ID) {
			continue
		}
		for _, pod := range EditedPods(&s.is) {
			pods = append(pods, s.displayName()+": "+pod)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return &problem.Problem{Code: problem.EditsInTheWay, Parameters: problem.Parameters{"files": pods}}
}

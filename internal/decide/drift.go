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

// driftByHost returns, by host ID, the names of configurations that a member has and that differ from what is desired,
// sorted. Hosts outside the limit and configurations that a host does not have are left out.
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

// driftedNames names, sorted, the configurations of which the host has noted another digest than the wanted one, the
// image of cluster DNS, if the host lacks it, credentials, if the host has others than the caller, firewalls, if one of
// them is not configured, and swap that is in use.
func (s *hostState) driftedNames(want map[string]string, firewall string) []string {
	var out []string
	for name, digest := range want {
		if have, ok := s.is.Digests[name]; ok && have != digest && name != desired.DNSImageDigest &&
			name != desired.FirewallDigest {
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

// hasSwap reports whether the host has joined and has swap in use, with which its kubelet would not start again.
func (s *hostState) hasSwap() bool { return s.hasJoined() && len(s.is.Swaps) > 0 && !s.is.SwapAllowed }

// lacksDNSImage reports whether the host has joined and does not have the image of cluster DNS under the wanted name.
// Unlike with a configuration, no note is a note: that it has the image under the name that goes without saying.
func (s *hostState) lacksDNSImage(want map[string]string) bool {
	return s.hasJoined() && s.is.Reach == observed.Reached &&
		s.is.Digests[desired.DNSImageDigest] != want[desired.DNSImageDigest]
}

// staleAddons names the addons that are missing in the cluster or are others there, also by somebody else's hand,
// sorted.
func (v *view) staleAddons() []string {
	if v.in.About != nil || v.in.Want.Endpoint.Later != "" {
		return nil // they are the whole cluster's, and made for the manifest's endpoint
	}
	if v.addonsUnknown() {
		return nil
	}
	var out []string
	for name, want := range v.in.Addons {
		if v.in.Is.API.Addons[name] != want || len(v.in.Is.API.Compared[name].Differences) > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// autoApproval reports whether any join token is good for any Node. A decision about some hosts leaves that to one
// about the cluster, unless they join.
func (v *view) autoApproval() bool {
	return v.in.About == nil && v.in.Is.API.AutoApproval == observed.Yes
}

// staleSystem names the apps that have to follow the version. They follow when every member has it, and the images:
// kube-proxy must not be newer than an API server, and its image comes with the version.
func (v *view) staleSystem() []string {
	if v.in.About != nil || v.systemHost() == "" || !v.canJoin() || len(v.machinesBehind()) > 0 ||
		len(idsWhere(v.hosts, func(s *hostState) bool {
			return s.hasJoined() && v.isOutdated(s) || s.lacksDNSImage(v.in.Config[s.ID])
		})) > 0 {
		return nil
	}
	return v.oldSystem()
}

// followingSystem names the apps that follow in an upgrade, after the control plane: if it leaves no member behind, and
// no Machine, and fetches what members lack.
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

// oldSystem names the apps of which a ready pod has another image than the wanted one, or an object is not as it must
// be, sorted.
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

// waitingForServing names the Nodes whose kubelets wait for a serving certificate, with no other names than the
// manifest gives their hosts: kubelets renew theirs when no run is there to approve it. A decision about some hosts
// leaves that to one about the cluster.
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

// allAmong reports whether every name is one of those that are allowed.
func allAmong(names, allowed []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, name) })
	})
}

// staleSettings names the apps whose settings are not as they must be, sorted.
func (v *view) staleSettings() []string {
	if v.in.About != nil || v.in.Want.Endpoint.Later != "" {
		return nil // they are the whole cluster's, and compared with the manifest's endpoint
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

// systemHost returns the control-plane host inside the limit that applies what kubeadm applies; empty if there is none.
func (v *view) systemHost() string {
	sound := idsWhere(v.controlPlane(), func(s *hostState) bool {
		return s.inLimit && s.Condition == condition.Healthy && s.is.PKI == observed.Yes
	})
	if len(sound) == 0 {
		return ""
	}
	return sound[0]
}

// allAddons names every wanted addon, sorted.
func (v *view) allAddons() []string { return slices.Sorted(maps.Keys(v.in.Addons)) }

// staleRecord reports whether our record in the cluster is missing, cannot be read where a run writes it again, or is
// of another cluster or manifest, or whether the credentials that go with it, for hosts of Machines, are others.
func (v *view) staleRecord() bool {
	if v.in.About != nil {
		return false // it is the whole cluster's
	}
	r, pool := v.in.Is.API.Record, v.in.Is.API.Pool
	return pool != nil && pool.Credentials == observed.No ||
		r == nil || v.mendsRecord() || r.Cluster != v.in.Want.Name || r.Hardening != v.in.Want.Hardening ||
		r.ManifestDigest != v.in.Want.Digest
}

// staleNode reports whether the member's Node lacks labels, annotations or taints that the manifest wants, or has those
// that it wants gone. What others have put there is left alone.
func (v *view) staleNode(s *hostState) bool {
	if !s.inLimit || !s.hasJoined() || s.node == nil {
		return false
	}
	return differsFrom(s.Labels, s.node.Labels) || differsFrom(s.Annotations, s.node.Annotations) || taintsDiffer(s)
}

// differsFrom reports whether some wanted key has another value, or a key written with a final "-" is still there.
func differsFrom(want, have map[string]string) bool {
	for key, value := range want {
		got, ok := have[key]
		gone := strings.HasSuffix(key, "-")
		if gone {
			_, ok = have[strings.TrimSuffix(key, "-")]
		}
		if gone && ok || !gone && (!ok || got != value) {
			return true
		}
	}
	return false
}

// controlPlaneTaint is the taint that kubeadm gives to control-plane nodes automatically.
const controlPlaneTaint = "node-role.kubernetes.io/control-plane"

// taintsDiffer reports whether a wanted taint is missing, or the control-plane taint is there unwanted: that one came
// with the join, any other may be somebody else's.
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

// Files of hosts are what a stage wrote, or somebody has changed them since. Those of kubelet, container runtime and
// kernel become again what they were: in the version and with the settings that the host has, whatever else is desired
// of it. Static pods stay as they are.

// restorableFiles returns the host's files that can be restored. In the middle of an upgrade there are none: it writes
// them. One of a control-plane host to another version than is desired by now is over.
func (v *view) restorableFiles(s *hostState) []string {
	if s.is.Upgrading != "" && v.isOutdated(s) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.is.Restorable), func(path string) bool {
		return !condition.IsRestored(path)
	})
}

// exposedFiles returns the host's files with keys that others may read, and that can be closed to them: whenever its
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

// canRestore reports whether files of the host can be restored now. Containers continue meanwhile; but what a kubelet
// or a container runtime did by files of somebody else's is not known, and so etcd must allow that the host stops.
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

// brokenByEdits reports whether the host is not well, and files can be restored that may be why.
func (v *view) brokenByEdits(s *hostState) bool {
	return s.Condition != condition.Healthy && len(v.restorableFiles(s)) > 0 && v.canRestore(s)
}

// filesToRestore returns the files to restore or to close, by host: of hosts that are not well, or of all.
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

// editWarnings warns of files that others may read, and of files that somebody has changed on a host that is well.
// Elsewhere the latter are part of what is wrong.
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

// EditedPods returns the host's static pods that somebody has changed: their files, each with what is other there.
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

// podsInTheWay returns the problem of an upgrade that would write static pods again which somebody has changed: what
// they have added, the encryption of Secrets perhaps, would be lost. It is nil where nothing would, or the operator
// says so.
func (v *view) podsInTheWay() *problem.Problem {
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

package decide

import (
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"net/netip"
	"slices"
	"strings"
)

// Cluster DNS: its pods' label, and its name in messages.
const (
	appDNS     = "kube-dns"
	clusterDNS = "cluster DNS"
)

// Absence is a component that has no ready pod where it must have one.
type Absence struct {
	Component string
	Nodes     []string // Ready Nodes that lack one, in the API's order; none if it runs nowhere and need run only once
}

// maxNamed is the maximum number of Nodes that String names.
const maxNamed = 5

// String names the component and the Nodes: "cluster DNS", "kube-proxy on cp-1 and cp-2".
func (a Absence) String() string {
	if len(a.Nodes) == 0 {
		return a.Component
	}
	return a.Component + " on " + problem.List(problem.Some(a.Nodes, maxNamed))
}

// Where returns where the component does not run, for a sentence after "on".
func (a Absence) Where() []string {
	if len(a.Nodes) == 0 {
		return []string{"any Node"}
	}
	return a.Nodes
}

// NotRunning returns the components without which pods have no network, Services or DNS. kube-proxy and kubeone's
// network plugins must have a ready pod on every Ready Linux Node, and cluster DNS must have one. It returns nothing if
// the API does not answer.
func NotRunning(want desired.Network, is observed.API) []Absence {
	if is.Reached != observed.Yes {
		return nil
	}
	var everywhere []string
	if slices.Contains(want.CNI.Deployed(), want.CNI.Name) {
		everywhere = append(everywhere, want.CNI.Name)
	}
	if !want.KubeProxy.Skip {
		everywhere = append(everywhere, kubeProxy)
	}
	var out []Absence
	for _, app := range everywhere {
		if nodes := nodesWithoutApp(app, is); len(nodes) > 0 {
			out = append(out, Absence{Component: app, Nodes: nodes})
		}
	}
	if !slices.ContainsFunc(is.Pods, func(p observed.Pod) bool { return p.App == appDNS && p.Ready == observed.Yes }) {
		out = append(out, Absence{Component: clusterDNS})
	}
	return out
}

// replacesKubeProxy reports whether there still are pods of kube-proxy, whose work the network plugin is to do.
func (v *view) replacesKubeProxy() bool {
	want := v.in.Want.Network
	return v.in.About == nil && v.in.Limit == nil && v.in.Want.Endpoint.Later == "" &&
		want.KubeProxy.Skip && want.CNI.Features.ReplacesKubeProxy &&
		slices.ContainsFunc(v.in.Is.API.Pods, func(p observed.Pod) bool { return p.App == kubeProxy })
}

// nodesWithoutApp returns the Nodes that are Ready and have no ready pod of the app.
func nodesWithoutApp(app string, is observed.API) []string {
	has := make(map[string]bool, len(is.Nodes))
	for _, p := range is.Pods {
		if p.App == app && p.Ready == observed.Yes {
			has[p.Node] = true
		}
	}
	var nodes []string
	for _, n := range is.Nodes {
		if n.Ready == observed.Yes && mayRun(n) && !has[n.Name] {
			nodes = append(nodes, n.Name)
		}
	}
	return nodes
}

// mayRun reports whether components are meant to run on the Node: not on Windows, nor on virtual Nodes.
func mayRun(n observed.Node) bool {
	os := n.Labels["kubernetes.io/os"]
	return os == "" || os == "linux"
}

// maxAbsent is the maximum number of Nodes or pods that a warning names.
const maxAbsent = 5

// notRunning warns of components that are not running where they must. Only decisions about the whole cluster do so.
func (v *view) notRunning() []problem.Problem {
	if v.in.About != nil {
		return nil
	}
	var out []problem.Problem
	for _, a := range NotRunning(v.in.Want.Network, v.in.Is.API) {
		out = append(out, problem.Problem{Code: problem.ComponentNotRunning, Parameters: problem.Parameters{
			"component": a.Component, "nodes": problem.Some(a.Where(), maxAbsent),
		}})
	}
	return out
}

// podsOutside warns of pods with addresses outside the pod network of kubeone's network plugin. Only decisions about
// the whole cluster do so.
func (v *view) podsOutside() []problem.Problem {
	want := v.in.Want.Network
	if v.in.About != nil || !slices.Contains(want.CNI.Deployed(), want.CNI.Name) {
		return nil
	}
	subnets := want.PodNetworks()
	var pods []string
	for _, p := range v.in.Is.API.Pods {
		address, err := netip.ParseAddr(p.Address)
		within := func(subnet string) bool {
			s, err := netip.ParsePrefix(subnet)
			return err != nil || s.Contains(address)
		}
		if err == nil && p.Ready == observed.Yes && len(subnets) > 0 && !slices.ContainsFunc(subnets, within) {
			pods = append(pods, p.Name+" on "+p.Node+" ("+p.Address+")")
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return []problem.Problem{{Code: problem.PodsOutsideNetwork, Parameters: problem.Parameters{
		"pods": problem.Some(pods, maxAbsent), "subnets": subnets,
	}}}
}

// comingUp lists the members, inside the limit or not, that may become healthy without help. If hosts cannot be told
// apart, waiting does not help.
func (v *view) comingUp() []string {
	if len(v.in.Contradictions) > 0 {
		return nil
	}
	if event, _ := v.askQuorum(); event == fsm.OnLost && !v.mayElect() {
		return nil
	}
	return idsWhere(v.hosts, func(s *hostState) bool {
		return s.Condition == condition.Unready || s.Condition == condition.Broken || v.votesAlready(s) ||
			s.Condition == condition.Restartable && isStarting(s.is.Containerd) && isStarting(s.is.Kubelet)
	})
}

// isStarting reports whether the unit runs or is starting: it may only be late to answer.
func isStarting(u observed.Unit) bool {
	return u.Active || !u.Known() || strings.HasPrefix(u.State, "activating")
}

// votesAlready reports whether the host's join has reached a voting member, as the host says, that does not serve
// clients yet; that takes some seconds more. A host with neither curl nor wget cannot say so.
func (v *view) votesAlready(s *hostState) bool {
	return s.Condition == condition.Partial && s.is.EtcdHealth == observed.Yes &&
		slices.ContainsFunc(v.in.Is.Etcd.Members, func(m observed.Member) bool {
			return m.ID == s.Etcd && !m.Learner && m.Healthy != observed.Yes
		})
}

// mayElect reports whether the members that answer, or may hold data on an answering host, could be a quorum.
func (v *view) mayElect() bool {
	voters := len(idsWhere(v.controlPlane(), func(s *hostState) bool {
		return !s.Condition.Silent() && s.is.EtcdData != observed.No
	}))
	for _, s := range v.etcd.orphans {
		if !s.Learner && s.Healthy == observed.Yes {
			voters++
		}
	}
	return voters >= quorum.Of(v.etcd.tally.Voters)
}

// FirewallsToConfigure returns the firewalls of a host that differ from the manifest: without kubeone's rules, or on
// although they must be off.
func FirewallsToConfigure(is *observed.Host, wanted string) []observed.Firewall {
	var out []observed.Firewall
	for _, f := range is.Firewalls {
		if wanted == desired.FirewallManage && !f.Ours || wanted == desired.FirewallDisable && !f.Off {
			out = append(out, f)
		}
	}
	return out
}

// needsFirewallRules reports whether a firewall of the host differs from the manifest, or has other rules of kubeone's
// than the desired ones. A digest alone says nothing: a host without a firewall has no rules.
func (s *hostState) needsFirewallRules(want map[string]string, wanted string) bool {
	noted, ok := s.is.Digests[desired.FirewallDigest]
	other := ok && noted != want[desired.FirewallDigest]
	return len(FirewallsToConfigure(&s.is, wanted)) > 0 ||
		wanted == desired.FirewallManage && other && len(s.is.Firewalls) > 0
}

// Hardening returns how much to harden the cluster: the manifest's value, else the value that the cluster was made
// with. The cluster's record has that after a complete run; before, or if it cannot be read, the control-plane hosts
// have it. A new cluster gets the baseline. A cluster made before there was such a value stays as it is: "".
//
// A host that does not answer may belong to an existing cluster: only if all answer can the cluster be new. Said
// reports whether the manifest, the record or a host gave the value.
func Hardening(want desired.Cluster, is observed.World) (value string, said bool) {
	if want.Hardening != "" {
		return want.Hardening, true
	}
	noted, made, answered := notedHardening(want, is)
	if r := is.API.Record; r != nil && r.Cluster == want.Name && r.ManifestDigest != "" &&
		!r.IsUnreadable(observed.RecordHardening) {
		if r.Hardening == "" && noted != "" {
			return desired.HardeningNone, true // hardening has begun and is no longer desired
		}
		return r.Hardening, true
	}
	switch {
	case noted != "":
		return noted, true
	case made || !answered:
		return "", false
	}
	return desired.HardeningBaseline, false
}

// notedHardening returns the value that control-plane hosts have noted, whether one of them has joined, and whether all
// have answered. Some hosts may not be reconfigured yet.
func notedHardening(want desired.Cluster, is observed.World) (noted string, made, answered bool) {
	answered = len(want.ControlPlane) > 0
	for _, h := range want.ControlPlane {
		seen := is.Hosts[h.ID]
		if seen.Reach != observed.Reached {
			answered = false
			continue
		}
		if m := seen.Marker; m == nil || m.Cluster != want.Name || !m.Complete {
			continue
		}
		made = true
		if n := desired.HardeningNoted(seen.Digests); noted != desired.HardeningBaseline && n != "" {
			noted = n
		}
	}
	return noted, made, answered
}

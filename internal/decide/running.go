package decide

import (
	"net/netip"
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// Cluster DNS, as its pods are labelled and as a person calls it.
const (
	appDNS     = "kube-dns"
	clusterDNS = "cluster DNS"
)

// Absence is a component that has no ready pod where it must have one.
type Absence struct {
	Component string
	Nodes     []string // that are Ready and lack one, in the API's order; none where it runs nowhere and need run once
}

// mostNamed is how many Nodes String names.
const mostNamed = 5

// String names the component and the Nodes: "cluster DNS", "kube-proxy on cp-1 and cp-2".
func (a Absence) String() string {
	if len(a.Nodes) == 0 {
		return a.Component
	}
	return a.Component + " on " + problem.List(problem.Some(a.Nodes, mostNamed))
}

// Where is where the component does not run, after "on".
func (a Absence) Where() []string {
	if len(a.Nodes) == 0 {
		return []string{"any Node"}
	}
	return a.Nodes
}

// NotRunning are the components without which pods have no network, no Services or no names. The network plugin, if it
// is one of ours, and kube-proxy must have a ready pod on every Node that is Ready and runs Linux, and cluster DNS one
// at all. Nothing is known of them, and nothing is returned, while the API does not answer.
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
		if nodes := without(app, is); len(nodes) > 0 {
			out = append(out, Absence{Component: app, Nodes: nodes})
		}
	}
	if !slices.ContainsFunc(is.Pods, func(p observed.Pod) bool { return p.App == appDNS && p.Ready == observed.Yes }) {
		out = append(out, Absence{Component: clusterDNS})
	}
	return out
}

// without are the Nodes that are Ready and have no ready pod of the app.
func without(app string, is observed.API) []string {
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

// mayRun reports whether components are meant for the Node at all: for one of Windows, or what only poses as a Node,
// they are not.
func mayRun(n observed.Node) bool {
	os := n.Labels["kubernetes.io/os"]
	return os == "" || os == "linux"
}

// mostAbsent is how many Nodes a warning names on which a component does not run.
const mostAbsent = 5

// notRunning warns of components that do not run where they must. A decision about some hosts leaves them to one about
// the cluster.
func (v *view) notRunning() []problem.Problem {
	if v.in.About != nil {
		return nil
	}
	var out []problem.Problem
	for _, a := range NotRunning(v.in.Want.Network, v.in.Is.API) {
		out = append(out, problem.Problem{Code: problem.ComponentNotRunning, Parameters: problem.Parameters{
			"component": a.Component, "nodes": problem.Some(a.Where(), mostAbsent),
		}})
	}
	return out
}

// podsOutside warns of pods whose addresses are not of the pod network of our network plugin. A decision about some
// hosts leaves them to one about the cluster.
func (v *view) podsOutside() []problem.Problem {
	want := v.in.Want.Network
	if v.in.About != nil || !slices.Contains(want.CNI.Deployed(), want.CNI.Name) {
		return nil
	}
	var subnets []string
	for _, subnet := range []string{want.PodSubnet, want.PodSubnetIPv6} {
		if subnet != "" {
			subnets = append(subnets, subnet)
		}
	}
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
		"pods": problem.Some(pods, mostAbsent), "subnets": subnets,
	}}}
}

package decide

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"
)

// The network plugin and kube-proxy must run on every Ready Node, cluster DNS anywhere, and only ready pods count. A
// missing component gives a warning, and stops nothing.
func TestComponentsThatDoNotRunAreNamed(t *testing.T) {
	t.Parallel()
	dead := func(is *observed.API, app, node string) {
		for i, p := range is.Pods {
			if p.App == app && p.Node == node {
				is.Pods[i].Ready = observed.No
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*desired.Network, *observed.API)
		want   []Absence
	}{
		"all run": {func(*desired.Network, *observed.API) {}, nil},
		"no DNS": {func(_ *desired.Network, is *observed.API) { dead(is, "kube-dns", "cp-1") },
			[]Absence{{Component: "cluster DNS"}}},
		"DNS elsewhere": {func(_ *desired.Network, is *observed.API) {
			dead(is, "kube-dns", "cp-1")
			is.Pods = append(is.Pods, observed.Pod{App: "kube-dns", Node: "w-1", Ready: observed.Yes})
		}, nil},
		"a proxy is unknown": {func(_ *desired.Network, is *observed.API) { is.Pods[1].Ready = observed.Unknown },
			[]Absence{{"kube-proxy", []string{"cp-1"}}}},
		"two plugins": {func(_ *desired.Network, is *observed.API) {
			dead(is, "flannel", "w-1")
			dead(is, "flannel", "cp-2")
		}, []Absence{{"flannel", []string{"cp-2", "w-1"}}}},
		"an external plugin": {func(want *desired.Network, is *observed.API) {
			want.CNI.Name = desired.ExternalCNI
			dead(is, "flannel", "w-1")
		}, nil},
		"no proxy is wanted": {func(want *desired.Network, is *observed.API) {
			want.KubeProxy.Skip = true
			dead(is, "kube-proxy", "w-1")
		}, nil},
		"on a Node that is not Ready": {func(_ *desired.Network, is *observed.API) {
			is.Nodes[3].Ready = observed.Unknown
			dead(is, "kube-proxy", "w-1")
		}, nil},
		"on a Node that the manifest does not have": {func(_ *desired.Network, is *observed.API) {
			is.Nodes = append(is.Nodes, observed.Node{Name: "other", Ready: observed.Yes})
		}, []Absence{{"flannel", []string{"other"}}, {"kube-proxy", []string{"other"}}}},
		"on Nodes that run something else": {func(_ *desired.Network, is *observed.API) {
			is.Nodes = append(is.Nodes,
				observed.Node{Name: "w", Ready: observed.Yes, Labels: map[string]string{"kubernetes.io/os": "windows"}},
				observed.Node{Name: "l", Ready: observed.Yes, Labels: map[string]string{"kubernetes.io/os": "linux"}})
		}, []Absence{{"flannel", []string{"l"}}, {"kube-proxy", []string{"l"}}}},
		"the API is silent": {func(_ *desired.Network, is *observed.API) {
			*is = observed.API{Reached: observed.No}
		}, nil},
	} {
		in := healthyCluster(3, 1)
		c.change(&in.Want.Network, &in.Is.API)
		if diff := cmp.Diff(c.want, NotRunning(in.Want.Network, in.Is.API)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		d, blind := Decide(in), in
		blind.Is.API.Pods = nil
		warned := slices.DeleteFunc(d.Warnings, func(p problem.Problem) bool {
			return p.Code != problem.ComponentNotRunning
		})
		if len(warned) != len(c.want) || d.Route != Decide(blind).Route {
			t.Errorf("%s: route %s, warnings %v", name, d.Route, warned)
		}
	}
}

// A warning names a few Nodes, not thousands.
func TestAWarningNamesSomeOfManyNodes(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 20)
	in.Is.API.Pods = decidetest.Pods(in.Want, in.Is.API.Nodes[:1])
	for _, p := range Decide(in).Warnings {
		nodes, _ := p.Parameters["nodes"].([]string)
		if want := []string{"w-1", "w-2", "w-3", "w-4", "w-5", "15 more"}; !cmp.Equal(nodes, want) {
			t.Errorf("%s names %q", p.Code, nodes)
		}
	}
	in.About = map[string]bool{"192.0.1.1": true}
	if w := Decide(in).Warnings; problem.Has(w, problem.ComponentNotRunning) {
		t.Errorf("a decision about one host warns: %v", w)
	}
}

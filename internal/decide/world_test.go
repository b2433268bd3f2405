package decide

import (
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"
)

// healthyCluster returns the input of a cluster that matches its manifest.
func healthyCluster(controlPlanes, workers int) Input {
	in := Input{
		Want:   decidetest.Wanted(controlPlanes, workers),
		Config: map[string]map[string]string{},
		Addons: map[string]string{"flannel": "addon-1", "coredns": "addon-2"},
	}
	in.Is.Hosts = map[string]observed.Host{}
	in.Is.API = observed.API{
		Reached: observed.Yes, Version: decidetest.Version,
		Addons: map[string]string{"flannel": "addon-1", "coredns": "addon-2"},
		Record: &observed.Record{Cluster: decidetest.Cluster, ManifestDigest: decidetest.Digest},
	}
	in.Is.Etcd.Reached = observed.Yes
	for _, h := range in.Want.Hosts() {
		in.Is.Hosts[h.ID] = decidetest.Member(h)
		in.Config[h.ID] = map[string]string{"kubelet": "config-1"}
		in.Is.API.Nodes = append(in.Is.API.Nodes, decidetest.ReadyNode(h))
		if h.Role == desired.ControlPlane {
			in.Is.Etcd.Members = append(in.Is.Etcd.Members, decidetest.Voter(h))
		}
	}
	in.Is.API.Pods = decidetest.Pods(in.Want, in.Is.API.Nodes)
	if controlPlanes > 0 {
		in.Is.API.Via = in.Want.ControlPlane[0].ID
	}
	return in
}

// changeObserved changes what one host said.
func (in *Input) changeObserved(id string, how func(*observed.Host)) {
	h := in.Is.Hosts[id]
	how(&h)
	in.Is.Hosts[id] = h
}

// nodeNamed returns the Node with that name, for changes.
func (in *Input) nodeNamed(name string) *observed.Node {
	for i := range in.Is.API.Nodes {
		if in.Is.API.Nodes[i].Name == name {
			return &in.Is.API.Nodes[i]
		}
	}
	return nil
}

// emptyHosts makes hosts bare, without Node and member.
func (in *Input) emptyHosts(ids ...string) {
	for _, h := range in.Want.Hosts() {
		if !slices.Contains(ids, h.ID) {
			continue
		}
		in.Is.Hosts[h.ID] = decidetest.Bare(h)
		in.Is.API.Nodes = slices.DeleteFunc(in.Is.API.Nodes, func(n observed.Node) bool { return n.Name == h.Hostname })
		in.Is.Etcd.Members = slices.DeleteFunc(in.Is.Etcd.Members, func(m observed.Member) bool {
			return m.Name == h.Hostname
		})
	}
}

// bareWorld returns the world before an installation.
func (in *Input) bareWorld() {
	for _, h := range in.Want.Hosts() {
		in.emptyHosts(h.ID)
	}
	in.Is.API, in.Is.Etcd = observed.API{}, observed.Etcd{}
}

// loseHosts makes hosts unreachable and their members dead.
func (in *Input) loseHosts(ids ...string) {
	for _, h := range in.Want.Hosts() {
		if slices.Contains(ids, h.ID) {
			in.Is.Hosts[h.ID] = decidetest.Silent(h)
			in.killMembers(h.Hostname)
		}
	}
}

func (in *Input) killMembers(name string) {
	for i := range in.Is.Etcd.Members {
		if in.Is.Etcd.Members[i].Name == name {
			in.Is.Etcd.Members[i].Healthy = observed.No
		}
	}
}

func problemTexts(problems []problem.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

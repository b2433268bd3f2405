package view

import (
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/model/observed"
)

// PoolReport is the Machines of a cluster, and the hosts of its pool.
type PoolReport struct {
	// Controllers is Yes where the controllers were heard of just now.
	Controllers observed.Tri       `json:"controllers"`
	Deployments []DeploymentReport `json:"deployments,omitempty"`
	Machines    []MachineReport    `json:"machines,omitempty"`
	Hosts       []PoolHostReport   `json:"hosts,omitempty"`
	// Problem is why they could not be read; all else is empty then.
	Problem string `json:"problem,omitempty"`
	// More says that there are more of these than are listed.
	More bool `json:"more,omitempty"`
}

// DeploymentReport is a MachineDeployment.
type DeploymentReport struct {
	Name     string `json:"name"` // namespace/name
	Replicas int    `json:"replicas"`
	Ready    int    `json:"ready"`
	Updated  int    `json:"updated"`
	Kubelet  string `json:"kubelet,omitempty"` // the version that is wanted
	Deleting bool   `json:"deleting,omitempty"`
}

// MachineReport is a Machine.
type MachineReport struct {
	Name  string `json:"name"` // namespace/name
	Owner string `json:"owner,omitempty"`
	Phase string `json:"phase,omitempty"`
	Host  string `json:"host,omitempty"`
	Node  string `json:"node,omitempty"`
	// NodeReady is No too where it has no Node.
	NodeReady     observed.Tri `json:"nodeReady"`
	Cordoned      bool         `json:"cordoned,omitempty"`
	Kubelet       string       `json:"kubelet,omitempty"`
	WantedKubelet string       `json:"wantedKubelet,omitempty"`
	Deleting      bool         `json:"deleting,omitempty"`
	Error         string       `json:"error,omitempty"` // what only a person can correct
	Waits         string       `json:"waits,omitempty"` // why it is not ready otherwise
}

// PoolHostReport is a host of the pool.
type PoolHostReport struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	State   string `json:"state"`
	Machine string `json:"machine,omitempty"` // namespace/name of the one that has it, or has not returned it
	Message string `json:"message,omitempty"`
}

// pool is nil where there are neither Machines nor hosts for any.
func (st StatusInput) pool() *PoolReport {
	p := st.World.API.Pool
	if p.Empty() && (p == nil || len(p.Hosts) == 0) {
		return nil
	}
	r := &PoolReport{Controllers: p.Controllers, More: p.More, Problem: p.Problem}
	for _, d := range p.Deployments {
		r.Deployments = append(r.Deployments, DeploymentReport{
			Name: d.Namespace + "/" + d.Name, Replicas: d.Replicas, Ready: d.Ready, Updated: d.Updated,
			Kubelet: d.Kubelet, Deleting: d.Deleting,
		})
	}
	for _, m := range p.Machines {
		one := MachineReport{
			Name: m.ID(), Owner: m.Owner, Phase: m.Phase, Host: m.Host, Node: m.Node, NodeReady: observed.No,
			Kubelet: m.Kubelet, WantedKubelet: m.WantedKubelet, Deleting: m.Deleting, Error: m.Error, Waits: m.Waits,
		}
		for _, n := range st.World.API.Nodes {
			if n.Name == m.Node {
				one.NodeReady, one.Cordoned = n.Ready, n.Unschedulable
			}
		}
		r.Machines = append(r.Machines, one)
	}
	for _, h := range p.Hosts {
		r.Hosts = append(r.Hosts, PoolHostReport(h))
	}
	return r
}

// checkMachines is ok when every Machine that is to stay is a Node that is Ready, with no error, and every deployment
// has as many as it wants. It is nil where there are none.
func checkMachines(p *PoolReport) *Check {
	switch {
	case p == nil:
		return nil
	case p.Problem != "":
		return &Check{"machines", false, "could not be read: " + p.Problem}
	case len(p.Machines) == 0 && len(p.Deployments) == 0 && !p.More:
		return nil
	}
	var bad []string
	stay := 0
	for _, m := range p.Machines {
		if m.Deleting {
			continue
		}
		stay++
		if how := m.trouble(); how != "" {
			bad = append(bad, m.Name+" "+how)
		}
	}
	c := &Check{Name: "machines", Detail: fmt.Sprintf("%d of %d Ready", stay-len(bad), stay)}
	for _, d := range p.Deployments {
		if !d.Deleting && d.Ready < d.Replicas {
			bad = append(bad, fmt.Sprintf("MachineDeployment %s has %d of %d", d.Name, d.Ready, d.Replicas))
		}
	}
	if p.More {
		bad = append(bad, "not all were looked at")
	}
	if len(bad) > 0 {
		c.Detail += ": " + list(bad, 5)
	}
	c.OK = len(bad) == 0
	return c
}

// trouble is how the Machine is not what a Machine is to be; "" where it is.
func (m MachineReport) trouble() string {
	switch {
	case m.Error != "":
		return "has an error"
	case m.Node == "" && m.Phase != "":
		return strings.ToLower(m.Phase)
	case m.Node == "":
		return "not looked after"
	case m.NodeReady != observed.Yes:
		return "not Ready"
	}
	return ""
}

// free is how many hosts of the pool a Machine may have.
func (p *PoolReport) free() int {
	return len(slices.DeleteFunc(slices.Clone(p.Hosts), func(h PoolHostReport) bool { return h.State != "Free" }))
}

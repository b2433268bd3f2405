package view

import (
	"cmp"
	"fmt"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hostReport is one host's line. What the host did not say itself, its Node may have.
func (st StatusInput) hostReport(h desired.Host) HostReport {
	seen, found := st.World.Hosts[h.ID], st.Decision.Hosts[h.ID]
	r := HostReport{
		ID: h.ID, Name: st.displayName(h.ID), Address: h.PublicAddress, Role: h.Role,
		Condition: found.Condition, Reasons: problem.Whats(found.Reasons), Problems: found.Reasons,
		Kubernetes: seen.Kubelet.Version, Kubelet: seen.Kubelet.Version, Containerd: seen.Containerd.Version,
		OS:            seen.OS.Name,
		WantedKubelet: h.Versions.Kubernetes,
		Certificate:   earliestExpiry(seen.Certificates, st.Now),
	}
	if r.Condition == "" {
		r.Condition = condition.Unreachable // the zero value of everything is that nothing is known
	}
	st.nodeOf(&r)
	if h.Role == desired.ControlPlane {
		r.Kubernetes, r.APIServer = seen.APIServerVersion, seen.APIServer
		r.Etcd = st.memberOf(found.Etcd, seen)
	}
	return r
}

func (st StatusInput) nodeOf(r *HostReport) {
	i := slices.IndexFunc(st.World.API.Nodes, func(n observed.Node) bool { return n.Name == r.Name })
	if i < 0 {
		if st.World.API.Reached == observed.Yes {
			r.NodeReady = observed.No
		}
		return
	}
	n := st.World.API.Nodes[i]
	r.NodeReady, r.Cordoned = n.Ready, n.Unschedulable
	r.Kubelet = cmp.Or(r.Kubelet, n.KubeletVersion)
	if r.Role != desired.ControlPlane {
		r.Kubernetes = r.Kubelet
	}
}

func earliestExpiry(certificates []observed.Certificate, now time.Time) *CertificateReport {
	if len(certificates) == 0 {
		return nil
	}
	c := slices.MinFunc(certificates, func(a, b observed.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	return &CertificateReport{
		Name:     c.Name,
		NotAfter: c.NotAfter,
		Days:     Days(now, c.NotAfter),
		Expired:  !now.Before(c.NotAfter),
	}
}

func (st StatusInput) apiReport() APIReport {
	a, e := st.World.API, st.Want.Endpoint
	r := APIReport{Reached: a.Reached, Problem: a.Problem, Version: a.Version, PendingCSRs: a.PendingCSRs}
	r.Endpoint = "https://" + net.JoinHostPort(e.Host, strconv.Itoa(e.Port))
	if a.Via != "" {
		r.Via = st.displayName(a.Via)
	}
	return r
}

// hooksOwed says after what hooks have not all succeeded on a host.
const hooksOwed = "hooks owed after"

// driftReport is what differs from the manifest, as far as the decision looked: it ends at the first question that has
// something to be done.
func (st StatusInput) driftReport() []Difference {
	var out []Difference
	d := st.Decision
	for _, h := range st.Want.Hosts() {
		if names := d.Drift[h.ID]; len(names) > 0 {
			out = append(out, Difference{st.displayName(h.ID), "configuration", names})
		}
		if names := d.Renewals[h.ID]; len(names) > 0 {
			out = append(out, Difference{st.displayName(h.ID), "certificates near their end", names})
		}
		if slices.Contains(d.Upgrades, h.ID) {
			out = append(out, Difference{st.displayName(h.ID), "version", nil})
		}
		if slices.Contains(d.Metadata, h.ID) {
			out = append(out, Difference{st.displayName(h.ID), "node metadata", nil})
		}
		if owed := st.World.Hosts[h.ID].HooksOwed; len(owed) > 0 {
			out = append(out, Difference{st.displayName(h.ID), hooksOwed, owed})
		}
	}
	addons := slices.DeleteFunc(slices.Clone(d.Addons), func(name string) bool { // objects say more
		return len(st.World.API.Compared[name].Differences) > 0
	})
	if len(addons) > 0 && d.Route != fsm.Install {
		out = append(out, Difference{"", "addons", addons})
	}
	if objects := objectsOf(st.World.API); len(objects) > 0 {
		out = append(out, Difference{"", "objects", objects})
	}
	if len(d.Serving) > 0 {
		out = append(out, Difference{"", "serving certificates", d.Serving})
	}
	if d.Record && d.Route != fsm.Install {
		out = append(out, Difference{"", "record", nil})
	}
	return out
}

func (st StatusInput) runningSteps() []RunningStep {
	var out []RunningStep
	for _, h := range st.Want.Hosts() {
		if s := st.World.Hosts[h.ID].Step; s != nil {
			out = append(out, RunningStep{st.displayName(h.ID), cmp.Or(s.Stage, s.Unit), s.RunID})
		}
	}
	return out
}

// lockReports are the runs that hold a lock, each once, with all the places where it holds one.
func (st StatusInput) lockReports() []LockReport {
	var out []LockReport
	of := func(l observed.Lock) *LockReport {
		i := slices.IndexFunc(out, func(r LockReport) bool { return r.RunID == l.RunID && r.Holder == l.Holder })
		if i < 0 {
			i, out = len(out), append(out, LockReport{Holder: l.Holder, RunID: l.RunID, Since: l.Since})
		}
		out[i].Live = out[i].Live || l.Live
		return &out[i]
	}
	if l := st.World.API.Lease; l != nil && l.Holder != "" {
		of(*l).API = true
	}
	for _, h := range st.Want.Hosts() {
		if l := st.World.Hosts[h.ID].Lock; l != nil && l.Holder != "" {
			r := of(*l)
			r.Hosts = append(r.Hosts, st.displayName(h.ID))
		}
	}
	return out
}

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

// poolReport is nil where there are neither Machines nor hosts for any.
func (st StatusInput) poolReport() *PoolReport {
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
		if how := m.whyNotReady(); how != "" {
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
		c.Detail += ": " + joinNames(bad, 5)
	}
	c.OK = len(bad) == 0
	return c
}

// whyNotReady is how the Machine is not what a Machine is to be; "" where it is.
func (m MachineReport) whyNotReady() string {
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

// freeHosts is how many hosts of the pool a Machine may have.
func (p *PoolReport) freeHosts() int {
	return len(slices.DeleteFunc(slices.Clone(p.Hosts), func(h PoolHostReport) bool { return h.State != "Free" }))
}

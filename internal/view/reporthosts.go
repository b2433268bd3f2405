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

// hostReport returns the status of one host. Values that the host did not report come from its Node.
func (st StatusInput) hostReport(h desired.Host) HostReport {
	seen, found := st.World.Hosts[h.ID], st.Decision.Hosts[h.ID]
	r := HostReport{
		ID: h.ID, Name: st.displayName(h.ID), Address: h.PublicAddress, Role: h.Role,
		Condition: found.Condition, Reasons: problem.Texts(found.Reasons), Problems: found.Reasons,
		Kubernetes: seen.Kubelet.Version, Kubelet: seen.Kubelet.Version, Containerd: seen.Containerd.Version,
		OS:            seen.OS.Name,
		WantedKubelet: h.Versions.Kubernetes,
		Certificate:   earliestExpiry(seen.Certificates, st.Now),
	}
	if r.Condition == "" {
		r.Condition = condition.Unreachable // the decision does not contain the host, so nothing is known about it
	}
	st.addNodeState(&r)
	if h.Role == desired.ControlPlane {
		r.Kubernetes, r.APIServer = seen.APIServerVersion, seen.APIServer
		r.Etcd = st.hostEtcdState(found.Etcd, seen)
	}
	return r
}

// addNodeState adds the state of the Node to the report.
func (st StatusInput) addNodeState(r *HostReport) {
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

// pendingHooks is the kind of difference for hooks that have not succeeded on a host yet.
const pendingHooks = "pending hooks"

// driftReport returns the known differences from the manifest. The list can be incomplete, because the decision ends at
// the first question that finds something to do.
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
		if names := st.World.Hosts[h.ID].HooksOwed; len(names) > 0 {
			out = append(out, Difference{st.displayName(h.ID), pendingHooks, names})
		}
	}
	// Omit addons whose objects are listed below.
	addons := slices.DeleteFunc(slices.Clone(d.Addons), func(name string) bool {
		return len(st.World.API.Compared[name].Differences) > 0
	})
	if len(addons) > 0 && d.Route != fsm.Install {
		out = append(out, Difference{"", "addons", addons})
	}
	if objects := differingObjects(st.World.API); len(objects) > 0 {
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

// lockReports returns the runs that hold locks. Each run appears once, with all its locks.
func (st StatusInput) lockReports() []LockReport {
	var out []LockReport
	reportFor := func(l observed.Lock) *LockReport {
		i := slices.IndexFunc(out, func(r LockReport) bool { return r.RunID == l.RunID && r.Holder == l.Holder })
		if i < 0 {
			i, out = len(out), append(out, LockReport{Holder: l.Holder, RunID: l.RunID, Since: l.Since})
		}
		out[i].Live = out[i].Live || l.Live
		return &out[i]
	}
	if l := st.World.API.Lease; l != nil && l.Holder != "" {
		reportFor(*l).API = true
	}
	for _, h := range st.Want.Hosts() {
		if l := st.World.Hosts[h.ID].Lock; l != nil && l.Holder != "" {
			r := reportFor(*l)
			r.Hosts = append(r.Hosts, st.displayName(h.ID))
		}
	}
	return out
}

// PoolReport lists the Machines in a cluster and the hosts in its pool.
type PoolReport struct {
	// Controllers is Yes if the controllers were active within the last seconds.
	Controllers observed.Tri       `json:"controllers"`
	Deployments []DeploymentReport `json:"deployments,omitempty"`
	Machines    []MachineReport    `json:"machines,omitempty"`
	Hosts       []PoolHostReport   `json:"hosts,omitempty"`
	// Problem is why the objects could not be read; if it is set, the other fields are empty.
	Problem string `json:"problem,omitempty"`
	// More means that the lists are incomplete, because there are too many objects.
	More bool `json:"more,omitempty"`
}

// DeploymentReport is a MachineDeployment.
type DeploymentReport struct {
	Name     string `json:"name"` // namespace/name
	Replicas int    `json:"replicas"`
	Ready    int    `json:"ready"`
	Updated  int    `json:"updated"`
	Kubelet  string `json:"kubelet,omitempty"` // the desired version
	Deleting bool   `json:"deleting,omitempty"`
}

// MachineReport is a Machine.
type MachineReport struct {
	Name  string `json:"name"` // namespace/name
	Owner string `json:"owner,omitempty"`
	Phase string `json:"phase,omitempty"`
	Host  string `json:"host,omitempty"`
	Node  string `json:"node,omitempty"`
	// NodeReady is also No without a Node.
	NodeReady     observed.Tri `json:"nodeReady"`
	Cordoned      bool         `json:"cordoned,omitempty"`
	Kubelet       string       `json:"kubelet,omitempty"`
	WantedKubelet string       `json:"wantedKubelet,omitempty"`
	Deleting      bool         `json:"deleting,omitempty"`
	Error         string       `json:"error,omitempty"` // an error that only the operator can fix
	Waits         string       `json:"waits,omitempty"` // what the Machine is waiting for
}

// PoolHostReport is a host in the pool.
type PoolHostReport struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	State   string `json:"state"`
	Machine string `json:"machine,omitempty"` // namespace/name of its Machine, also while it returns the host
	Message string `json:"message,omitempty"`
}

// poolReport returns nil if there are no Machines and no pool hosts.
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
		machine := MachineReport{
			Name: m.ID(), Owner: m.Owner, Phase: m.Phase, Host: m.Host, Node: m.Node, NodeReady: observed.No,
			Kubelet: m.Kubelet, WantedKubelet: m.WantedKubelet, Deleting: m.Deleting, Error: m.Error, Waits: m.Waits,
		}
		for _, n := range st.World.API.Nodes {
			if n.Name == m.Node {
				machine.NodeReady, machine.Cordoned = n.Ready, n.Unschedulable
			}
		}
		r.Machines = append(r.Machines, machine)
	}
	for _, h := range p.Hosts {
		r.Hosts = append(r.Hosts, PoolHostReport(h))
	}
	return r
}

// checkMachines returns a check that is OK if every Machine has a Ready Node and no error, and every MachineDeployment
// has all its replicas. It ignores objects that are being deleted. It returns nil if there are no Machines and no
// MachineDeployments.
func checkMachines(p *PoolReport) *Check {
	switch {
	case p == nil:
		return nil
	case p.Problem != "":
		return &Check{"machines", false, "could not be read: " + p.Problem}
	case len(p.Machines) == 0 && len(p.Deployments) == 0 && !p.More:
		return nil
	}
	var failures []string
	checked := 0
	for _, m := range p.Machines {
		if m.Deleting {
			continue
		}
		checked++
		if why := m.whyNotReady(); why != "" {
			failures = append(failures, m.Name+" "+why)
		}
	}
	c := &Check{Name: "machines", Detail: fmt.Sprintf("%d of %d Ready", checked-len(failures), checked)}
	for _, d := range p.Deployments {
		if !d.Deleting && d.Ready < d.Replicas {
			failures = append(failures, fmt.Sprintf("MachineDeployment %s has %d of %d", d.Name, d.Ready, d.Replicas))
		}
	}
	if p.More {
		failures = append(failures, "not all were checked")
	}
	if len(failures) > 0 {
		c.Detail += ": " + joinNames(failures, 5)
	}
	c.OK = len(failures) == 0
	return c
}

// whyNotReady returns why the Machine is not ready, or "" if it is ready.
func (m MachineReport) whyNotReady() string {
	switch {
	case m.Error != "":
		return "has an error"
	case m.Node == "" && m.Phase != "":
		return strings.ToLower(m.Phase)
	case m.Node == "":
		return "has no controller"
	case m.NodeReady != observed.Yes:
		return "not Ready"
	}
	return ""
}

// freeHosts returns the number of free hosts in the pool.
func (p *PoolReport) freeHosts() int {
	return len(slices.DeleteFunc(slices.Clone(p.Hosts), func(h PoolHostReport) bool { return h.State != "Free" }))
}

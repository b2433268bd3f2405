package view

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"time"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// host is one host's line. What the host did not say itself, its Node may have.
func (st StatusInput) host(h desired.Host) HostReport {
	seen, found := st.World.Hosts[h.ID], st.Decision.Hosts[h.ID]
	r := HostReport{
		ID: h.ID, Name: st.name(h.ID), Address: h.PublicAddress, Role: h.Role,
		Condition: found.Condition, Reasons: problem.Whats(found.Reasons), Problems: found.Reasons,
		Kubernetes: seen.Kubelet.Version, Kubelet: seen.Kubelet.Version, Containerd: seen.Containerd.Version,
		OS:            seen.OS.Name,
		WantedKubelet: h.Versions.Kubernetes,
		Certificate:   earliest(seen.Certificates, st.Now),
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

func earliest(certificates []observed.Certificate, now time.Time) *CertificateReport {
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

func (st StatusInput) api() APIReport {
	a, e := st.World.API, st.Want.Endpoint
	r := APIReport{Reached: a.Reached, Problem: a.Problem, Version: a.Version, PendingCSRs: a.PendingCSRs}
	r.Endpoint = "https://" + net.JoinHostPort(e.Host, strconv.Itoa(e.Port))
	if a.Via != "" {
		r.Via = st.name(a.Via)
	}
	return r
}

// hooksOwed says after what hooks have not all succeeded on a host.
const hooksOwed = "hooks owed after"

// drift is what differs from the manifest, as far as the decision looked: it ends at the first question that has
// something to be done.
func (st StatusInput) drift() []Difference {
	var out []Difference
	d := st.Decision
	for _, h := range st.Want.Hosts() {
		if names := d.Drift[h.ID]; len(names) > 0 {
			out = append(out, Difference{st.name(h.ID), "configuration", names})
		}
		if names := d.Renewals[h.ID]; len(names) > 0 {
			out = append(out, Difference{st.name(h.ID), "certificates near their end", names})
		}
		if slices.Contains(d.Upgrades, h.ID) {
			out = append(out, Difference{st.name(h.ID), "version", nil})
		}
		if slices.Contains(d.Metadata, h.ID) {
			out = append(out, Difference{st.name(h.ID), "node metadata", nil})
		}
		if owed := st.World.Hosts[h.ID].HooksOwed; len(owed) > 0 {
			out = append(out, Difference{st.name(h.ID), hooksOwed, owed})
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

func (st StatusInput) running() []RunningStep {
	var out []RunningStep
	for _, h := range st.Want.Hosts() {
		if s := st.World.Hosts[h.ID].Step; s != nil {
			out = append(out, RunningStep{st.name(h.ID), cmp.Or(s.Stage, s.Unit), s.RunID})
		}
	}
	return out
}

// locks are the runs that hold a lock, each once, with all the places where it holds one.
func (st StatusInput) locks() []LockReport {
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
			r.Hosts = append(r.Hosts, st.name(h.ID))
		}
	}
	return out
}

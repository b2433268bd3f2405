package drive

import (
	"slices"
	"strconv"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/test/sim/safety"
	"kubeone/test/sim/world"
)

// machine is a Machine with a host, or one that waits for a host. A controller reconciles it with the lock of that host
// alone.
type machine struct {
	host    *world.Host
	uid     string
	kubelet string
	gone    bool // it is deleted
	turn    bool // its turn to get new settings
}

// maxMachineRuns limits the runs until a Machine is ready, once no more faults happen.
const maxMachineRuns = 12

// isFor reports whether the operator is a controller that works on the host.
func (o *operator) isFor(h *world.Host) bool { return o.machine != nil && o.machine.host == h }

// machineUID returns the UID of the run's Machine, empty for a run about the cluster.
func (o *operator) machineUID() string {
	if o.machine == nil {
		return ""
	}
	return o.machine.uid
}

// happenToMachine has people and controllers use a host for a Machine.
func (s *Simulation) happenToMachine(f Fault) {
	if s.Pool == 0 {
		return
	}
	h := s.World.Host(poolHosts(s.Pool)[f.Host%s.Pool].ID)
	version := []string{Wanted, OldFix, OldStep}[f.For%3]
	m := s.machineOf(h)
	switch f.Kind {
	case Claimed:
		if m != nil && !m.gone {
			m.kubelet = version
		} else if m == nil {
			s.createMachine(h, version)
		}
	case Returned:
		if m != nil {
			m.gone = true
		}
	case Mistaken:
		if n := len(s.file.want.Workers); n > 0 {
			if h := s.World.Host(s.file.want.Workers[f.Host%n].ID); s.machineOf(h) == nil {
				s.createMachine(h, version)
			}
		}
	case TakenIn:
		if s.file.has[h.ID] {
			return
		}
		s.editManifest(func(want *desired.Cluster) {
			want.Workers = append(want.Workers, poolHosts(s.Pool)[f.Host%s.Pool])
		})
		s.beginApply(false)
	}
}

func (s *Simulation) createMachine(h *world.Host, kubelet string) {
	s.created++
	s.machines = append(s.machines, &machine{host: h, uid: "uid-" + strconv.Itoa(s.created), kubelet: kubelet})
}

// machineOf returns the Machine that has the host or waits for it, or nil.
func (s *Simulation) machineOf(h *world.Host) *machine {
	for _, m := range s.machines {
		if m.host == h {
			return m
		}
	}
	return nil
}

// runControllers starts a run for each Machine now and then.
func (s *Simulation) runControllers() {
	for i, m := range s.machines {
		if s.runAbout(m) == nil && s.throwDice(4+i, 10) == 0 {
			s.startRunAbout(m)
		}
	}
}

// runAbout returns the current run about the Machine, or nil.
func (s *Simulation) runAbout(m *machine) *operator {
	for _, o := range s.ops {
		if o.follows == m {
			return o
		}
	}
	return nil
}

func (s *Simulation) startRunAbout(m *machine) *operator {
	s.giveTurn(m)
	now := *m
	return s.beginWith(func(o *operator) { o.machine, o.follows = &now, m })
}

// lookAtMachine returns what a controller observes and plans for its Machine.
func (s *Simulation) lookAtMachine(m *machine) look {
	is := s.seenWorld()
	h := desired.Host{
		ID: m.uid, HasOwnID: true, Machine: world.Namespace + m.uid, Role: desired.Worker, Hostname: m.host.Name,
		PublicAddress: m.host.ID, PrivateAddress: m.host.Address,
	}
	h.Versions.Kubernetes, h.Labels = m.kubelet, map[string]string{desired.OwnerLabel: m.uid}
	in := decide.WorkerInput{MachineDeleted: m.gone, APIServers: s.apiServers(), Turn: m.mayGet()}
	in.Want = withSettings(s.file.want, s.recordedSettings())
	in.Want.ControlPlane, in.Want.Workers = nil, []desired.Host{h}
	in.Is = observed.World{Hosts: map[string]observed.Host{m.uid: is.Hosts[m.host.ID]}, API: is.API}
	in.CA, in.Config = caHash(s.World.CA()), configDigests(in.Want)
	if s.Off == NoOwner {
		clearOwner(&in, m.uid)
	}
	in.Input = decide.Settle(in.Input, true)
	p, decisions := plan.Worker(in)
	l := look{plan: p, first: decisions[0], want: in.Want, is: in.Is, world: s.seenVersion()}
	for i := range l.plan.Steps {
		if l.plan.Steps[i].Host == m.uid {
			l.plan.Steps[i].Host = m.host.ID
		}
	}
	l.plan.Nodes = map[string]string{m.host.ID: p.Nodes[m.uid]}
	l.want.Workers = slices.Clone(l.want.Workers)
	l.want.Workers[0].ID = m.host.ID
	l.is.Hosts = map[string]observed.Host{m.host.ID: in.Is.Hosts[m.uid]}
	return l
}

// clearOwner makes the host report no other owner.
func clearOwner(in *decide.WorkerInput, uid string) {
	seen := in.Is.Hosts[uid]
	if seen.Marker != nil {
		marker := *seen.Marker
		marker.ID, marker.Machine, seen.Marker = uid, world.Namespace+uid, &marker
		in.Is.Hosts[uid] = seen
	}
}

func caHash(ca int) string { return "sha256:" + strconv.Itoa(ca) }

// apiServers returns the versions of all existing API servers by their leases in the cluster, or none if the API does
// not answer.
func (s *Simulation) apiServers() []string {
	if !s.World.APIReached() {
		return nil
	}
	var out []string
	for _, h := range s.World.Hosts {
		if h.ControlPlane && h.Disk.API != "" && !slices.Contains(out, h.Disk.API) {
			out = append(out, h.Disk.API)
		}
	}
	slices.Sort(out)
	if s.Off == OneVersion && len(out) > 0 {
		return out[len(out)-1:]
	}
	return out
}

// giveBack has a person delete the Machines of hosts that are in the manifest, or were and have not left. A host cannot
// belong to both.
func (s *Simulation) giveBack() {
	for _, m := range s.machines {
		mark := m.host.Disk.Marker
		m.gone = m.gone || s.file.has[m.host.ID] || mark != nil && mark.Machine == ""
	}
}

// settleDeleted has the controllers return the hosts of deleted Machines if the API answers. It reports whether there
// were any.
func (s *Simulation) settleDeleted() bool {
	if !s.World.APIReached() {
		return false
	}
	before := len(s.machines)
	s.settleAll(func(m *machine) bool { return m.gone })
	return len(s.machines) < before
}

// settleAll has the controllers work until these Machines are ready. Machines that wait for their turn are reconciled
// again after the others.
func (s *Simulation) settleAll(which func(*machine) bool) {
	for range len(s.machines) + 1 {
		s.settleOnce(which)
		if !slices.ContainsFunc(s.machines, func(m *machine) bool { return which(m) && s.awaitsTurn(m) }) {
			return
		}
	}
}

func (s *Simulation) settleOnce(which func(*machine) bool) {
	for _, m := range slices.Clone(s.machines) {
		for runs := 0; which(m) && s.Checker.Found() == nil && !s.settleMachine(m); runs++ {
			if s.awaitsTurn(m) {
				if s.giveTurn(m); !m.turn {
					break
				}
			}
			if runs == maxMachineRuns/2 {
				s.openByHand()
				s.World.Relax()
			}
			if s.heldBack(m) {
				break
			}
			if runs > maxMachineRuns {
				s.Checker.Break(safety.Converged, "Machine %s on %s is not as wanted after %d runs: %s", m.uid,
					m.host.Name, runs, s.lookAtMachine(m).explainDecision())
			}
		}
	}
}

// heldBack reports whether the kubelet correctly waits for an API server outside the manifest, which no run upgrades.
func (s *Simulation) heldBack(m *machine) bool {
	old := slices.ContainsFunc(s.World.Hosts, func(h *world.Host) bool {
		return h.ControlPlane && !s.file.has[h.ID] && h.Disk.API != "" && h.Disk.API != Wanted
	})
	return old && !m.gone && m.kubelet > OldStep
}

// settleMachine lets one run about a Machine finish, and reports whether the Machine is ready. A person repairs or
// replaces a broken host.
func (s *Simulation) settleMachine(m *machine) bool {
	s.giveBack()
	o := s.runAbout(m)
	if o == nil {
		o = s.startRunAbout(m)
	}
	result, last := s.toItsEnd(o)
	switch {
	case o.machine.gone != m.gone || o.machine.kubelet != m.kubelet:
	case result == Matches && last.first.Route == fsm.Nothing && m.gone:
		s.machines = slices.DeleteFunc(s.machines, func(other *machine) bool { return other == m })
		return true
	case result == Matches && last.first.Route == fsm.Nothing:
		return true
	case result != Again, s.Help >= maxHelp:
	case s.World.Repair(m.host, false), s.forgetForeign(m.host), s.forgetNode(m):
		s.traceEvent("a person sees to %s", m.host.Name)
		s.Help++
	}
	return false
}

// forgetForeign replaces a machine of a cluster that no longer exists.
func (s *Simulation) forgetForeign(h *world.Host) bool {
	if h.Disk.KubeletCA == 0 || h.Disk.KubeletCA == s.World.CA() {
		return false
	}
	s.World.Replace(h)
	return true
}

// forgetNode deletes the Node of a machine that no longer exists.
func (s *Simulation) forgetNode(m *machine) bool {
	if m.host.Disk.Marker != nil || m.host.Disk.KubeletCA != 0 || s.file.has[m.host.ID] {
		return false
	}
	return s.World.ForgetNode(m.host.Name, m.uid)
}

// machinesAsWanted compares the world with the Machines.
func (s *Simulation) machinesAsWanted(r *world.EtcdCluster) {
	for _, m := range s.machines {
		h, n := m.host, r.Objects.Node(m.host.Name)
		switch {
		case s.heldBack(m):
		case !h.Disk.Joined() || h.Disk.Marker.Machine != m.uid:
			s.Checker.Break(safety.Converged, "%s has not joined for Machine %s", h.Name, m.uid)
		case n == nil || !n.Ready || n.Kubelet != m.kubelet:
			s.Checker.Break(safety.Converged, "the Node of Machine %s is not ready with kubelet %s", m.uid, m.kubelet)
		case n.Cordoned && !s.Checker.ByHand(n.Name):
			s.Checker.Break(safety.Converged, "the Node of Machine %s is still closed", m.uid)
		}
	}
	s.haveSettings(r)
	for _, h := range s.World.Hosts {
		if mark := h.Disk.Marker; mark != nil && mark.Machine != "" && s.machineOf(h) == nil {
			s.Checker.Break(safety.Converged, "%s belongs to Machine %s, which is gone", h.Name, mark.Machine)
		}
	}
}

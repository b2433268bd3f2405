package drive

import (
	"slices"

	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/test/sim/world"
)

// Guard is something that keeps a rule. Switched off, the checker must find the rule broken.
type Guard string

// The guards.
const (
	NoLock      Guard = "no-lock"      // no lock is taken
	NoFence     Guard = "no-fence"     // hosts run steps of an old lock
	NoCompare   Guard = "no-compare"   // the plan that runs is not compared with the approved one
	NoLostCheck Guard = "no-lost-lock" // a run that lost its lock goes on
	NoOrder     Guard = "no-order"     // control-plane hosts do not wait for one another
	NoWorkers   Guard = "workers-first"
	NoWaves     Guard = "no-waves"    // workers do not wait for one another
	NoDrain     Guard = "no-drain"    // nodes are not drained
	NoQuorum    Guard = "no-quorum"   // what is not known to be healthy counts as healthy
	Removal     Guard = "removal"     // a living member is removed, whatever the quorum
	NoConfirm   Guard = "no-confirm"  // members count as dead when they do not answer once
	Promote     Guard = "promote"     // learners become voters although others do not serve
	Stranger    Guard = "stranger"    // a step runs that is not in the plan
	Busybody    Guard = "busybody"    // a healthy host is restarted
	Renewer     Guard = "renewer"     // a healthy host gets its certificates and static pods anew
	Rewriter    Guard = "rewriter"    // a healthy host gets its files anew
	Quarantiner Guard = "quarantiner" // a healthy host is set aside
	AbsentHosts Guard = "absent"      // hosts that do not answer count as bare
	NoSkew      Guard = "no-skew"     // a minor is skipped
	NoRoom      Guard = "no-room"     // a drain does not count the nodes that other runs have closed
	NoUncordon  Guard = "no-uncordon" // nodes stay closed
	OpenAll     Guard = "open-all"    // what a person closed is opened
	Wipe        Guard = "wipe"        // data that is found is deleted
	FreshInit   Guard = "fresh-init"  // init begins anew although there is data
	NoBudget    Guard = "no-budget"   // pods are deleted, not evicted
	NoNames     Guard = "no-names"    // only one certificate gets its new names before they are dialled
	AnyToken    Guard = "any-token"   // nobody looks for the rule by which join tokens are good for any Node

	LeaseByForce Guard = "lease-by-force" // the Lease is taken at once, because all hosts that answered are locked
	NoWorkerLock Guard = "no-worker-lock" // who works on one worker alone locks nothing
	NoForget     Guard = "no-forget"      // a working directory is removed although another run has its lock
	Delete       Guard = "delete"         // a reset deletes etcd's data and the PKI
	Wiped        Guard = "wiped"          // a host is made bare while it is a member of etcd
	NoRole       Guard = "no-role"        // a host is what the manifest calls it
	Anyhow       Guard = "recover-anyhow" // a cluster is recovered whatever its etcd says
	OldData      Guard = "old-data"       // a cluster is recovered from whatever host comes first
	Unlisted     Guard = "unlisted"       // nobody looks on a disk for members that the manifest does not have
	NoRecord     Guard = "no-record"      // nobody looks up whose Node the cluster's record calls by a name
	OneVersion   Guard = "one-version"    // a Machine's kubelet is compared with the newest API server alone
	NoOwner      Guard = "no-owner"       // nobody looks whose a host is, by its own note
	Unwritten    Guard = "unwritten"      // Secrets are not written again before a key is dropped
	Untold       Guard = "untold"         // etcd does not start anew when it is to trust another CA
	NoHooks      Guard = "no-hooks"       // a node is opened whether the hooks after its upgrade have run or not
	KeepNothing  Guard = "keep-nothing"   // what was kept is deleted although there is no quorum
	NoPods       Guard = "no-pods"        // nobody looks whether the network plugin, kube-proxy and cluster DNS run
)

// flaws are those of the world itself.
func (g Guard) flaws() world.Flaws {
	return world.Flaws{
		NoFence: g == NoFence || g == NoLock || g == NoWorkerLock, WipeData: g == Wipe, FreshInit: g == FreshInit,
		NoBudget: g == NoBudget, HastyPromotion: g == Promote, OpenAll: g == OpenAll, NoQuorum: g == NoQuorum,
		NoRoom: g == NoRoom || g == NoWaves, Delete: g == Delete, Anyhow: g == Anyhow, Forget: g == NoForget,
		NoOwner: g == NoOwner, Unwritten: g == Unwritten, Untold: g == Untold,
	}
}

// seen is what the operator believes to have seen.
func (s *Simulation) seen() observed.World {
	is := s.observe()
	switch s.Off {
	case NoQuorum:
		for i := range is.Etcd.Members {
			is.Etcd.Members[i].Healthy = observed.Yes
		}
		for i := range s.World.Hosts {
			s.flatter(s.World.Hosts[i], &is)
		}
	case AbsentHosts:
		for id, h := range is.Hosts {
			if h.Reach != observed.Reached {
				is.Hosts[id] = s.bare.Hosts[id]
			}
		}
	case NoRecord:
		if is.API.Record != nil {
			is.API.Record.Nodes = nil
		}
	case AnyToken:
		is.API.AutoApproval = observed.No
	case NoSkew:
		for id, h := range is.Hosts {
			if h.APIServerVersion == SkipFrom {
				h.APIServerVersion = OldStep
				is.Hosts[id] = h
			}
		}
		if is.API.Version == SkipFrom {
			is.API.Version = OldStep
		}
	}
	return is
}

// flatter makes a member's host look well.
func (s *Simulation) flatter(h *world.Host, is *observed.World) {
	if !h.Disk.Joined() {
		return
	}
	seen := is.Hosts[h.ID]
	if seen.Reach != observed.Reached {
		for id, other := range is.Hosts {
			if other.Reach == observed.Reached && other.Marker != nil && other.Marker.Complete &&
				s.World.Host(id).ControlPlane == h.ControlPlane {
				other.ID, other.Hostname, other.MachineID = h.ID, h.Name, "machine-of-"+h.Name
				seen = other
			}
		}
	}
	seen.Healthz, seen.Kubelet.Active, seen.Containerd.Active = observed.Yes, true, true
	if h.ControlPlane {
		seen.APIServer, seen.EtcdHealth, seen.ControllerManager, seen.Scheduler = observed.Yes, observed.Yes,
			observed.Yes, observed.Yes
		seen.EtcdData = observed.Yes
	}
	is.Hosts[h.ID] = seen
	for i := range is.API.Nodes {
		if is.API.Nodes[i].Name == h.Name {
			is.API.Nodes[i].Ready = observed.Yes
		}
	}
}

// SkipFrom is two minors below what is wanted.
const SkipFrom = "1.34.8"

// altered is the plan that runs, where a guard is off that concerns its steps.
func (s *Simulation) altered(p plan.Plan) plan.Plan {
	steps := slices.Clone(p.Steps)
	for i := range steps {
		s.alter(&steps[i], p)
	}
	p.Steps = steps
	if s.Off == Stranger {
		h := s.World.Hosts[len(s.World.Hosts)-1]
		p.Steps = append(p.Steps, plan.Step{ID: "stranger/" + h.Name, Host: h.ID, Intent: restartKubelet()})
	}
	if s.Off == NoNames {
		var gone []string
		one := false // whom those ask who make sure that it answers
		p.Steps = slices.DeleteFunc(p.Steps, func(st plan.Step) bool {
			names := st.Intent.Kind == step.APINames
			more := names && one
			one = one || names
			if more {
				gone = append(gone, st.ID)
			}
			return more
		})
		for i := range p.Steps {
			p.Steps[i].Needs = slices.DeleteFunc(slices.Clone(p.Steps[i].Needs), func(id string) bool {
				return slices.Contains(gone, id)
			})
		}
	}
	if s.Off == NoUncordon {
		p.Steps = slices.DeleteFunc(p.Steps, func(st plan.Step) bool { return st.Intent.Kind == step.Uncordon })
	}
	return p
}

func restartKubelet() step.Intent {
	return ofWanted(step.With(step.RestartUnitsParams{Units: []string{"kubelet"}}))
}

func ofWanted(in step.Intent) step.Intent {
	in.Version = Wanted
	return in
}

// needless are what is done to a host that needs nothing, by the guard that is off.
func needless(off Guard) (in step.Intent, meddles bool) {
	switch off {
	case Busybody:
		return restartKubelet(), true
	case Renewer:
		return ofWanted(step.With(step.RegenerateParams{Parts: []string{"certificates"}})), true
	case Rewriter:
		return ofWanted(step.With(step.RestoreFilesParams{})), true
	case Quarantiner:
		return ofWanted(step.Intent{Kind: step.Quarantine}), true
	}
	return step.Intent{}, false
}

// alter changes one step as the guard that is off would not have kept it.
func (s *Simulation) alter(st *plan.Step, p plan.Plan) {
	without := func(gone func(plan.Step) bool) {
		st.Needs = slices.DeleteFunc(slices.Clone(st.Needs), func(id string) bool {
			need, ok := p.Step(id)
			return ok && gone(need)
		})
	}
	kind := st.Intent.Kind
	switch {
	case s.Off == NoOrder && (kind == step.Check || kind == step.RestartUnits),
		s.Off == NoWaves && kind == step.Check && st.Intent.Role == "worker",
		s.Off == NoWorkers && kind == step.Check && st.Intent.Role == "worker":
		without(func(need plan.Step) bool { return need.Host != st.Host })
		st.After = nil
	case s.Off == NoDrain && (kind == step.UpgradeWorker || kind == step.UpgradeControlPlane):
		without(func(need plan.Step) bool { return need.Intent.Kind == step.DrainNode })
	case s.Off == NoUncordon:
		without(func(need plan.Step) bool { return need.Intent.Kind == step.Uncordon })
	case s.Off == NoHooks && kind == step.Uncordon:
		without(func(need plan.Step) bool { return need.Intent.EndsUpgrade() })
	case s.Off == NoConfirm:
		st.Intent = world.Unconfirmed(st.Intent)
	}
}

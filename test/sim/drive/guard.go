package drive

import (
	"slices"

	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/test/sim/world"
)

// Guard is a protection that keeps a rule. With the guard off, the checker must find the rule broken.
type Guard string

// The guards.
const (
	NoLock      Guard = "no-lock"      // locks are not taken
	NoFence     Guard = "no-fence"     // hosts run steps of an outdated lock
	NoCompare   Guard = "no-compare"   // the plan is not compared with the approved one
	NoLostCheck Guard = "no-lost-lock" // a run continues after it lost its lock
	NoOrder     Guard = "no-order"     // control-plane hosts do not wait for each other
	NoWorkers   Guard = "workers-first"
	NoWaves     Guard = "no-waves"    // workers do not wait for each other
	NoDrain     Guard = "no-drain"    // nodes are not drained
	NoQuorum    Guard = "no-quorum"   // unknown counts as healthy
	Removal     Guard = "removal"     // a living member is removed without a quorum check
	NoConfirm   Guard = "no-confirm"  // members count as dead when they miss one probe
	Promote     Guard = "promote"     // learners become voters while other members are down
	Stranger    Guard = "stranger"    // a step runs that is not in the plan
	Busybody    Guard = "busybody"    // a healthy host is restarted
	Renewer     Guard = "renewer"     // a healthy host gets new certificates and static pods
	Rewriter    Guard = "rewriter"    // a healthy host gets new files
	Quarantiner Guard = "quarantiner" // a healthy host is quarantined
	AbsentHosts Guard = "absent"      // unreachable hosts count as bare
	NoSkew      Guard = "no-skew"     // an upgrade skips a minor
	NoRoom      Guard = "no-room"     // a drain ignores nodes that other runs have cordoned
	NoUncordon  Guard = "no-uncordon" // nodes stay cordoned
	OpenAll     Guard = "open-all"    // nodes that a person cordoned are uncordoned
	Wipe        Guard = "wipe"        // existing data is deleted
	FreshInit   Guard = "fresh-init"  // init starts a new cluster despite existing data
	NoBudget    Guard = "no-budget"   // pods are deleted, not evicted
	NoNames     Guard = "no-names"    // only one certificate gets its new names before clients dial them
	AnyToken    Guard = "any-token"   // the binding that makes join tokens valid for any Node is not checked

	LeaseByForce Guard = "lease-by-force" // the Lease is taken at once when all hosts that answered are locked
	NoWorkerLock Guard = "no-worker-lock" // a run on a single worker takes no lock
	NoForget     Guard = "no-forget"      // a working directory is removed although another run has its lock
	Delete       Guard = "delete"         // a reset deletes etcd's data and the PKI
	Wiped        Guard = "wiped"          // a host is reset while it is a member of etcd
	NoRole       Guard = "no-role"        // a host takes its role from the manifest
	Anyhow       Guard = "recover-anyhow" // a cluster is recovered although its etcd works
	OldData      Guard = "old-data"       // a cluster is recovered from the first host, not from the newest data
	Unlisted     Guard = "unlisted"       // members on disk that the manifest lacks are ignored
	NoRecord     Guard = "no-record"      // the record's name of a host's Node is ignored
	OneVersion   Guard = "one-version"    // a Machine's kubelet is compared with the newest API server alone
	NoOwner      Guard = "no-owner"       // a host's own note of its owner is ignored
	Unwritten    Guard = "unwritten"      // Secrets are not rewritten before a key is dropped
	Untold       Guard = "untold"         // etcd does not restart to trust another CA
	NoHooks      Guard = "no-hooks"       // a node is uncordoned before its hooks after the upgrade have run
	KeepNothing  Guard = "keep-nothing"   // kept data is deleted although there is no quorum
	NoPrune      Guard = "no-prune"       // objects that addons no longer contain are not deleted
	PruneAll     Guard = "prune-all"      // objects that an addon contains are deleted
	NoPods       Guard = "no-pods"        // the network plugin, kube-proxy and cluster DNS are not checked
)

// worldFlaws returns the flaws of the world itself.
func (g Guard) worldFlaws() world.Flaws {
	return world.Flaws{
		NoFence: g == NoFence || g == NoLock || g == NoWorkerLock, WipeData: g == Wipe, FreshInit: g == FreshInit,
		NoBudget: g == NoBudget, HastyPromotion: g == Promote, OpenAll: g == OpenAll, NoQuorum: g == NoQuorum,
		NoRoom: g == NoRoom || g == NoWaves, Delete: g == Delete, Anyhow: g == Anyhow, Forget: g == NoForget,
		NoOwner: g == NoOwner, Unwritten: g == Unwritten, Untold: g == Untold,
	}
}

// seenWorld returns the world as the operator observes it.
func (s *Simulation) seenWorld() observed.World {
	is := s.observeRound()
	switch s.Off {
	case NoQuorum:
		for i := range is.Etcd.Members {
			is.Etcd.Members[i].Healthy = observed.Yes
		}
		for i := range s.World.Hosts {
			s.flatterHost(s.World.Hosts[i], &is)
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

// flatterHost makes a member's host look healthy.
func (s *Simulation) flatterHost(h *world.Host, is *observed.World) {
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

// SkipFrom is two minors below the desired version.
const SkipFrom = "1.34.8"

// alterPlan returns the plan that runs when a disabled guard concerns its steps.
func (s *Simulation) alterPlan(p plan.Plan) plan.Plan {
	steps := slices.Clone(p.Steps)
	for i := range steps {
		s.alterStep(&steps[i], p)
	}
	p.Steps = steps
	if s.Off == Stranger {
		h := s.World.Hosts[len(s.World.Hosts)-1]
		p.Steps = append(p.Steps, plan.Step{ID: "stranger/" + h.Name, Host: h.ID, Intent: restartKubelet()})
	}
	if s.Off == NoNames {
		var gone []string
		one := false // one step is kept
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

// needlessStep returns an unneeded step for a healthy host when such a guard is off.
func needlessStep(off Guard) (in step.Intent, meddles bool) {
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

// alterStep changes one step that the disabled guard would have prevented.
func (s *Simulation) alterStep(st *plan.Step, p plan.Plan) {
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
	case s.Off == NoPrune:
		st.Intent = withoutDeletions(st.Intent)
	case s.Off == NoUncordon:
		without(func(need plan.Step) bool { return need.Intent.Kind == step.Uncordon })
	case s.Off == NoHooks && kind == step.Uncordon:
		without(func(need plan.Step) bool { return need.Intent.EndsUpgrade() })
	case s.Off == NoConfirm:
		st.Intent = world.Unconfirmed(st.Intent)
	}
}

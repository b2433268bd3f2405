package drive

import (
	"kubeone/internal/desired"
	"kubeone/internal/plan"
	"kubeone/test/sim/world"
)

// What another driver of the same scenarios needs. Package real is one.

// Wanted is the cluster that is wanted, and the digests of its configuration by host and of its addons.
func (s *Simulation) Wanted() (want desired.Cluster, config map[string]map[string]string, addons map[string]string) {
	return s.file.want, configs(s.file.want), s.addons
}

// Befall lets the faults happen that are due at the moment; those of operators are returned.
func (s *Simulation) Befall(moment int) []Fault {
	s.moment = moment
	s.injectFaults()
	s.noteQuorum()
	return s.due
}

// Inject lets a fault of a host happen at once.
func (s *Simulation) Inject(f Fault) { s.happen(f) }

// Ends is the first moment at which nothing goes wrong any more.
func (s *Simulation) Ends() int {
	end := 0
	for _, f := range s.Faults {
		end = max(end, f.At+1)
		if f.Kind.lasts() {
			end = max(end, f.At+f.For)
		}
	}
	return end
}

// Heal ends all that lasts.
func (s *Simulation) Heal() { s.heal() }

// Breaks takes the fault that the next command on the host meets: how its connection breaks, or nothing.
func (s *Simulation) Breaks(h *world.Host) Kind { return s.breaks(h) }

// Assist lets a person do what the plan instructs, and reports whether there was anything.
func (s *Simulation) Assist(p plan.Plan) bool {
	return s.help(look{plan: p}) || p.Blocked != "" && s.bringBack()
}

// Gone reports whether the faults took etcd's quorum for good at some time.
func (s *Simulation) Gone() bool { return s.gone || s.lostQuorum() }

// AsWanted checks the truth against the manifest.
func (s *Simulation) AsWanted() { s.asWanted() }

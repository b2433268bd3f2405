package drive

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/locks"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/problem"
	"kubeone/test/sim/safety"
	"kubeone/test/sim/world"
)

const (
	// maxRuns limits the runs until the cluster matches, once no more faults happen.
	maxRuns = 8
	// maxHelp limits the machines that a person may replace for that.
	maxHelp = 8
	// leftover limits the requests of a program that has ended.
	leftover = time.Hour
	// longest limits the moments of one run.
	longest = 4000
	// staleAfter is the silence in seconds after which a lock may be taken.
	staleAfter = int(locks.StaleAfter / time.Second)
)

// Run runs a scenario in its own bubble.
func Run(t *testing.T, s Scenario) Report {
	t.Helper()
	return New(s).Run(t)
}

// Run runs the simulation with its faults, and then without any until the cluster matches.
func (s *Simulation) Run(t *testing.T) Report {
	t.Helper()
	var report Report
	synctest.Test(t, func(t *testing.T) {
		var end context.CancelFunc
		s.ctx, end = context.WithCancel(t.Context())
		s.began = time.Now()
		s.mu.Lock()
		report = s.runCourse()
		for len(s.ops) > 0 {
			s.killOperator(s.ops[0], false)
		}
		s.mu.Unlock()
		end()
		s.all.Wait()
		time.Sleep(leftover)
	})
	return report
}

func (s *Simulation) runCourse() Report {
	end := s.endOfFaults()
	s.Checker.State()
	s.beginApply(false)
	for s.moment < end && s.Checker.Found() == nil {
		if len(s.ops) == 0 && s.throwDice(2, 10) == 0 {
			s.beginApply(false)
		}
		s.passSecond()
		s.noteQuorum()
	}
	s.healAll()
	report := s.convergeCluster()
	report.Violation, report.Moments, report.Runs, report.Helped = s.Checker.Found(), s.moment, s.runs, s.Help
	report.Recovered = s.Recovered
	return report
}

// endOfFaults returns the first moment without faults.
func (s *Simulation) endOfFaults() int {
	end := 0
	for _, f := range s.Faults {
		end = max(end, f.At+1)
		if f.Kind.isLasting() {
			end = max(end, f.At+f.For)
		}
	}
	return end
}

// beginApply starts a run of apply.
func (s *Simulation) beginApply(force bool) {
	s.beginWith(func(o *operator) { o.force = force })
}

// beginWith starts a run after change has modified it.
func (s *Simulation) beginWith(change func(*operator)) *operator {
	s.runs++
	o := &operator{
		sim: s, run: "run-" + strconv.Itoa(s.runs), number: s.runs, file: s.file, stop: make(chan struct{}),
	}
	var ctx context.Context
	ctx, o.cancel = context.WithCancel(s.ctx)
	change(o)
	s.ops = append(s.ops, o)
	s.traceEvent("%s begins", o.run)
	s.all.Go(func() {
		defer o.cancel()
		o.runCommand(ctx)
	})
	return o
}

// healAll ends all lasting faults.
func (s *Simulation) healAll() {
	for _, e := range s.lasting {
		e.do()
	}
	s.lasting, s.broken = nil, map[*world.Host]Kind{}
	for _, o := range s.ops {
		if o.wake > s.moment {
			o.wake = s.moment
			s.Checker.Wakes(o.run, s.World.Now)
		}
	}
	s.World.Mingle()
	s.giveBack()
	s.correctManifest()
	s.World.Settle()
	s.traceEvent("nothing goes wrong any more")
}

// convergeCluster runs apply repeatedly and follows its instructions until the cluster matches.
func (s *Simulation) convergeCluster() Report {
	var result Result
	for left := maxRuns; s.Checker.Found() == nil; {
		if s.gone || s.lostQuorum() {
			if !s.recoverQuorum() {
				return Report{Result: result, Lost: true}
			}
			left = maxRuns
		}
		if left--; left < 0 {
			s.Checker.Break(safety.Converged, "%d runs, and the last one ended: %s", maxRuns, result)
			break
		}
		if s.settleDeleted() {
			left = maxRuns
		}
		if left == maxRuns/2 {
			s.openByHand()
			s.bringImages()
			s.resetHalves()
			s.World.Relax()
			s.editManifest(s.putBack)
		}
		var last look
		if result, last = s.oneRun(); result == Matches {
			s.settleAll(func(*machine) bool { return true })
			break
		}
		if s.Checker.Found() == nil && s.assistRun(result, last) {
			left = maxRuns
		}
	}
	s.asWanted()
	return Report{Result: result}
}

// oneRun lets the cluster's first operator, or a new one, finish. It returns the operator's last observation.
func (s *Simulation) oneRun() (Result, look) {
	i := slices.IndexFunc(s.ops, func(o *operator) bool { return o.alone == "" && o.machine == nil })
	if i < 0 {
		s.finishOthers()
		i = len(s.ops)
		s.beginApply(false)
	}
	return s.toItsEnd(s.ops[i])
}

// toItsEnd lets a run finish.
func (s *Simulation) toItsEnd(o *operator) (Result, look) {
	for moments := 0; o.result == Unended && s.Checker.Found() == nil; moments++ {
		if s.passSecond(); moments > longest {
			s.Checker.Break(safety.Converged, "a run does not end")
		}
	}
	for range staleAfter { // a person retries some time later
		if o.result == Held || o.result == Failed {
			s.passSecond()
		}
	}
	if o.result == Matches && (o.file != s.file || o.request.command != applyAll) {
		return Again, o.plan // of another manifest, or request
	}
	return o.result, o.plan
}

// finishOthers lets all current operators finish.
func (s *Simulation) finishOthers() {
	for moments := 0; len(s.ops) > 0 && s.Checker.Found() == nil; moments++ {
		if s.passSecond(); moments > longest {
			s.Checker.Break(safety.Converged, "a run does not end")
		}
	}
}

// assistRun lets a person do what the run has requested, and reports whether there was anything.
func (s *Simulation) assistRun(r Result, l look) bool {
	if (r == Refused || r == NeedsHelp || r == Failed) && s.correctManifest() {
		return true
	}
	switch r {
	case NeedsHelp, Again, Failed:
		return s.helpHost(l)
	case Blocked:
		return s.bringBack() || s.finishRecovery()
	}
	return false
}

// bringBack follows apply's instruction without a visible quorum: a person starts a host that still has its data.
func (s *Simulation) bringBack() bool {
	for _, h := range s.World.Hosts {
		if h.ControlPlane && s.Help < maxHelp && s.World.Repair(h, h.Run.API == "") {
			s.traceEvent("a person brings %s back", h.Name)
			s.Help++
			return true
		}
	}
	return false
}

// finishRecovery has a person repeat an unfinished recovery.
func (s *Simulation) finishRecovery() bool {
	begun := slices.ContainsFunc(s.World.Hosts, func(h *world.Host) bool {
		return h.Disk.Marker != nil && (h.Disk.Marker.Restoring || h.Disk.Marker.Fenced != "")
	})
	if !begun || s.Help >= maxHelp {
		return false
	}
	s.traceEvent("a person goes on with the recovery")
	s.Help++
	s.runRecovery(request{command: recoverCluster})
	return true
}

// openByHand uncordons nodes that a person had cordoned: otherwise pods may not find room.
func (s *Simulation) openByHand() {
	for _, h := range s.World.Hosts {
		if s.Checker.ByHand(h.Name) {
			s.traceEvent("a person opens %s", h.Name)
			s.World.OpenByHand(h)
		}
	}
}

// bringImages restores the images that a failed step has reported as missing.
func (s *Simulation) bringImages() {
	for _, h := range s.World.Hosts {
		if s.World.BringImages(h) {
			s.traceEvent("a person brings the images of the API server to %s", h.Name)
		}
	}
}

// resetHalves resets hosts with an unfinished join whose member was removed meanwhile, as a failed join requests.
func (s *Simulation) resetHalves() {
	for _, h := range s.World.Hosts {
		if s.World.HalfJoined(h) {
			s.traceEvent("a person resets %s", h.Name)
			s.Checker.Replaced(h)
			s.World.Replace(h)
		}
	}
}

// lostQuorum reports whether half or more of etcd's voters have lost their data or are on machines outside the
// manifest. Only a person can resolve that.
func (s *Simulation) lostQuorum() bool {
	r := s.World.EtcdCluster()
	if r == nil {
		return false
	}
	voters, left := 0, 0
	for _, m := range r.Members {
		if m.Learner {
			continue
		}
		voters++
		if h := s.World.HostOf(r, m.ID); h != nil && h.Disk.CA != 0 && s.file.has[h.ID] {
			left++
		}
	}
	return 2*left <= voters
}

// helpHost follows apply's instructions for the first host that is really unhealthy. A person repairs what can be
// repaired by hand, and replaces the machine if nothing else helps and the instruction allows it.
func (s *Simulation) helpHost(l look) bool {
	if s.Help >= maxHelp {
		return false
	}
	for _, i := range l.plan.Operator {
		h := s.World.Host(i.Host)
		foreign := h != nil && !h.ControlPlane && h.Disk.KubeletCA != 0 && h.Disk.KubeletCA != s.World.CA()
		switch {
		case h == nil:
			continue
		case !foreign && s.World.Repair(h, problem.Has(i.Problems, problem.EncryptionKeysMissing)):
			s.traceEvent("a person repairs %s: %s", h.Name, i.Reason())
		case s.Checker.Well(h) && !foreign:
			continue
		case isReplaceable(i.Steps) || foreign:
			s.traceEvent("a person replaces %s: %s", h.Name, i.Reason())
			s.Checker.Replaced(h)
			s.World.Replace(h)
		default:
			continue
		}
		s.Help++
		return true
	}
	return false
}

// asWanted compares the world with the manifest once apply reports a match.
func (s *Simulation) asWanted() {
	if s.Checker.Found() != nil {
		return
	}
	r := s.World.EtcdCluster()
	if r == nil {
		s.Checker.Break(safety.Converged, "there is no cluster")
		return
	}
	s.machinesAsWanted(r)
	l := s.lookAtWorld()
	if l.want.Endpoint.Later == "" { // otherwise they wait for the endpoint, and the run has said so
		s.addonsAsWanted(r)
	}
	for _, h := range l.want.Hosts() {
		if why := s.hostAsWanted(r, h, l.want.Endpoint, SettingsOf(l.want)); why != "" {
			s.Checker.Break(safety.Converged, "%s %s", h.Hostname, why)
		}
	}
	outside := 0
	for _, h := range s.World.Hosts {
		if h.Outside && s.World.Voting(h) {
			outside++ // only a person may remove it
		}
	}
	if len(r.Members) != len(l.want.ControlPlane)+outside {
		s.Checker.Break(safety.Converged, "etcd has %d members", len(r.Members))
	}
	if r.Objects.Endpoint != l.want.Endpoint.Host {
		s.Checker.Break(safety.Converged, "the cluster has the endpoint %s", r.Objects.Endpoint)
	}
	if l.first.Route != fsm.Nothing || !l.plan.Empty() {
		s.Checker.Break(safety.Converged, "the plan is not empty: %s", l.first.Route)
	}
}

func (s *Simulation) hostAsWanted(
	r *world.EtcdCluster, want desired.Host, endpoint desired.Endpoint, settings string,
) string {
	h, n := s.World.Host(want.ID), r.Objects.Node(want.Hostname)
	dials := h.Disk.Dials
	if h.ControlPlane {
		dials = h.Disk.Admin
	}
	switch {
	case !h.Disk.Joined():
		return "has not joined"
	case n == nil || !n.Ready:
		return "has no Node that is Ready"
	case n.Kubelet != cmp.Or(want.Versions.Kubernetes, Wanted) || h.ControlPlane && h.Run.API != Wanted:
		return "does not run " + cmp.Or(want.Versions.Kubernetes, Wanted)
	case h.Disk.Marker.Role != want.Role:
		return "is a " + string(h.Disk.Marker.Role)
	case n.Cordoned && !s.Checker.ByHand(n.Name):
		return "is still closed"
	case h.ControlPlane && !s.World.Voting(h):
		return "does not vote"
	case h.ControlPlane && h.Disk.KeysGone:
		return "has lost the keys of Secrets"
	case h.Disk.Edited, h.Run.Edited:
		return "has a kubelet with an edited configuration"
	case h.Disk.Settings != settings:
		return "has a kubelet with " + h.Disk.Settings
	case dials != endpoint.Host && dials != endpoint.At(endpoint.Later).Host: // a host that has moved early stays
		return "dials another endpoint"
	}
	return ""
}

package drive

import (
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/problem"
	"kubeone/test/sim/world"
)

// injectFaults causes the faults that are due, and ends those that are over.
func (s *Simulation) injectFaults() {
	for _, e := range s.lasting {
		if e.at <= s.moment {
			e.do()
		}
	}
	s.due = s.due[:0]
	s.lasting = slices.DeleteFunc(s.lasting, func(e ending) bool { return e.at <= s.moment })
	for _, f := range s.Faults {
		if f.At == s.moment {
			s.injectFault(f)
		}
	}
}

// injectOperatorFaults causes the faults of operators that are due.
func (s *Simulation) injectOperatorFaults() {
	for _, f := range s.due {
		s.happenToOperator(f)
	}
}

func (s *Simulation) injectFault(f Fault) {
	if f.Kind.ofOperator() {
		s.due = append(s.due, f)
		return
	}
	if f.Host >= len(s.World.Hosts) {
		return
	}
	h := s.World.Hosts[f.Host]
	s.traceEvent("%s %s", f.Kind, h.Name)
	w := s.World
	switch f.Kind {
	case LostBefore, LostDuring, LostAfter:
		s.broken[h] = f.Kind
	case Cut, Split, Slow, Full, Unready, FailAlways:
		s.setLasting(f, conditionOf(h, f.Kind))
	case FailOnce:
		w.Set(&h.FailNext, true)
	case ByHand:
		w.CordonByHand(h)
		s.Checker.CordonedByHand(h.Name)
	case Replaced:
		w.Replace(h)
	case Dead:
		s.stopMachine(f, h)
	case MarkerLost:
		s.loseMarker(f, h)
	case Early, Late:
		s.scheduleAnswers(f, h)
	case Halved:
		w.Halve(f.Host)
		s.lasting = append(s.lasting, ending{s.moment + f.For, w.Join})
	case Severed:
		w.Sever(f.Host)
		s.lasting = append(s.lasting, ending{s.moment + f.For, w.Mingle})
	default:
		s.harmHost(f, h)
	}
}

// conditionOf returns the condition that a lasting fault of that kind sets.
func conditionOf(h *world.Host, k Kind) *bool {
	return map[Kind]*bool{
		Cut: &h.Cut, Split: &h.Split, Slow: &h.Slow, Full: &h.Full, Unready: &h.Unready, FailAlways: &h.FailAll,
	}[k]
}

// setLasting sets a condition until the fault's end.
func (s *Simulation) setLasting(f Fault, condition *bool) {
	s.World.Set(condition, true)
	s.lasting = append(s.lasting, ending{s.moment + f.For, func() { s.World.Set(condition, false) }})
}

func (s *Simulation) stopMachine(f Fault, h *world.Host) {
	if !h.Up {
		return
	}
	s.World.Die(h)
	machine := h.Machine
	s.lasting = append(s.lasting, ending{s.moment + f.For, func() {
		if h.Machine == machine && !h.Up {
			s.World.Boot(h)
		}
	}})
}

// loseMarker deletes the host's marker. It restores the marker later, unless the host was replaced or has a new one.
func (s *Simulation) loseMarker(f Fault, h *world.Host) {
	marker, machine := s.World.LoseMarker(h), h.Machine
	s.lasting = append(s.lasting, ending{s.moment + f.For, func() {
		if h.Machine == machine {
			s.World.PutBackMarker(h, marker)
		}
	}})
}

// harmHost causes a fault inside a running machine.
func (s *Simulation) harmHost(f Fault, h *world.Host) {
	if !h.Up {
		return
	}
	switch f.Kind {
	case Stopped:
		s.World.StopUnits(h, false)
	case Crashed:
		s.World.StopUnits(h, true)
	case DataLost:
		s.World.LoseData(h)
	case Manifest:
		s.World.LoseManifest(h)
	case Expired:
		s.World.Expire(h)
	case ConfLost:
		s.World.LoseConf(h)
	case KeysLost:
		s.World.LoseKeys(h)
	case Edited:
		s.World.Edit(h)
	case Collected:
		s.World.CollectImages(h)
	}
}

// commandOf returns the command of a second operator.
func (s *Simulation) commandOf(f Fault) request {
	id := s.hostAt(f.Host).ID
	r := request{hosts: []string{id}, gone: f.Kind == RemoveGone || f.Kind == ReplaceGone}
	switch f.Kind {
	case Limited:
		r.command = applyLimited
		if next := s.hostAt(f.Host + 1); f.For%2 == 1 && next.Role == desired.Worker {
			r.hosts = append(r.hosts, next.ID)
		}
	case Upgraded:
		r.command = applyForced
	case Rotated:
		r.command, r.rotate = applyAll, s.file.want.EncryptSecrets
	case RotatedCA:
		r.command, r.hosts, r.resume = rotateCA, nil, f.For%2 == 0
	case Reset:
		r.command, r.purge = resetHosts, f.For%2 == 1
	case Remove, RemoveGone:
		r.command = removeHost
	case Replace, ReplaceGone:
		r.command = replaceHost
	case Recover:
		r.command, r.hosts = recoverCluster, nil
		if f.For%2 == 0 {
			r.on = id
		}
	}
	return r
}

// aloneOn starts a run on a single worker.
func (s *Simulation) aloneOn(i int) {
	if n := len(s.file.want.Workers); n > 0 {
		s.beginWith(func(o *operator) { o.alone = s.file.want.Workers[i%n].ID })
	}
}

func (s *Simulation) happenToOperator(f Fault) {
	s.traceEvent("%s operator", f.Kind)
	switch {
	case f.Kind.isCommand():
		s.startRequest(s.commandOf(f))
	case f.Kind.isEdit():
		s.editHosts(f)
		s.beginApply(false)
	case f.Kind.ofMachine():
		s.happenToMachine(f)
	case f.Kind == Alone:
		s.aloneOn(f.Host)
	case f.Kind == Second, f.Kind == Forced:
		s.beginApply(f.Kind == Forced)
	case f.Kind == Moved:
		s.moveEndpoint(f.Host%2 == 0)
	case len(s.ops) > 0:
		s.happenToRun(f)
	}
}

// happenToRun causes a fault of one of the runs.
func (s *Simulation) happenToRun(f Fault) {
	o := s.ops[f.Host%len(s.ops)]
	switch f.Kind {
	case Killed:
		s.killOperator(o, f.For%2 == 0) // its connections end with it; otherwise its hosts notice later
	case Paused:
		o.wake = s.moment + f.For
		s.Checker.Wakes(o.run, s.World.Now+int64(f.For))
	case Stop:
		if !o.stopped {
			o.stopped = true
			close(o.stop)
		}
	}
}

// moveEndpoint has a person change the endpoint in the manifest, or revert it, and apply.
func (s *Simulation) moveEndpoint(back bool) {
	if s.World.ForgottenEndpoint() {
		return
	}
	s.editManifest(func(want *desired.Cluster) {
		if want.Endpoint.Host = otherEndpoint; back {
			want.Endpoint.Host = endpoint
		}
	})
	s.beginApply(false)
}

// isReplaceable reports whether an instruction allows replacing the machine.
func isReplaceable(steps []problem.Step) bool {
	may := []problem.Code{problem.ReplaceSafely, problem.ReplaceWithoutMember, problem.ReplaceWorker}
	return slices.ContainsFunc(steps, func(s problem.Step) bool { return slices.Contains(may, s.Code) })
}

package drive

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"testing/synctest"
	"time"
)

// A scenario happens in a bubble of testing/synctest, whose clock is virtual. The simulation itself is its root: once a
// second it injects faults and lets the steps on hosts get on. Operators are goroutines beside it. Every command of
// theirs takes a time of its own, so that no two things happen at the same moment and equal scenarios take equal
// courses.

// longestCommand is the longest time that a command takes by itself.
const longestCommand = 400 * time.Millisecond

// act lets an operator do something, and checks what the world becomes of that. Nil is nobody's.
func (s *Simulation) act(o *operator, do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show(o)
	do()
	s.check()
}

func (s *Simulation) check() {
	s.World.Settle()
	s.Checker.State()
}

// show makes the world what this operator reaches of it.
func (s *Simulation) show(o *operator) {
	for _, h := range s.World.Hosts {
		if o == nil {
			h.Hidden, h.Outside = false, !s.file.has[h.ID]
			continue
		}
		h.Hidden = h.Part != 0 && h.Part != 2-o.number%2
		h.Outside = !o.file.has[h.ID] && !o.isFor(h)
	}
}

// pass lets a second pass: what operators do in it, faults that are due, and what the world makes of both. The caller
// has the world locked, and has it locked again then.
func (s *Simulation) pass() {
	s.mu.Unlock()
	time.Sleep(time.Second)
	synctest.Wait()
	s.mu.Lock()
	s.moment++
	s.World.Now++
	s.forgetEnded()
	s.show(nil)
	s.injectFaults()
	s.operators()
	s.controllers()
	if s.moment%4 == 0 {
		s.World.Write()
	}
	s.check()
	for _, h := range s.World.Hosts {
		if h.Run.Unit != nil && (!h.Slow || s.moment%8 == 0) {
			s.World.Work(h)
			s.check()
		}
	}
}

// forgetEnded takes out the operators whose run has ended.
func (s *Simulation) forgetEnded() {
	left := s.ops[:0]
	for _, o := range s.ops {
		if o.result == Unended {
			left = append(left, o)
		}
	}
	clear(s.ops[len(left):])
	s.ops = left
}

// errBroken is what becomes of a command whose operator stood still meanwhile: its connection is no more.
var errBroken = errors.New("the connection is broken")

// take lets a command take its time. An operator that stands still gives none.
func (o *operator) take(ctx context.Context, what string) error {
	h := fnv.New64a()
	_, _ = h.Write([]byte(o.run + "|" + what))
	err := sleep(ctx, time.Duration(h.Sum64()%uint64(longestCommand))+time.Millisecond)
	for o.standsStill() {
		time.Sleep(time.Second)
		err = cmp.Or(err, errBroken)
	}
	return err
}

func (o *operator) standsStill() bool {
	o.sim.mu.Lock()
	defer o.sim.mu.Unlock()
	return o.wake > o.sim.moment && !o.dead
}

// sleep waits for that long, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// isDeaf reports whether a guard is off that would tell the run that another has its lock.
func (o *operator) isDeaf() bool { return o.sim.Off == NoLostCheck || o.sim.Off == NoFence }

// isUnlocked reports whether a guard is off that keeps the run to locks.
func (o *operator) isUnlocked() bool {
	return o.sim.Off == NoLock || o.sim.Off == NoWorkerLock && (o.alone != "" || o.machine != nil)
}

// kill ends the operator's program. Its hosts notice at once, or later.
func (s *Simulation) kill(o *operator, atOnce bool) {
	o.dead = true
	o.cancel()
	if atOnce {
		s.show(o)
		o.disconnect()
		s.show(nil)
	}
	left := s.ops[:0]
	for _, other := range s.ops {
		if other != o {
			left = append(left, other)
		}
	}
	s.ops = left
}

// view is which hosts the operator that acts reaches: another one sees another world.
func (s *Simulation) view() int {
	view := 0
	for i, h := range s.World.Hosts {
		if h.Hidden && i < 62 {
			view |= 1 << i
		}
	}
	return view
}

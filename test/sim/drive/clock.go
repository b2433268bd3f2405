package drive

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"testing/synctest"
	"time"
)

// A scenario runs in a bubble of testing/synctest with a virtual clock. The simulation is its root: once a second it
// injects faults and advances the steps on hosts. Operators are goroutines. Every command takes a different time, so
// that no two events coincide and equal scenarios take equal courses.

// longestCommand limits the time of a command by itself.
const longestCommand = 400 * time.Millisecond

// actAs runs do for an operator, and checks the resulting world. With a nil operator the action belongs to no run.
func (s *Simulation) actAs(o *operator, do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.showTo(o)
	do()
	s.checkState()
}

func (s *Simulation) checkState() {
	s.World.Settle()
	s.Checker.State()
}

// showTo limits the world to what this operator reaches.
func (s *Simulation) showTo(o *operator) {
	for _, h := range s.World.Hosts {
		if o == nil {
			h.Hidden, h.Outside = false, !s.file.has[h.ID]
			continue
		}
		h.Hidden = h.Part != 0 && h.Part != 2-o.number%2
		h.Outside = !o.file.has[h.ID] && !o.isFor(h)
	}
}

// passSecond advances the clock by a second: operators act, faults that are due happen, and the world settles. The
// caller has locked the world, which is unlocked in between.
func (s *Simulation) passSecond() {
	s.mu.Unlock()
	time.Sleep(time.Second)
	synctest.Wait()
	s.mu.Lock()
	s.moment++
	s.World.Now++
	s.forgetEnded()
	s.showTo(nil)
	s.injectFaults()
	s.injectOperatorFaults()
	s.runControllers()
	if s.moment%4 == 0 {
		s.World.Write()
	}
	s.checkState()
	for _, h := range s.World.Hosts {
		if h.Run.Unit != nil && (!h.Slow || s.moment%8 == 0) {
			s.World.Work(h)
			s.checkState()
		}
	}
}

// forgetEnded removes operators whose run has ended.
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

// errBroken is the result of a command whose operator was suspended meanwhile: its connection is broken.
var errBroken = errors.New("the connection is broken")

// takeTime waits for the duration of a command. A suspended operator waits longer.
func (o *operator) takeTime(ctx context.Context, what string) error {
	h := fnv.New64a()
	_, _ = h.Write([]byte(o.run + "|" + what))
	err := sleepFor(ctx, time.Duration(h.Sum64()%uint64(longestCommand))+time.Millisecond)
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

// sleepFor waits for d, or until ctx ends.
func sleepFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// isDeaf reports whether a disabled guard would tell the run that another run has its lock.
func (o *operator) isDeaf() bool { return o.sim.Off == NoLostCheck || o.sim.Off == NoFence }

// isUnlocked reports whether a disabled guard would enforce locks.
func (o *operator) isUnlocked() bool {
	return o.sim.Off == NoLock || o.sim.Off == NoWorkerLock && (o.alone != "" || o.machine != nil)
}

// killOperator ends the operator's program. With atOnce its hosts notice at once, otherwise later.
func (s *Simulation) killOperator(o *operator, atOnce bool) {
	o.dead = true
	o.cancel()
	if atOnce {
		s.showTo(o)
		o.endConnections()
		s.showTo(nil)
	}
	left := s.ops[:0]
	for _, other := range s.ops {
		if other != o {
			left = append(left, other)
		}
	}
	s.ops = left
}

// viewNumber identifies the hosts that the acting operator reaches.
func (s *Simulation) viewNumber() int {
	view := 0
	for i, h := range s.World.Hosts {
		if h.Hidden && i < 62 {
			view |= 1 << i
		}
	}
	return view
}

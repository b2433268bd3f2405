// Package real runs the real lock and the real apply, with their goroutines, connections and clocks, against a
// simulated world: hosts that know apply's own commands, an API and an etcd. Everything else is as in package
// drive, whose single thread can go through far more schedules; this one shows that what is run there is what
// apply does.
//
// Nothing here waits for a real clock: tests run it in a bubble of testing/synctest. Every command takes a time
// of its own, worked out from its name, so that no two things happen at the same moment and equal seeds take
// equal courses.
package real

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"kubeone/internal/plan"
	"kubeone/test/sim/drive"
	"kubeone/test/sim/safety"
	"kubeone/test/sim/world"
)

// World is a simulated world that several goroutines share.
type World struct {
	mu     sync.Mutex
	truth  *world.World
	check  *safety.Checker
	began  time.Time
	plans  map[string]plan.Plan // approved, by run
	dead   map[string]bool      // operators that were killed
	breaks func(*world.Host) drive.Kind
	// due injects a fault that is due after what was done; one of the operator is returned.
	due   func() (drive.Fault, bool)
	stop  chan struct{}  // closed when the operator is asked to stop
	times map[string]int // how often each command was given
}

// NewWorld shares the world of a scenario.
func NewWorld(s *drive.Simulation) *World {
	return &World{
		truth: s.World, check: s.Checker, breaks: s.Breaks, due: s.InjectDue, stop: make(chan struct{}),
		began: time.Now(), plans: map[string]plan.Plan{}, dead: map[string]bool{}, times: map[string]int{},
	}
}

// do changes the world, lets it settle, and checks it.
func (w *World) do(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.truth.Now = int64(time.Since(w.began) / time.Second)
	change()
	if _, due := w.due(); due {
		close(w.stop)
	}
	w.truth.Settle()
	w.check.State()
}

// look reads what is shared, and changes nothing.
func (w *World) look(read func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	read()
}

// Live lets the steps on hosts get on, the clients write, and the faults happen, until ctx ends.
func (w *World) Live(ctx context.Context, faults func(second int)) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for second := 1; ; second++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w.do(func() {
			faults(second)
			for _, h := range w.truth.Hosts {
				if !h.Slow || second%8 == 0 {
					w.truth.Work(h)
				}
			}
			w.truth.Write()
		})
	}
}

// take lets a command take its time: longer than nothing, shorter than half a second, and another for every command.
func (w *World) take(ctx context.Context, who, what string) error {
	w.mu.Lock()
	w.times[who+what]++
	n := w.times[who+what]
	w.mu.Unlock()
	h := fnv.New64a()
	_, _ = h.Write([]byte{byte(n), byte(n >> 8)})
	_, _ = h.Write([]byte(who + "|" + what))
	return sleep(ctx, time.Duration(h.Sum64()%uint64(400*time.Millisecond))+time.Millisecond)
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

// step is the approved step of that run and ID.
func (w *World) step(run, id string) plan.Step {
	s, _ := w.plans[run].Step(id)
	return s
}

package sim

import (
	"flag"
	"fmt"
	"iter"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"kubeone/test/sim/drive"
)

// Flags of TestMany and TestReplay. They are flags of a test because only a test can create a bubble of
// testing/synctest.
var (
	schedules  = flag.Int("schedules", 0, "how many random schedules to run")
	machines   = flag.Int("machines", 0, "how many random schedules to run with controllers as second actors")
	roles      = flag.Int("roles", 0, "how many random schedules with roles changed and markers lost")
	ownAddons  = flag.Int("addons", 0, "how many random schedules with changes of the operator's own addons")
	first      = flag.Uint64("seed", 1, "the first one's seed")
	states     = flag.Int("states", 0, "every pair of faults in all clusters of up to that many control-plane hosts")
	boundaries = flag.Int("boundaries", 0,
		"every fault at every second, in all clusters of up to that many control-plane hosts")
	pairs     = flag.String("pairs", "", "every pair of faults at every 10th second, of the scenario given")
	replay    = flag.String("replay", "", "a scenario, as a failure prints it: shown as it happens")
	keepGoing = flag.Bool("keep-going", false, "go on after a broken rule, and do not shrink it")
)

// TestMany runs as many schedules as the flags say, by default none, and logs their rate per second. It shrinks the
// first violation to a minimum of faults and hosts, and prints it with the command that replays it.
func TestMany(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // every schedule leaves garbage
	for _, part := range []struct {
		name      string
		scenarios iter.Seq[drive.Scenario]
	}{
		{"states", drive.States(*states)},
		{"command boundaries", drive.Boundaries(t, *boundaries)},
		{"pairs at boundaries", pairsOf(t, *pairs)},
		{"random schedules", randomScenarios(*first, *schedules, drive.Random)},
		{"schedules of Machines", randomScenarios(*first, *machines, drive.RandomWithPool)},
		{"schedules of roles", randomScenarios(*first, *roles, drive.RandomRoles)},
		{"schedules of addons", randomScenarios(*first, *ownAddons, drive.RandomAddons)},
	} {
		one := tally{name: part.name, began: time.Now()}
		one.logReport(t, onAllProcessors(t, part.scenarios, func(s drive.Scenario, r drive.Report) bool {
			return one.countSchedule(t, s, r)
		}))
	}
}

// onAllProcessors runs scenarios, one per processor at a time. It calls count with each report, one at a time, in the
// order in which scenarios end. It stops and returns false when count does.
func onAllProcessors(t *testing.T, scenarios iter.Seq[drive.Scenario],
	count func(drive.Scenario, drive.Report) bool) bool {
	t.Helper()
	var (
		waiting = make(chan drive.Scenario)
		done    = make(chan struct{})
		all     sync.WaitGroup
		one     sync.Mutex
		goOn    = true
	)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for s := range waiting {
				r := drive.Run(t, s)
				one.Lock()
				if goOn && !count(s, r) {
					goOn = false
					close(done)
				}
				one.Unlock()
			}
		})
	}
	handOver(scenarios, waiting, done)
	all.Wait()
	return goOn
}

// handOver sends the scenarios until done is closed, and then closes the channel.
func handOver(scenarios iter.Seq[drive.Scenario], to chan<- drive.Scenario, done <-chan struct{}) {
	defer close(to)
	for s := range scenarios {
		select {
		case to <- s:
		case <-done:
			return
		}
	}
}

func randomScenarios(first uint64, n int, scenario func(seed uint64) drive.Scenario) iter.Seq[drive.Scenario] {
	return func(yield func(drive.Scenario) bool) {
		for i := range uint64(max(n, 0)) {
			if !yield(scenario(first + i)) {
				return
			}
		}
	}
}

func pairsOf(t *testing.T, text string) iter.Seq[drive.Scenario] {
	t.Helper()
	if text == "" {
		return func(func(drive.Scenario) bool) {}
	}
	s, err := drive.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return drive.Pairs(t, s, 10)
}

// tally counts schedules.
type tally struct {
	name                                  string
	began                                 time.Time
	schedules, runs, moments, lost, broke int
	helped, recovered                     int
}

// countSchedule counts one schedule. It returns whether to continue.
func (c *tally) countSchedule(t *testing.T, s drive.Scenario, r drive.Report) bool {
	t.Helper()
	c.schedules, c.runs, c.moments, c.helped = c.schedules+1, c.runs+r.Runs, c.moments+r.Moments, c.helped+r.Helped
	c.recovered += r.Recovered
	if r.Lost {
		c.lost++
	}
	if c.schedules%10000 == 0 {
		fmt.Fprintf(os.Stderr, "%d %s, %.0f a second\n", c.schedules, c.name,
			float64(c.schedules)/time.Since(c.began).Seconds())
	}
	if r.Violation == nil {
		return true
	}
	c.broke++
	t.Errorf("broken: %v\n  %s", r.Violation, replayCommand(s))
	if !*keepGoing {
		small := drive.Shrink(t, s, r.Violation.Rule)
		t.Errorf("shrunk: %v\n  %s", drive.Run(t, small).Violation, replayCommand(small))
	}
	return *keepGoing
}

// replayCommand returns the command that replays a scenario.
func replayCommand(s drive.Scenario) string {
	return fmt.Sprintf("go test ./test/sim -run Replay -v -replay %q", s)
}

func (c *tally) logReport(t *testing.T, whole bool) {
	t.Helper()
	if c.schedules == 0 {
		return
	}
	took := time.Since(c.began)
	t.Logf("%s: %d schedules, all of them: %t, %d runs of apply, %d seconds; %d lost their quorum to the faults and "+
		"%d were recovered; %d times a person helped; %d broke a rule; %v, %.0f schedules a second",
		c.name, c.schedules, whole, c.runs, c.moments, c.lost, c.recovered, c.helped, c.broke,
		took.Round(time.Millisecond), float64(c.schedules)/took.Seconds())
}

// TestReplay runs the scenario of the flag with a trace.
func TestReplay(t *testing.T) {
	if *replay == "" {
		return
	}
	s, err := drive.Parse(strings.TrimSpace(*replay))
	if err != nil {
		t.Fatal(err)
	}
	sim := drive.New(s)
	sim.Trace = func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	sim.TraceEffects()
	r := sim.Run(t)
	fmt.Printf("%d seconds, %d runs, the last one: %s; a person helped %d times; quorum lost: %v\n", r.Moments, r.Runs,
		r.Result, r.Helped, r.Lost)
	if r.Violation != nil {
		t.Error(r.Violation)
	}
}

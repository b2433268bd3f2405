// Command sim lets plans be carried out in a simulated world while faults are injected, and says how many such
// schedules it ran a second. The first broken rule is shrunk to as few faults and hosts as show it, and printed with
// the command that replays it.
package main

import (
	"flag"
	"fmt"
	"iter"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"kubeone/test/sim/drive"
)

func main() {
	schedules := flag.Int("schedules", 0, "how many random schedules to run")
	machines := flag.Int("machines", 0, "how many random schedules to run with controllers as second actors")
	roles := flag.Int("roles", 0, "how many random schedules with roles changed and markers lost")
	first := flag.Uint64("seed", 1, "the first one's seed")
	states := flag.Int("states", 0, "every pair of faults in all clusters of up to that many control-plane hosts")
	boundaries := flag.Int("boundaries", 0,
		"every fault before every command, in all clusters of up to that many control-plane hosts")
	pairs := flag.String("pairs", "", "every pair of faults before every 10th command, of the scenario given")
	replay := flag.String("replay", "", "a scenario, as a failure prints it: shown as it happens")
	all := flag.Bool("keep-going", false, "go on after a broken rule, and do not shrink it")
	flag.Parse()
	debug.SetGCPercent(800) // every schedule leaves its world behind
	os.Exit(run(*replay, *all, map[string]iter.Seq[drive.Scenario]{
		"random schedules":      random(*first, *schedules, drive.Random),
		"schedules of Machines": random(*first, *machines, drive.RandomWithPool),
		"schedules of roles":    random(*first, *roles, drive.RandomRoles),
		"states":                drive.States(*states),
		"command boundaries":    drive.Boundaries(*boundaries),
		"pairs at boundaries":   pairsOf(*pairs),
	}))
}

func run(replay string, all bool, parts map[string]iter.Seq[drive.Scenario]) int {
	if replay != "" {
		return show(replay)
	}
	status := 0
	for _, name := range []string{
		"states", "command boundaries", "pairs at boundaries", "random schedules", "schedules of Machines",
		"schedules of roles",
	} {
		t := tally{name: name, began: time.Now()}
		if !onAllProcessors(parts[name], func(s drive.Scenario, r drive.Report) bool { return t.count(s, r, all) }) {
			return 1
		}
		status = max(status, t.report())
	}
	return status
}

// onAllProcessors lets scenarios happen, as many at the same time as there are processors, and hands each one's report
// to count, one at a time, in the order in which they end. It returns false when count did, which ends it.
func onAllProcessors(scenarios iter.Seq[drive.Scenario], count func(drive.Scenario, drive.Report) bool) bool {
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
				r := drive.Run(s)
				one.Lock()
				if goOn && !count(s, r) {
					goOn = false
					close(done)
				}
				one.Unlock()
			}
		})
	}
	hand(scenarios, waiting, done)
	all.Wait()
	return goOn
}

// hand hands the scenarios over until nobody wants more, and closes the channel.
func hand(scenarios iter.Seq[drive.Scenario], to chan<- drive.Scenario, done <-chan struct{}) {
	defer close(to)
	for s := range scenarios {
		select {
		case to <- s:
		case <-done:
			return
		}
	}
}

func random(first uint64, n int, scenario func(seed uint64) drive.Scenario) iter.Seq[drive.Scenario] {
	return func(yield func(drive.Scenario) bool) {
		for i := range uint64(max(n, 0)) {
			if !yield(scenario(first + i)) {
				return
			}
		}
	}
}

func pairsOf(text string) iter.Seq[drive.Scenario] {
	s, err := drive.Parse(text)
	if text == "" || err != nil {
		return func(func(drive.Scenario) bool) {}
	}
	return drive.Pairs(s, 10)
}

// tally counts schedules.
type tally struct {
	name                                  string
	began                                 time.Time
	schedules, runs, moments, lost, broke int
	helped, recovered                     int
}

// count counts one schedule. It returns whether to go on.
func (t *tally) count(s drive.Scenario, r drive.Report, all bool) bool {
	t.schedules, t.runs, t.moments, t.helped = t.schedules+1, t.runs+r.Runs, t.moments+r.Moments, t.helped+r.Helped
	t.recovered += r.Recovered
	if r.Lost {
		t.lost++
	}
	if t.schedules%100000 == 0 {
		fmt.Fprintf(os.Stderr, "%d %s, %.0f a second\n", t.schedules, t.name,
			float64(t.schedules)/time.Since(t.began).Seconds())
	}
	if r.Violation == nil {
		return true
	}
	t.broke++
	if !all {
		fmt.Printf("broken: %v\n  as found:  %s\n", r.Violation, s)
		s = drive.Shrink(s, r.Violation.Rule)
		r = drive.Run(s)
	}
	fmt.Printf("broken: %v\n  go run ./test/sim -replay %q\n", r.Violation, s)
	return all
}

func (t *tally) report() int {
	if t.schedules == 0 {
		return 0
	}
	took := time.Since(t.began)
	fmt.Printf("%s: %d schedules, %d runs of apply, %d moments; %d lost their quorum to the faults and %d were "+
		"recovered; %d times a person helped; %d broke a rule; %v, %.0f schedules a second\n",
		t.name, t.schedules, t.runs, t.moments, t.lost, t.recovered, t.helped, t.broke, took.Round(time.Millisecond),
		float64(t.schedules)/took.Seconds())
	return min(t.broke, 1)
}

// show lets a scenario happen in words.
func show(text string) int {
	s, err := drive.Parse(strings.TrimSpace(text))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	sim := drive.New(s)
	sim.Trace = func(format string, args ...any) { fmt.Println(say(format, args...)) }
	sim.TraceEffects()
	r := sim.Run()
	fmt.Printf("%d moments, %d runs, the last one: %s; a person helped %d times; quorum lost: %v\n", r.Moments, r.Runs,
		r.Result, r.Helped, r.Lost)
	if r.Violation != nil {
		fmt.Println(r.Violation)
		return 1
	}
	return 0
}

func say(format string, args ...any) string { return fmt.Sprintf(format, args...) }

package decide

import (
	"fmt"
	"slices"
	"testing"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"
)

// examiner decides worlds and checks the results; each goroutine has its own.
type examiner struct {
	t            *testing.T
	table        *rules
	cps, workers []kind
	total, turn  int
	reached      map[string]int
	raw, slots   []int
	manifests    [6][2]desired.Cluster
}

// cachedManifest makes each manifest only once.
func (e *examiner) cachedManifest(cps, workers int) desired.Cluster {
	if m := &e.manifests[cps][workers]; m.Name == "" {
		*m = decidetest.Wanted(cps, workers)
	}
	return e.manifests[cps][workers]
}

func (e *examiner) examine(c combination) {
	if e.t.Failed() {
		return // one example is enough
	}
	clear(e.raw)
	c.countFacts(e.raw, e.cps, len(e.workers))
	want, line := e.table.matchRoute(e.raw, e.slots)
	d := Decide(c.buildWorld(e.cachedManifest(len(c.cps), boolValue(c.worker > 0)), e.cps, e.workers))
	e.total++
	e.reached[string(d.Route)]++
	if string(d.Route) != want {
		e.t.Errorf("%v:\n\tdecided %s, routes.txt:%d says %q\n\ttrace %v", c, d.Route, line, want, d.Trace)
	}
	if err := checkTrace(d); err != nil {
		e.t.Errorf("%v: %v", c, err)
	}
	if err := checkSafety(c, e.cps, d); err != nil {
		e.t.Errorf("%v: %s: %v", c, d.Route, err)
	}
}

// checkTrace checks that the trace follows the table to the route.
func checkTrace(d Decision) error {
	table := fsm.Cluster.Table()
	state := fsm.AskHosts
	for _, v := range d.Trace {
		if v.State != state || !slices.Contains(table, fsm.Transition{From: v.State, On: v.Event, To: v.To}) ||
			v.Why == "" {
			return fmt.Errorf("trace %v does not follow the table at %s", d.Trace, state)
		}
		state = v.To
	}
	if err := checkTexts(d); err != nil {
		return err
	}
	if state != fsm.State(d.Route) || !slices.Contains(fsm.Cluster.Routes(), d.Route) {
		return fmt.Errorf("trace %v ends at %s, the route is %s", d.Trace, state, d.Route)
	}
	return nil
}

// checkTexts checks that all problems and steps of a decision have the values for their texts.
func checkTexts(d Decision) error {
	all := slices.Concat(d.Problems, d.Warnings)
	for _, a := range d.Hosts {
		all = append(all, a.Reasons...)
	}
	for _, i := range d.Instructions {
		all = append(all, i.Problems...)
		if len(i.Problems) == 0 || len(i.Steps) == 0 {
			return fmt.Errorf("an instruction without problems or steps: %v", i)
		}
		for _, s := range i.Steps {
			if err := problem.Check(s.Code, s.Parameters); err != nil {
				return err
			}
		}
	}
	for _, p := range all {
		if err := problem.Check(p.Code, p.Parameters); err != nil {
			return err
		}
	}
	return nil
}

// checkSafety checks what must hold whatever the table says, based on the combination alone.
func checkSafety(c combination, kinds []kind, d Decision) error {
	n := make(map[string]int, len(c.cps))
	for _, k := range c.cps {
		n[kinds[k].name]++
	}
	return safeCounts(c, d, n)
}

func safeCounts(c combination, d Decision, n map[string]int) error {
	installable := n["empty"] + n["replaced"] + n["begun"] + n["begunetcd"]
	alive := n["healthy"] + n["stopped"] + n["unready"] + n["broken"] + n["cut"]
	voters := len(c.cps) - n["empty"] - n["begun"] - n["begunetcd"] - n["stranger"] - n["foreign"]
	joinsControlPlane := slices.ContainsFunc(d.Joins, func(id string) bool { return id < "192.0.1" })
	switch {
	case d.Route == fsm.Install && installable < len(c.cps):
		return fmt.Errorf("a control-plane host is silent or holds data")
	case d.Route != fsm.Install && joinsControlPlane && (!c.members || !c.api || alive < voters/2+1):
		return fmt.Errorf("a control-plane host joins without quorum")
	case d.Route == fsm.Instruct && len(d.Instructions) == 0,
		d.Route == fsm.DisasterRecovery && len(d.Instructions) == 0:
		return fmt.Errorf("no instructions")
	case (d.Route == fsm.Error) != (len(d.Problems) > 0):
		return fmt.Errorf("problems %v", d.Problems)
	case d.Route == fsm.Repair && len(d.Restarts)+len(d.Regenerations)+len(d.Restores)+len(d.Removals)+
		len(d.Quarantines) == 0,
		d.Route == fsm.Join && len(d.Joins) == 0, d.Route == fsm.Install && d.Leader == "":
		return fmt.Errorf("nothing to do: %+v", d)
	case d.Route == fsm.Join && d.Leader == "", d.Route == fsm.Upgrade && len(d.Upgrades) == 0,
		d.Route == fsm.Reconfigure && len(d.Drift) == 0,
		d.Route == fsm.MoveEndpoint && len(d.Names)+len(d.Diallers) == 0 && !d.Publish:
		return fmt.Errorf("nothing to do: %+v", d)
	}
	return nil
}

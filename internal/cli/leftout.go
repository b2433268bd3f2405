package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/decide/condition"
	"kubeone/internal/engine"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/problem"
	"kubeone/internal/view"
)

// skippedHosts lists hosts that a command skipped because they did not respond or cannot be changed.
type skippedHosts struct {
	names   []string
	reasons []string // one for each host, with its name
	status  int      // exit status
	what    string   // what was not done, such as "not reset"
}

// findSkippedHosts returns those of the hosts that the proposal skips, with a reason for each, or nil if there are
// none. The status is that of the first reason. what is the field of the result.
func findSkippedHosts(p engine.Proposal, hosts []desired.Host, what string) *skippedHosts {
	left := &skippedHosts{what: what}
	add := func(id string, status int, why string) {
		left.status = cmp.Or(left.status, status)
		left.names = append(left.names, p.NameOf(id))
		left.reasons = append(left.reasons, fmt.Sprintf("%s: %s", p.NameOf(id), why))
	}
	for _, h := range hosts {
		found, seen := p.Decision().Hosts[h.ID], p.Observed.World.Hosts[h.ID]
		switch {
		case found.Condition == condition.Unreachable && len(found.Reasons) > 0:
			add(h.ID, view.ExitOf(found.Reasons[0].Class()), found.Reasons[0].Text())
		case found.Condition == condition.Unreachable:
			add(h.ID, view.ExitConnection, cmp.Or(seen.Problem, "did not answer"))
		case seen.Unwritable != "" && h.Role == desired.Worker:
			add(h.ID, view.ExitRuntime, "cannot be locked: "+seen.Unwritable)
		}
	}
	if len(left.names) == 0 {
		return nil
	}
	return left
}

// reportEnd prints the result of a command that carries out plans, as text or as the last event in the stream. It
// returns an error if hosts were skipped. In text, the notes in the plan have already given the reasons.
func (f *applyFlags) reportEnd(stdio IO, text string, left *skippedHosts) error {
	if f.output == "json" {
		e := apply.Event{Format: apply.EventFormat, Time: time.Now(), Type: apply.Result, Line: text}
		if left != nil {
			e.Error, e.Unknown = left.what+": "+strings.Join(left.reasons, "; "), left.names
		}
		view.NewJSONProgress(stdio.Out).Event(e)
	} else {
		_, _ = fmt.Fprintln(stdio.Out, text)
	}
	if left != nil {
		return &classError{left.status,
			fmt.Errorf("%s: %s; the reasons are above", left.what, problem.List(left.names))}
	}
	return nil
}

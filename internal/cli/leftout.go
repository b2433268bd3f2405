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

// leftOut lists hosts that a command skipped because they did not answer or cannot be changed.
type leftOut struct {
	hosts   []string // names
	reasons []string // one for each host, with its name
	status  int
	what    string // what was not done, such as "not reset"
}

// leftOutOf returns the hosts that the proposal skips, with a reason for each, or nil if there are none. The status is
// that of the first reason.
func leftOutOf(p engine.Proposal, hosts []desired.Host, what string) *leftOut {
	left := &leftOut{what: what}
	add := func(id string, status int, why string) {
		left.status = cmp.Or(left.status, status)
		left.hosts = append(left.hosts, p.NameOf(id))
		left.reasons = append(left.reasons, fmt.Sprintf("%s: %s", p.NameOf(id), why))
	}
	for _, h := range hosts {
		found, seen := p.Decision().Hosts[h.ID], p.Observed.World.Hosts[h.ID]
		switch {
		case found.Condition == condition.Unreachable && len(found.Reasons) > 0:
			add(h.ID, view.ExitOf(found.Reasons[0].Class()), found.Reasons[0].What())
		case found.Condition == condition.Unreachable:
			add(h.ID, view.ExitConnection, cmp.Or(seen.Problem, "did not answer"))
		case seen.Unwritable != "" && h.Role == desired.Worker:
			add(h.ID, view.ExitRuntime, "cannot be locked: "+seen.Unwritable)
		}
	}
	if len(left.hosts) == 0 {
		return nil
	}
	return left
}

// reportEnd prints the result of a command that carries out plans, as text or as the last event of the stream. Skipped
// hosts are an error; in text, the notes of the plan contain the reasons.
func (f *applyFlags) reportEnd(stdio IO, text string, left *leftOut) error {
	if f.output == "json" {
		e := apply.Event{Format: apply.EventFormat, Time: time.Now(), Type: apply.Result, Line: text}
		if left != nil {
			e.Error, e.Unknown = left.what+": "+strings.Join(left.reasons, "; "), left.hosts
		}
		view.NewJSONProgress(stdio.Out).Event(e)
	} else {
		_, _ = fmt.Fprintln(stdio.Out, text)
	}
	if left != nil {
		return &classError{left.status,
			fmt.Errorf("%s: %s; the reasons are above", left.what, problem.List(left.hosts))}
	}
	return nil
}

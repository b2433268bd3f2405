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

// leftOut are hosts about which a command did nothing, as they did not answer or cannot be worked on.
type leftOut struct {
	hosts   []string // names
	reasons []string // one for each, with its name
	status  int
	what    string // was not done about them
}

// leftOutOf returns those of the hosts that the proposal leaves out, with the reason for each; nil if there are none.
// The status is that of the first reason.
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

// reportEnd says how a command ended that carries out plans: as text, or as the last line of the event stream. Hosts
// that were left out are an error; the plan's notes have told a person the reasons.
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

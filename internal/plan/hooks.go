package plan

import (
	"cmp"
	"fmt"
	"slices"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
	"kubeone/internal/text/set"
)

// addHooks inserts the operator's commands around what the plan does to each host.
func (b *builder) addHooks() {
	if len(b.in.Want.Hooks) == 0 || !b.takesHooks() {
		return
	}
	w := b.newWeaver()
	for _, h := range b.in.Want.Hosts() {
		for _, activity := range []desired.Activity{
			desired.Joining, desired.Upgrading, desired.Draining, desired.Reconfiguring, desired.Resetting,
		} {
			w.addAround(h, activity)
		}
	}
}

// addPendingHooks plans the hooks of earlier activities that have not succeeded yet.
func (b *builder) addPendingHooks() {
	if !b.takesHooks() {
		return
	}
	w := b.newWeaver()
	for _, h := range b.in.Want.Hosts() {
		w.addPendingHooksOf(h)
	}
}

// takesHooks reports whether the plan could be carried out.
func (b *builder) takesHooks() bool {
	return b.plan.Blocked == "" && b.plan.Routes[0] != string(fsm.Error)
}

func (b *builder) newWeaver() *weaver {
	w := &weaver{b, map[string][]string{}}
	for _, s := range b.plan.Steps {
		w.needs[s.ID] = s.Needs
	}
	return w
}

// weaver inserts hooks into a plan.
type weaver struct {
	*builder
	needs map[string][]string // of every step
}

// addAround inserts hooks around the steps of an activity on a host, if the plan has it there.
func (b *weaver) addAround(h desired.Host, activity desired.Activity) {
	span := b.activitySteps(h, activity)
	if span == nil {
		return
	}
	if activity == desired.Joining && b.init != "" {
		activity = desired.Installing
	}
	b.addBefore(h, step.Moment{When: desired.Before, Activity: activity}, span)
	b.addAfter(h, step.Moment{When: desired.After, Activity: activity}, span)
}

// activitySteps returns the IDs of the steps of an activity on a host; nil if that activity is not in the plan.
func (b *weaver) activitySteps(h desired.Host, activity desired.Activity) map[string]bool {
	span, core := map[string]bool{}, false
	for _, s := range b.plan.Steps {
		if of, makes := s.Intent.Kind.PartOf(); of == activity && s.Host == h.ID {
			span[s.ID], core = true, core || makes
		}
	}
	if !core {
		return nil
	}
	return span
}

// addBefore inserts the hooks of a moment before all steps of the span.
func (b *weaver) addBefore(h desired.Host, m step.Moment, span map[string]bool) {
	var first, needs, after []string
	at := len(b.plan.Steps)
	for i, s := range b.plan.Steps {
		if span[s.ID] && !b.needsAnyOf(s, span) {
			first, needs, after = append(first, s.ID), set.Union(needs, s.Needs), set.Union(after, s.After)
			at = min(at, i)
		}
	}
	last := b.addHookSteps(h, m, Step{Needs: needs, After: after}, at)
	if last == "" {
		return
	}
	for i := range b.plan.Steps {
		if s := &b.plan.Steps[i]; slices.Contains(first, s.ID) {
			b.addNeed(s, last)
		}
	}
}

// addNeed adds a need to a step.
func (b *weaver) addNeed(s *Step, id string) {
	s.Needs = set.Union(s.Needs, []string{id})
	b.needs[s.ID] = s.Needs
}

// addAfter inserts the hooks of a moment after all steps of the span. Steps that need the last of these need the hooks,
// too.
func (b *weaver) addAfter(h desired.Host, m step.Moment, span map[string]bool) {
	lasts, at := b.lastSteps(span)
	last := b.addHookSteps(h, m, Step{Needs: lasts}, at)
	if last == "" {
		return
	}
	isLast := func(id string) bool { return slices.Contains(lasts, id) }
	for i := range b.plan.Steps {
		s := &b.plan.Steps[i]
		if span[s.ID] || s.Host == h.ID && s.Intent.Moment() == m {
			continue
		}
		if slices.ContainsFunc(s.Needs, isLast) {
			b.addNeed(s, last)
		}
		if slices.ContainsFunc(s.After, isLast) {
			s.After = set.Union(s.After, []string{last})
		}
	}
}

// lastSteps returns the steps of a span that no other step of it needs, directly or not, and the position after them.
func (b *weaver) lastSteps(span map[string]bool) (ids []string, at int) {
	needed := map[string]bool{}
	for _, s := range b.plan.Steps {
		if span[s.ID] {
			for id := range b.allNeeds(s) {
				needed[id] = true
			}
		}
	}
	for i, s := range b.plan.Steps {
		if span[s.ID] && !needed[s.ID] {
			ids, at = append(ids, s.ID), i+1
		}
	}
	return ids, at
}

// addPendingHooksOf plans the hooks that an earlier run left pending on the host, unless this plan repeats their
// activity. The host's Node is not uncordoned before they have succeeded. If the manifest no longer defines such hooks,
// only the record of them on the host is removed.
func (b *weaver) addPendingHooksOf(h desired.Host) {
	is := b.in.Is.Hosts[h.ID]
	if is.Reach != observed.Reached || is.Unwritable != "" || b.in.Limit != nil && !b.in.Limit[h.ID] ||
		b.hasStep(b.stepID(step.ResetHost, h)) {
		return
	}
	for _, pending := range is.HooksOwed {
		m := step.Moment{When: desired.After, Activity: desired.Activity(pending)}
		if b.hasStep(b.hookID(step.Hooks, m, h)) {
			continue
		}
		if !b.hasHooks(m) {
			b.forgetPendingHooks(h, m)
			continue
		}
		first, at := b.beforeOpening(h)
		s := Step{Needs: first, Reason: "an earlier run ended before they succeeded"}
		last := b.addHookSteps(h, m, s, at)
		for i := range b.plan.Steps {
			if s := &b.plan.Steps[i]; s.Host == h.ID && s.Intent.Kind == step.Uncordon {
				b.addNeed(s, last)
			}
		}
	}
}

// forgetPendingHooks plans to remove the record of pending hooks that are no longer in the manifest. No other step
// waits for it. It runs after the other steps on the host, because a stage that hooks follow records them again.
func (b *weaver) forgetPendingHooks(h desired.Host, m step.Moment) {
	s := Step{Reason: "an earlier run left hooks pending, but the manifest defines none"}
	at := len(b.plan.Steps)
	for _, of := range b.plan.Steps {
		if of.Host == h.ID {
			s.Needs = append(s.Needs, of.ID)
		}
	}
	b.hookStep(h, s, at, step.HooksParams{Moment: m}, "record that no hooks follow "+activityNoun(m.Activity), nil)
}

// activityNoun returns the activity as a noun.
func activityNoun(a desired.Activity) string {
	switch a {
	case desired.Installing:
		return "its installation"
	case desired.Joining:
		return "its join"
	case desired.Upgrading:
		return "its upgrade"
	}
	return "its reconfiguration"
}

// hasHooksAfterUpgrade reports whether pending hooks must succeed before the host's Node is uncordoned.
func (b *builder) hasHooksAfterUpgrade(h desired.Host) bool {
	return slices.Contains(b.in.Is.Hosts[h.ID].HooksOwed, string(desired.Upgrading)) &&
		b.hasHooks(step.Moment{When: desired.After, Activity: desired.Upgrading})
}

// hasHooks reports whether the manifest has any hook of the moment.
func (b *builder) hasHooks(m step.Moment) bool {
	return slices.ContainsFunc(b.in.Want.Hooks, func(h desired.Hook) bool {
		return h.When == m.When && h.Activity == m.Activity
	})
}

// beforeOpening returns the steps on a host that do not wait for its Node to be uncordoned, as those of a repair and a
// join, and the position after them.
func (b *weaver) beforeOpening(h desired.Host) (ids []string, at int) {
	opens := map[string]bool{}
	for _, s := range b.plan.Steps {
		opens[s.ID] = s.Host == h.ID && s.Intent.Kind == step.Uncordon
	}
	for i, s := range b.plan.Steps {
		if s.Host == h.ID && !opens[s.ID] && !b.needsAnyOf(s, opens) {
			ids, at = append(ids, s.ID), i+1
		}
	}
	return ids, at
}

func (b *builder) hookID(k step.Kind, m step.Moment, h desired.Host) string {
	return b.stepID(k+"-"+step.Kind(m.String()), h)
}

// addHookSteps inserts the steps of a moment at that position of the plan, those on the operator's machine first, and
// returns the ID of the last one; "" if there is none. If hosts take a note of the moment, it ends with a step on the
// host.
func (b *weaver) addHookSteps(h desired.Host, m step.Moment, s Step, at int) string {
	mine := step.Commands(b.in.Want.HooksAt(m.When, m.Activity, false))
	its := step.Commands(b.in.Want.HooksAt(m.When, m.Activity, true))
	last := ""
	add := func(params step.Params, title string, commands []step.Command) {
		last = b.hookStep(h, s, at, params, title, commands)
		s.Needs, s.After, at = []string{last}, nil, at+1
	}
	when := string(m.When) + " " + string(m.Activity)
	if len(mine) > 0 {
		add(step.OperatorHooksParams{Moment: m, Hooks: mine}, "hooks "+when+", on the operator's machine", mine)
	}
	if len(its) > 0 {
		add(step.HooksParams{Moment: m, Hooks: its}, "hooks "+when, its)
	} else if len(mine) > 0 && m.Noted() {
		add(step.HooksParams{Moment: m}, "record that the hooks "+when+" have run", nil)
	}
	return last
}

// hookStep adds one step of a moment at that position and returns its ID.
func (b *weaver) hookStep(
	h desired.Host, s Step, at int, params step.Params, title string, commands []step.Command,
) string {
	s.Intent = step.With(params)
	s.ID, s.Host = b.hookID(params.Kind(), s.Intent.Moment(), h), h.ID
	s.Intent.Role, s.Intent.NodeName, s.Intent.Arch = h.Role, b.nodeName(h), b.in.Is.Hosts[h.ID].Arch
	s.Action, s.Title, s.Changes = Change, title, hookChanges(commands)
	s.Reason = cmp.Or(s.Reason, "the manifest defines them")
	b.needs[s.ID] = s.Needs
	return b.insertStep(h, s, at)
}

func hookChanges(commands []step.Command) []string {
	var out []string
	for _, c := range commands {
		out = append(out, fmt.Sprintf("%s: %s (%d s at most)", c.Name, c, c.TimeoutSeconds))
	}
	return out
}

// hooksOfApply inserts the hooks of the whole run around all its steps.
func (b *builder) hooksOfApply() {
	if len(b.plan.Steps) == 0 {
		return
	}
	add := func(when desired.When, needs []string, at int) string {
		m := step.Moment{When: when, Activity: desired.Applying}
		commands := step.Commands(b.in.Want.HooksAt(m.When, m.Activity, false))
		if len(commands) == 0 {
			return ""
		}
		return b.insertStep(desired.Host{}, Step{
			ID: string(step.OperatorHooks) + "-" + m.String(), Needs: needs, Action: Change,
			Intent: step.With(step.OperatorHooksParams{Moment: m, Hooks: commands}),
			Title: "hooks " + string(when) +
				" apply", Reason: "the manifest defines them", Changes: hookChanges(commands),
		}, at)
	}
	all := b.otherSteps("")
	if first := add(desired.Before, nil, 0); first != "" {
		for i := range b.plan.Steps[1:] {
			s := &b.plan.Steps[i+1]
			s.Needs = set.Union(s.Needs, []string{first})
		}
	}
	add(desired.After, all, len(b.plan.Steps))
}

// needsAnyOf reports whether the step needs one of these steps, directly or not.
func (b *weaver) needsAnyOf(s Step, ids map[string]bool) bool {
	for id := range b.allNeeds(s) {
		if ids[id] {
			return true
		}
	}
	return false
}

// allNeeds returns the IDs of all steps that must have succeeded before the step.
func (b *weaver) allNeeds(s Step) map[string]bool {
	out := map[string]bool{}
	for todo := s.Needs; len(todo) > 0; {
		id := todo[0]
		todo = todo[1:]
		if out[id] {
			continue
		}
		out[id] = true
		todo = append(slices.Clip(todo), b.needs[id]...)
	}
	return out
}

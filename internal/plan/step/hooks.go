package step

import (
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/model/desired"
)

// The kinds that run the operator's own commands.
const (
	Hooks         Kind = "hooks"
	OperatorHooks Kind = "operator-hooks"
)

// Moment is when hooks run: before or after an activity.
type Moment struct {
	When     desired.When     `json:"when,omitempty"`
	Activity desired.Activity `json:"activity,omitempty"`
}

// String is "before-drain".
func (m Moment) String() string { return string(m.When) + "-" + string(m.Activity) }

// Noted reports whether a host notes that hooks of the moment are owed to it: what they follow is not done again when
// they fail, so nothing else would have them run.
func (m Moment) Noted() bool {
	switch m.Activity {
	case desired.Installing, desired.Joining, desired.Upgrading, desired.Reconfiguring:
		return m.When == desired.After
	}
	return false
}

// Owed are what the steps of one host make of it that has hooks to follow, by the kind that makes it.
func Owed(steps []Intent) map[Kind]desired.Activity {
	out := map[Kind]desired.Activity{}
	for _, hooks := range steps {
		m := hooks.Moment()
		if !m.Noted() {
			continue
		}
		part := m.Activity
		if part == desired.Installing {
			part = desired.Joining
		}
		for _, s := range steps {
			if of, core := s.Kind.PartOf(); core && of == part {
				out[s.Kind] = m.Activity
			}
		}
	}
	return out
}

// Command is one hook.
type Command struct {
	Name           string   `json:"name"`
	Command        []string `json:"command"`
	TimeoutSeconds int      `json:"timeoutSeconds"`
}

// String is the command as people read it: words that are not plain are quoted as Go quotes them.
func (c Command) String() string {
	words := make([]string, len(c.Command))
	for i, word := range c.Command {
		words[i] = word
		if word == "" || strings.ContainsAny(word, " \"'`\\") {
			words[i] = fmt.Sprintf("%q", word)
		}
	}
	return strings.Join(words, " ")
}

// Commands are these hooks.
func Commands(hooks []desired.Hook) []Command {
	var out []Command
	for _, h := range hooks {
		out = append(out, Command{h.Name, h.Command, int(h.Timeout.Seconds())})
	}
	return out
}

// HooksParams are the hooks that run on a host at a moment, one after the other. After a moment that a host notes there
// may be none: the note is taken away.
type HooksParams struct {
	Moment
	Hooks []Command `json:"hooks,omitempty"`
}

// Kind is Hooks.
func (HooksParams) Kind() Kind { return Hooks }

func hooksRow() row {
	return row{
		kind: Hooks, about: "the operator's commands for this moment, on the host",
		place: OnHost, concerns: ItsHost, group: groupHooks, params: paramsOf[HooksParams](),
		begins: beforeUpgrade, halts: aroundUpgrade, effect: hooksRun,
	}
}

// hooksRun takes away the note that hooks are owed.
func hooksRun(w *World, h desired.Host, i Intent) {
	m := ParamsOf[HooksParams](i).Moment
	if !m.Noted() {
		return
	}
	seen := w.Is.Hosts[h.ID]
	seen.HooksOwed = slices.DeleteFunc(slices.Clone(seen.HooksOwed), func(a string) bool {
		return a == string(m.Activity)
	})
	w.Is.Hosts[h.ID] = seen
}

// OperatorHooksParams are the hooks that run on the operator's machine at a moment, one after the other.
type OperatorHooksParams struct {
	Moment
	Hooks []Command `json:"hooks,omitempty"`
}

// Kind is OperatorHooks.
func (OperatorHooksParams) Kind() Kind { return OperatorHooks }

func operatorHooksRow() row {
	return row{
		kind: OperatorHooks, about: "the operator's commands for this moment, on the operator's machine",
		place: OnOperator, concerns: ItsHost, group: groupHooks, params: paramsOf[OperatorHooksParams](),
		begins: beforeUpgrade, halts: aroundUpgrade, effect: unchanged,
	}
}

// aroundUpgrade reports whether the step's hooks are part of how a node gets something else: where they fail, no other
// node's turn comes.
func aroundUpgrade(i Intent) bool {
	switch i.Moment().Activity {
	case desired.Upgrading, desired.Draining, desired.Reconfiguring:
		return true
	}
	return false
}

func beforeUpgrade(i Intent) bool { return aroundUpgrade(i) && i.Moment().When == desired.Before }

// EndsUpgrade reports whether the step is between the upgrade of a node and its being opened again.
func (i Intent) EndsUpgrade() bool {
	m := i.Moment()
	return m.When == desired.After && m.Activity == desired.Upgrading
}

// Moment is when the hooks run that the step runs; zero for a step of another kind.
func (i Intent) Moment() Moment {
	switch p := i.Params.(type) {
	case HooksParams:
		return p.Moment
	case OperatorHooksParams:
		return p.Moment
	}
	return Moment{}
}

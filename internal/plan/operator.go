package plan

import (
	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
)

// instruct plans what can safely be done before the operator has acted.
func (b *builder) instruct(d decide.Decision) {
	for _, r := range d.Also {
		b.plan.Routes = append(b.plan.Routes, string(r))
		switch r {
		case fsm.Repair:
			b.repair(d)
		case fsm.Join:
			b.join(d)
		case fsm.Resources:
			b.resources(d)
		}
	}
	b.operator(d)
	b.plan.Again = "what follows depends on what you do; apply again afterwards"
}

// block says that what follows is known and not carried out. What was planned before it stays: repairs and joins do not
// wait for it.
func (b *builder) block(why string) {
	if len(b.plan.Steps) > 0 {
		b.plan.Again = why
		return
	}
	b.plan.Blocked = why
}

// erred notes what will be wrong when the steps planned so far are done. If it is wrong now, nothing is planned, and
// the decision itself has the problems.
func (b *builder) erred(d decide.Decision) {
	if len(b.plan.Steps) == 0 {
		return
	}
	b.plan.Again = "what follows needs you first"
	for _, p := range d.Problems {
		b.plan.Notes = append(b.plan.Notes, problemText(b.names, p))
	}
}

func (b *builder) operator(d decide.Decision) {
	b.plan.Operator = append(b.plan.Operator, d.Instructions...)
}

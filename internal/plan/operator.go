package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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

// blocked notes a route that this version knows and does not carry out.
func (b *builder) blocked(d decide.Decision) {
	b.operator(d)
	switch d.Route {
	case fsm.Reconfigure:
		b.uncordonLeft(d)
		b.block("changing the configuration of hosts that have joined is not carried out by itself; an upgrade " +
			"brings it along, or kubeone upgrade --force in the version that runs")
		for _, id := range slices.Sorted(maps.Keys(d.Drift)) {
			b.plan.Notes = append(b.plan.Notes,
				fmt.Sprintf("%s would be reconfigured: %s differ from the manifest", b.names[id],
					strings.Join(d.Drift[id], ", ")))
		}
	default:
		b.block("etcd has lost its quorum: apply does not recover it, kubeone recover does, as listed above")
	}
}

func (b *builder) operator(d decide.Decision) {
	b.plan.Operator = append(b.plan.Operator, d.Instructions...)
}

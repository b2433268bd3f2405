package plan

import (
	"slices"
	"testing"

	"kubeone/internal/model/observed"
)

// If an operator has uncordoned a Node, a mark left on it would make a later cordon of the operator's look like ours.
func TestAMarkWithoutACordonIsTakenOffOnce(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 1)
	nodeOf(in, "w-1", func(n *observed.Node) {
		n.Annotations = map[string]string{observed.CordonAnnotation: "run-1", "other": "kept"}
	})
	p, _ := Build(Input{Decide: in})
	if len(p.Steps) != 2 || p.Steps[0].ID != "uncordon/w-1" || p.Steps[1].ID != "record" || !p.Complete() {
		t.Errorf("planned:\n%s", planText(p))
	}
	if in.Is.API.Nodes[1].Annotations[observed.CordonAnnotation] != "run-1" {
		t.Error("the world that is was changed by what was predicted")
	}
	if next, _ := Build(Input{Decide: carryOut(in, p)}); !next.Empty() {
		t.Errorf("afterwards:\n%s", planText(next))
	}
}

// A Node that an interrupted run has left cordoned is uncordoned first, and again after its upgrade if a roll-out is
// forced. Each of the two steps has its own ID, so that no other host's upgrade begins after the first of them.
func TestAForcedUpgradeOfWhatIsClosedTakesOneHostAfterTheOther(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 0)
	nodeOf(in, "cp-2", func(n *observed.Node) {
		n.Unschedulable, n.Annotations = true, map[string]string{observed.CordonAnnotation: "run-1"}
	})
	in.ForceUpgrade = true
	p, _ := Build(Input{Decide: in})
	if err := checkGraph(in, p, nil); err != nil {
		t.Error(err)
	}
	check, ok := p.Step("check/cp-3")
	if last := p.Steps[slices.IndexFunc(p.Steps, func(s Step) bool { return s.ID == "check/cp-3" })-1]; !ok ||
		!slices.Contains(check.Needs, last.ID) || last.Intent.NodeName != "cp-2" {
		t.Errorf("cp-3 is upgraded after %v", check.Needs)
	}
}

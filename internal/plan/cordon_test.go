package plan

import (
	"testing"

	"kubeone/internal/observed"
)

// A mark on a Node that somebody has opened by hand would make the next cordon, a person's perhaps, look like ours.
func TestAMarkWithoutACordonIsTakenOffOnce(t *testing.T) {
	t.Parallel()
	in := healthy(1, 1)
	nodeOf(in, "w-1", func(n *observed.Node) {
		n.Annotations = map[string]string{observed.CordonAnnotation: "run-1", "other": "kept"}
	})
	p, _ := Build(Input{Decide: in})
	if len(p.Steps) != 2 || p.Steps[0].ID != "uncordon/w-1" || p.Steps[1].ID != "record" || !p.Complete() {
		t.Errorf("planned:\n%s", text(p))
	}
	if in.Is.API.Nodes[1].Annotations[observed.CordonAnnotation] != "run-1" {
		t.Error("the world that is was changed by what was predicted")
	}
	if next, _ := Build(Input{Decide: carryOut(in, p)}); !next.Empty() {
		t.Errorf("afterwards:\n%s", text(next))
	}
}

package world

import (
	"testing"

	"kubeone/internal/plan/step"
)

// Every kind of step has its work, on the right side, and there is no work without a kind.
func TestEveryKindHasWork(t *testing.T) {
	t.Parallel()
	for _, k := range step.Kinds() {
		w := works[k]
		if k.OnHost() != (len(w.phases) > 0) || k.OnHost() == (w.request != nil) {
			t.Errorf("%s runs %s and has %d phases; a request: %t", k, k.Place(), len(w.phases), w.request != nil)
		}
	}
	if len(works) != len(step.Kinds()) {
		t.Errorf("%d kinds are simulated, there are %d", len(works), len(step.Kinds()))
	}
}

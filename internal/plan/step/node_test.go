package step

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

func TestMetadataOfAManifestIsPredictedAsItWillBe(t *testing.T) {
	t.Parallel()
	params := NodeReadyParams{
		Labels: map[string]string{"zone": "a", "gone-": ""}, Annotations: map[string]string{"note": "b"},
		Taints: []desired.Taint{{Key: "k", Effect: "NoSchedule"}},
	}
	had := observed.Node{
		Labels: map[string]string{"gone": "x", "kept": "y"},
		Taints: []observed.Taint{{Key: "other", Effect: "NoExecute"}},
	}
	want := observed.Node{
		Labels: map[string]string{"zone": "a", "kept": "y"}, Annotations: map[string]string{"note": "b"},
		Taints: []observed.Taint{{Key: "other", Effect: "NoExecute"}, {Key: "k", Effect: "NoSchedule"}},
	}
	once := withMeta(had, params)
	if diff := cmp.Diff(want, once); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(once, withMeta(once, params)); diff != "" {
		t.Errorf("a second time changes something:\n%s", diff)
	}
}

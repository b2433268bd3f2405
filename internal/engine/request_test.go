package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"kubeone/internal/decide"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
)

func TestHostsAreSelectedByTheirNodesLabels(t *testing.T) {
	t.Parallel()
	selector, err := labels.Parse("pool=edge")
	if err != nil {
		t.Fatal(err)
	}
	r, want := Apply{Selector: selector}, wanted("demo")
	var w observed.World
	if _, err := r.limitHosts(planInput{Input: plan.Input{Decide: decide.Input{Want: want, Is: w}}}); err == nil ||
		!strings.Contains(err.Error(), "has a Node that matches the selector") {
		t.Errorf("got %v", err)
	}
	edge := map[string]string{"pool": "edge"}
	w.API.Nodes = []observed.Node{{Name: "worker", Labels: edge}, {Name: "other", Labels: edge}}
	got, err := r.limitHosts(planInput{Input: plan.Input{Decide: decide.Input{Want: want, Is: w}}})
	if diff := cmp.Diff(map[string]bool{"192.0.2.21": true}, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	want.ControlPlane[0].Labels = edge // a host without a Node
	got, err = r.limitHosts(planInput{Input: plan.Input{Decide: decide.Input{Want: want, Is: w}}})
	if diff := cmp.Diff(map[string]bool{"192.0.2.11": true, "192.0.2.21": true}, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	r.Limit = map[string]bool{"192.0.2.11": true}
	got, err = r.limitHosts(planInput{Input: plan.Input{Decide: decide.Input{Want: want, Is: w}}})
	if diff := cmp.Diff(map[string]bool{"192.0.2.11": true}, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

func TestSelectorWithoutMatchIsConfigError(t *testing.T) {
	t.Parallel()
	s := play(t)
	var wrong *ConfigError
	_, err := s.Propose(t.Context(), Apply{Selector: labels.SelectorFromSet(labels.Set{"pool": "edge"})})
	if !errors.As(err, &wrong) {
		t.Errorf("got %v", err)
	}
}

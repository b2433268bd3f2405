package view

import (
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/plan"
)

func TestWhatIsWaitedForAfterARun(t *testing.T) {
	t.Parallel()
	hosts := map[string]string{"10.0.0.1": "cp-1"}
	for name, c := range map[string]struct {
		coming []string
		steps  []plan.Step
		want   string
	}{
		"hosts":           {[]string{"cp-1", "w\x1b[2J"}, nil, "cp-1 and w: not healthy yet"},
		"nothing is said": {nil, nil, "the cluster does not match the manifest yet"},
		"steps": {nil, []plan.Step{{Host: "10.0.0.1", Title: "one"}, {Title: "two"}, {Title: "three"}, {Title: "four"}},
			"the cluster does not match the manifest yet: cp-1 one, cluster two, cluster three and 1 more"},
	} {
		if got := Unsettled(c.coming, plan.Plan{Hosts: hosts, Steps: c.steps}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhatDoesNotRunFollowsDone(t *testing.T) {
	t.Parallel()
	if got := NotRunning(nil); got != "" {
		t.Errorf("all run: %q", got)
	}
	got := NotRunning([]decide.Absence{
		{Component: "kube-proxy", Nodes: []string{"w\x1b[2J"}}, {Component: "cluster DNS"},
	})
	if want := "Not running yet: kube-proxy on w and cluster DNS; see kubeone status."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/step"
)

func TestNeedsSayWhereSomethingIsInstalled(t *testing.T) {
	t.Parallel()
	var writes, installs, neither step.Kind
	for _, k := range step.Kinds() {
		switch {
		case k.Installs():
			installs = k
		case k.NeedsRelease():
			writes = k
		default:
			neither = k
		}
	}
	on := func(host string, k step.Kind) Step {
		return Step{Host: host, Intent: step.Intent{Kind: k, Arch: "amd64"}}
	}
	p := Plan{Steps: []Step{
		on("a", writes), on("b", neither), on("c", writes), on("d", installs), on("c", installs), on("d", writes),
	}}
	want := []Need{{"a", "amd64", false}, {"c", "amd64", true}, {"d", "amd64", true}}
	if diff := cmp.Diff(want, p.Needs()); diff != "" {
		t.Error(diff)
	}
}

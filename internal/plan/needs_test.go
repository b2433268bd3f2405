package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/plan/step"
)

func TestNeedsSayWhereSomethingIsInstalled(t *testing.T) {
	t.Parallel()
	var writes, finds, installs, neither step.Kind
	for _, k := range step.Kinds() {
		switch {
		case k.Installs():
			installs = k
		case k.NeedsRelease():
			writes = k
		case k.NamesRelease():
			finds = k
		default:
			neither = k
		}
	}
	on := func(host string, k step.Kind) Step {
		return Step{Host: host, Intent: step.Intent{Kind: k, Arch: "amd64"}}
	}
	p := Plan{Steps: []Step{
		on("a", writes), on("b", neither), on("c", writes), on("d", installs), on("c", installs), on("d", writes),
		on("e", finds), on("f", finds), on("f", installs),
	}}
	want := []Need{
		{Host: "a", Arch: "amd64"}, {Host: "c", Arch: "amd64", Installs: true},
		{Host: "d", Arch: "amd64", Installs: true},
		{Host: "e", Arch: "amd64", Found: true}, {Host: "f", Arch: "amd64", Installs: true},
	}
	if diff := cmp.Diff(want, p.Needs()); diff != "" {
		t.Error(diff)
	}
}

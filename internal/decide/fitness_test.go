package decide

import (
	"slices"
	"testing"

	"kubeone/internal/observed"
	"kubeone/internal/problem"
)

func TestAHostThatNobodyGuardsIsNamed(t *testing.T) {
	t.Parallel()
	in := healthy(3, 1)
	for _, h := range in.Want.Hosts() {
		in.change(h.ID, func(is *observed.Host) { is.Unguarded = []string{"nft"} })
	}
	var named []string
	for _, p := range Decide(in).Warnings {
		if p.Code == problem.GuardMissing {
			named = append(named, p.Host)
		}
	}
	if want := []string{"192.0.0.1", "192.0.0.2", "192.0.0.3"}; !slices.Equal(named, want) {
		t.Errorf("%v, want %v", named, want)
	}
}

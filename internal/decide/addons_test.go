package decide

import (
	"slices"
	"testing"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// An addon is removed only if the manifest says so; one that it does not mention stays.
func TestUndesiredAddonsAreRemoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budget        *bool
		noControllers bool
		want          []string
	}{
		"silent":         {want: nil},
		"wanted":         {budget: new(true)},
		"no budget":      {budget: new(false), want: []string{desired.DNSBudgetAddon}},
		"neither":        {new(false), true, []string{desired.ControllersAddon, desired.DNSBudgetAddon}},
		"no controllers": {noControllers: true, want: []string{desired.ControllersAddon}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := encryptedWorld(func(int) *observed.Encryption { return nil })
			in.Is.API.Addons[desired.DNSBudgetAddon], in.Is.API.Addons[desired.ControllersAddon] = "a", "b"
			in.Want.Network.DNS.Budget, in.Want.NoControllers = c.budget, c.noControllers
			d := Decide(in)
			if !slices.Equal(d.RemoveAddons, c.want) || (d.Route == fsm.Resources) != (len(c.want) > 0) {
				t.Errorf("%s: %v, want %v", d.Route, d.RemoveAddons, c.want)
			}
		})
	}
}

package decide

import (
	"slices"
	"testing"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
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

// The operator's own addons are removed when the manifest no longer has them, if it is known which ones it has.
func TestUndeclaredCustomAddonsAreRemoved(t *testing.T) {
	t.Parallel()
	held := map[string]observed.Inventory{
		"web": {}, "old": {}, "broken": {Problem: "it is an x"}, "flannel": {}, desired.ControllersAddon: {},
	}
	for name, c := range map[string]struct {
		change func(*Input)
		want   []string
	}{
		"known":          {func(in *Input) { in.KnowsAddons = true }, []string{"old"}},
		"unknown":        {func(*Input) {}, nil},
		"about one host": {func(in *Input) { in.KnowsAddons, in.About = true, map[string]bool{w1: true} }, nil},
		"record unreadable": {func(in *Input) {
			in.KnowsAddons = true
			in.Is.API.Record.Unreadable = map[string]string{observed.RecordAddons: "it is an x"}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := encryptedWorld(func(int) *observed.Encryption { return nil })
			in.Is.API.Inventories = held
			in.Addons["web"], in.Is.API.Addons["web"] = "d", "d"
			in.CustomAddons = []string{"web"}
			c.change(&in)
			d := Decide(in)
			if !slices.Equal(d.RemoveAddons, c.want) {
				t.Errorf("%s: %v, want %v", d.Route, d.RemoveAddons, c.want)
			}
			warned := slices.ContainsFunc(d.Warnings, func(p problem.Problem) bool {
				return p.String() == "InventoryUnreadable(addon=broken, problem=it is an x)"
			})
			if !warned {
				t.Errorf("no warning about the unreadable inventory: %v", d.Warnings)
			}
		})
	}
}

// Without an inventory, objects that leave a custom addon would never be deleted.
func TestACustomAddonWithoutInventoryIsAppliedAgain(t *testing.T) {
	t.Parallel()
	in := encryptedWorld(func(int) *observed.Encryption { return nil })
	in.Addons["web"], in.Is.API.Addons["web"] = "d", "d"
	in.CustomAddons = []string{"web"}
	if d := Decide(in); !slices.Equal(d.Addons, []string{"web"}) {
		t.Errorf("%s: %v", d.Route, d.Addons)
	}
	in.Is.API.Inventories = map[string]observed.Inventory{"web": {}}
	if d := Decide(in); len(d.Addons) > 0 {
		t.Errorf("%s: %v", d.Route, d.Addons)
	}
	left := observed.AddonObject{APIVersion: "v1", Kind: "Secret", Namespace: "web", Name: "left"}
	in.Is.API.Inventories = map[string]observed.Inventory{"web": {Objects: []observed.AddonObject{left}}}
	if d := Decide(in); !slices.Equal(d.Addons, []string{"web"}) {
		t.Errorf("an object of an interrupted apply is left: %s: %v", d.Route, d.Addons)
	}
	left.Foreign = true
	in.Is.API.Inventories = map[string]observed.Inventory{"web": {Objects: []observed.AddonObject{left}}}
	if d := Decide(in); len(d.Addons) > 0 {
		t.Errorf("%s: %v", d.Route, d.Addons)
	}
}

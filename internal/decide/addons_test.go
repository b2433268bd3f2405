package decide

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"
)

// An addon is removed only if the manifest says so; one that it does not mention stays.
func TestUndesiredAddonsAreRemoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budget        *bool
		noControllers bool
		noMetrics     bool
		want          []string
	}{
		"silent":    {want: nil},
		"wanted":    {budget: new(true)},
		"no budget": {budget: new(false), want: []string{desired.DNSBudgetAddon}},
		"neither": {budget: new(false), noControllers: true, want: []string{desired.ControllersAddon,
			desired.DNSBudgetAddon}},
		"no controllers": {noControllers: true, want: []string{desired.ControllersAddon}},
		"no metrics":     {noMetrics: true, want: []string{desired.MetricsServerAddon}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := encryptedWorld(func(int) *observed.Encryption { return nil })
			in.Is.API.Addons[desired.DNSBudgetAddon], in.Is.API.Addons[desired.ControllersAddon] = "a", "b"
			in.Is.API.Addons[desired.MetricsServerAddon] = "c"
			in.Want.Network.DNS.Budget, in.Want.NoControllers = c.budget, c.noControllers
			if c.noMetrics {
				in.Want.MetricsServer = new(false)
			}
			d := Decide(in)
			if !slices.Equal(d.RemoveAddons, c.want) || (d.Route == fsm.Resources) != (len(c.want) > 0) {
				t.Errorf("%s: %v, want %v", d.Route, d.RemoveAddons, c.want)
			}
		})
	}
}

// Whatever kubeone adds by default, only new clusters get it.
func TestDefaultAddonsAreForNewClusters(t *testing.T) {
	t.Parallel()
	bare := observed.Host{Reach: observed.Reached}
	joined := observed.Host{Reach: observed.Reached, Marker: &observed.Marker{Cluster: decidetest.Cluster, Complete: true}}
	silent := observed.Host{Reach: observed.Unreachable}
	api := func(r *observed.Record, addons ...string) observed.API {
		out := observed.API{Reached: observed.Yes, Record: r, Addons: map[string]string{}}
		for _, name := range addons {
			out.Addons[name] = "digest"
		}
		return out
	}
	complete := &observed.Record{Cluster: decidetest.Cluster, ManifestDigest: "m"}
	unreadable := &observed.Record{Cluster: decidetest.Cluster,
		Unreadable: map[string]string{observed.RecordAddons: "it is an x"}}
	const name = desired.MetricsServerAddon
	for title, c := range map[string]struct {
		manifest *bool
		replaced bool
		api      observed.API
		host     observed.Host
		want     *bool
	}{
		"bare hosts":                    {nil, false, observed.API{}, bare, new(true)},
		"a host that does not answer":   {nil, false, observed.API{}, silent, nil},
		"an API that does not answer":   {nil, false, observed.API{}, joined, nil},
		"an installation without addon": {nil, false, api(nil), joined, new(true)},
		"an interrupted installation": {nil, false, api(&observed.Record{Cluster: decidetest.Cluster}, "flannel"), joined,
			new(true)},
		"an existing cluster":        {nil, false, api(complete, "flannel"), joined, nil},
		"a cluster that has it":      {nil, false, api(complete, "flannel", name), joined, new(true)},
		"an unreadable record":       {nil, false, api(unreadable), joined, nil},
		"on, existing cluster":       {new(true), false, api(complete), joined, new(true)},
		"off, bare hosts":            {new(false), false, observed.API{}, bare, new(false)},
		"off, a cluster that has it": {new(false), false, api(complete, name), joined, new(false)},
		"replaced by the operator":   {nil, true, observed.API{}, bare, nil},
	} {
		want := desired.Cluster{Name: decidetest.Cluster, MetricsServer: c.manifest, ControlPlane: []desired.Host{{ID: "a"}}}
		if c.replaced {
			want.ReplacedAddons = []string{name}
		}
		got := DefaultAddons(want, observed.World{API: c.api, Hosts: map[string]observed.Host{"a": c.host}}, true)
		if (got.MetricsServer == nil) != (c.want == nil) || c.want != nil && *got.MetricsServer != *c.want {
			t.Errorf("%s: %v", title, got.MetricsServer)
		}
		if applied := c.want != nil && *c.want; !c.replaced && got.LacksDefaultAddon(name) == applied {
			t.Errorf("%s: the addon is to be applied: %t", title, !applied)
		}
	}
}

// Hosts get the images of addons and workloads before pods need them; images that are no longer desired may stay.
func TestHostsGetImagesOfAddons(t *testing.T) {
	t.Parallel()
	for _, note := range []string{desired.AddonImagesDigest, desired.WorkloadImagesDigest} {
		checkImagesOfHosts(t, note)
	}
}

func checkImagesOfHosts(t *testing.T, note string) {
	t.Helper()
	for title, c := range map[string]struct {
		want, has string
		drifts    bool
	}{
		"none": {"", "", false}, "missing": {"a", "", true}, "others": {"a", "b", true}, "the same": {"a", "a", false},
		"no longer desired": {"", "a", false},
	} {
		in := encryptedWorld(func(int) *observed.Encryption { return nil })
		in.Config = map[string]map[string]string{}
		for _, h := range in.Want.Hosts() {
			in.Config[h.ID] = map[string]string{}
			is := in.Is.Hosts[h.ID]
			is.Digests = maps.Clone(is.Digests)
			if is.Digests == nil {
				is.Digests = map[string]string{}
			}
			if c.want != "" {
				in.Config[h.ID][note] = c.want
			}
			if c.has != "" {
				is.Digests[note] = c.has
			}
			in.Is.Hosts[h.ID] = is
		}
		d := Decide(in)
		for _, h := range in.Want.Hosts() {
			if slices.Contains(d.Drift[h.ID], note) != c.drifts {
				t.Errorf("%s %s: %s: %s drifts in %v", note, title, d.Route, h.ID, d.Drift[h.ID])
			}
		}
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

// Whatever inventories say, nothing is deleted that is desired, foreign, or holds what others may own.
func TestOnlyOwnLeftObjectsAreDeleted(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	kinds := []string{"Secret", "Namespace", "Deployment", "CustomResourceDefinition"}
	pick := func() observed.AddonObject {
		return observed.AddonObject{
			APIVersion: []string{"v1", "apps/v1", "apps/v1beta1"}[r.IntN(3)], Kind: kinds[r.IntN(len(kinds))],
			Namespace: "web", Name: string(rune('a' + r.IntN(4))), Foreign: r.IntN(4) == 0,
		}
	}
	names := []string{"flannel", "web", "old", "other"}
	deletions := 0
	for range 20_000 {
		in := Input{Addons: map[string]string{}, AddonObjects: map[string][]observed.AddonObject{}}
		api := observed.API{Addons: map[string]string{}, Inventories: map[string]observed.Inventory{}}
		wanted := map[string]bool{}
		for _, name := range names {
			for range r.IntN(4) {
				o := pick()
				o.Foreign = false
				in.AddonObjects[name] = append(in.AddonObjects[name], o)
			}
			if r.IntN(2) == 0 {
				in.Addons[name] = "d"
				for _, o := range in.AddonObjects[name] {
					wanted[o.Key()] = true
				}
			}
			if r.IntN(3) > 0 {
				held := observed.Inventory{}
				for range r.IntN(5) {
					held.Objects = append(held.Objects, pick())
				}
				api.Inventories[name], api.Addons[name] = held, "d"
			}
			if r.IntN(4) == 0 {
				in.DeletedAddons = append(in.DeletedAddons, name)
			}
		}
		for _, name := range names {
			deleted, kept := LeftObjects(in, api, name)
			deletions += len(deleted)
			for _, o := range append(slices.Clone(deleted), kept...) {
				if wanted[o.Key()] || o.Foreign || !slices.Contains(api.Inventories[name].Objects, o) {
					t.Fatalf("addon %s: %+v is left in %+v, with %+v", name, o, api, in)
				}
			}
			for _, o := range deleted {
				if o.HoldsOthers() && !slices.Contains(in.DeletedAddons, name) {
					t.Fatalf("addon %s: %+v is deleted", name, o)
				}
			}
		}
	}
	if deletions < 1000 {
		t.Errorf("only %d deletions", deletions)
	}
}

// Nothing is left of an addon whose objects are unknown, because its published manifest is not available.
func TestNothingIsLeftOfAnUnknownAddon(t *testing.T) {
	t.Parallel()
	held := observed.AddonObject{APIVersion: "v1", Kind: "ConfigMap", Namespace: "kube-system", Name: "canal-config"}
	api := observed.API{Inventories: map[string]observed.Inventory{"canal": {Objects: []observed.AddonObject{held}}}}
	in := Input{Addons: map[string]string{"canal": "digest"}, AddonObjects: map[string][]observed.AddonObject{}}
	if deleted, kept := LeftObjects(in, api, "canal"); len(deleted)+len(kept) > 0 {
		t.Errorf("unknown objects: %v, %v", deleted, kept)
	}
	in.AddonObjects["canal"] = nil
	if deleted, _ := LeftObjects(in, api, "canal"); len(deleted) != 1 {
		t.Errorf("no objects: %v", deleted)
	}
}

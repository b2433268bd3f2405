package decide

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

func TestHelmReleases(t *testing.T) {
	t.Parallel()
	current := observed.HelmRelease{
		Status: observed.ReleaseDeployed, Managed: true, Source: "chart", Values: "values", Version: "1.0.0",
	}
	changed := func(change func(*observed.HelmRelease)) map[string]observed.HelmRelease {
		is := current
		change(&is)
		return map[string]observed.HelmRelease{"web/web": is}
	}
	for name, c := range map[string]struct {
		is      map[string]observed.HelmRelease
		differs bool
		apply   bool
		remove  []string
	}{
		"not in the cluster":    {is: nil, apply: true},
		"current":               {is: changed(func(*observed.HelmRelease) {})},
		"another chart":         {is: changed(func(r *observed.HelmRelease) { r.Source = "old" }), apply: true},
		"other values":          {is: changed(func(r *observed.HelmRelease) { r.Values = "old" }), apply: true},
		"failed":                {is: changed(func(r *observed.HelmRelease) { r.Status = "failed" }), apply: true},
		"interrupted":           {is: changed(func(r *observed.HelmRelease) { r.Status = "pending-upgrade" }), apply: true},
		"of another program":    {is: changed(func(r *observed.HelmRelease) { r.Managed = false }), apply: true},
		"with an edited object": {is: changed(func(*observed.HelmRelease) {}), differs: true, apply: true},
		"unreadable":            {is: changed(func(r *observed.HelmRelease) { r.Values, r.Problem = "", "it is an x" })},
		"with one that left": {is: map[string]observed.HelmRelease{"web/web": current, "a/old": {Managed: true}},
			remove: []string{"a/old"}},
		"with one of others": {is: map[string]observed.HelmRelease{"web/web": current, "a/theirs": {}}},
		"uninstalled half of one": {is: map[string]observed.HelmRelease{
			"web/web": current, "b/old": {Managed: true, Status: "uninstalling"},
		}, remove: []string{"b/old"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := encryptedWorld(func(int) *observed.Encryption { return nil })
			in.KnowsAddons = true
			in.HelmReleases = []desired.HelmRelease{{Namespace: "web", Name: "web", Source: "chart", Values: "values"}}
			in.Is.API.HelmReleases = c.is
			if c.differs {
				in.Is.API.Compared = map[string]observed.Comparison{
					"web/web": {Differences: []observed.Difference{{Object: "ConfigMap web/a", Missing: true}}},
				}
			}
			d := Decide(in)
			var want []string
			if c.apply {
				want = []string{"web/web"}
			}
			if diff := cmp.Diff(want, d.HelmReleases) + cmp.Diff(c.remove, d.RemoveReleases); diff != "" {
				t.Error(diff)
			}
			if changes := c.apply || c.remove != nil; changes != (d.Route == fsm.Resources) {
				t.Errorf("route %s", d.Route)
			}
			warned := slices.ContainsFunc(d.Warnings,
				func(p problem.Problem) bool { return p.Code == problem.ReleaseUnreadable })
			if warned != (name == "unreadable") {
				t.Errorf("warnings %v", d.Warnings)
			}
			in.KnowsAddons, in.HelmReleases = false, nil
			if d := Decide(in); len(d.HelmReleases)+len(d.RemoveReleases) > 0 {
				t.Errorf("without knowing the manifest's: %v, %v", d.HelmReleases, d.RemoveReleases)
			}
		})
	}
}

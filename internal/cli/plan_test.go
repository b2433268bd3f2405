package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"kubeone/internal/engine"
	"kubeone/internal/plan"
	"kubeone/internal/view"
)

// A host that the manifest gives no hostname may have named itself.
func TestScriptsAreWrittenIntoTheirFolderOnly(t *testing.T) {
	t.Parallel()
	for name, saves := range map[string]bool{
		"w-1": true, "$(touch owned)": true,
		"../owned": false, "../../owned": false, "a/b": false, "/owned": false,
	} {
		home := t.TempDir()
		dir := filepath.Join(home, "work", "scripts")
		if err := os.MkdirAll(filepath.Join(dir, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
		err := save(engine.Proposal{
			Plan:    plan.Plan{Hosts: map[string]string{"id-1": name}},
			Scripts: map[string]string{"id-1": "true\n"},
		}, "", dir)
		var class *classError
		if saves != (err == nil) || err != nil && (!errors.As(err, &class) || class.status != exitConfig) {
			t.Errorf("%q: %v", name, err)
		}
		want := 0
		if saves {
			want = 1
		}
		if got, err := filepath.Glob(filepath.Join(dir, "*.sh")); err != nil || len(got) != want {
			t.Errorf("%q: %v in its folder (%v), want %d", name, got, err, want)
		}
		for _, elsewhere := range []string{"*.sh", "work/*.sh", "work/scripts/*/*.sh"} {
			if got, err := filepath.Glob(filepath.Join(home, elsewhere)); err != nil || len(got) > 0 {
				t.Errorf("%q: %v (%v)", name, got, err)
			}
		}
	}
}

// What is not carried out is not counted where that is allowed; what is otherwise than it was applied always is.
func TestExceptionsThatAreAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plan    plan.Plan
		allowed bool
		want    int
	}{
		{plan.Plan{}, false, 0},
		{plan.Plan{NotCarriedOut: []string{"features.foo"}}, false, view.ExitExcept},
		{plan.Plan{NotCarriedOut: []string{"features.foo"}}, true, 0},
		{plan.Plan{NotCarriedOut: []string{"features.foo"}, Unlike: []string{"a file"}}, true, view.ExitExcept},
		{plan.Plan{Unlike: []string{"a file"}}, true, view.ExitExcept},
	} {
		f := clusterFlags{}
		f.allowUnsupported = c.allowed
		got := 0
		var status *statusError
		if err := f.planStatus(engine.Proposal{Plan: c.plan}); errors.As(err, &status) {
			got = status.status
		}
		if got != c.want {
			t.Errorf("%+v: exit status %d, want %d", c, got, c.want)
		}
	}
}

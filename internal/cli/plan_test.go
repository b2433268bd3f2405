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

// A host without a hostname in the manifest may have named itself.
func TestScriptsAreWrittenIntoTheirFolderOnly(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"w-1": "w-1.sh", "$(touch owned)": "id-1.sh", "..": "id-1.sh", "../owned": "id-1.sh", "../../owned": "id-1.sh",
		"a/b": "id-1.sh", "/owned": "id-1.sh", "w-2": "id-1.sh",
	} {
		home := t.TempDir()
		dir := filepath.Join(home, "work", "scripts")
		if err := os.MkdirAll(filepath.Join(dir, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
		names := map[string]string{"id-1": name, "id-2": "w-2"}
		err := savePlan(engine.Proposal{
			Plan:    plan.Plan{Hosts: names, Nodes: names},
			Scripts: map[string]string{"id-1": "first\n", "id-2": "second\n"},
		}, "", dir)
		if err != nil {
			t.Errorf("%q: %v", name, err)
		}
		other := "w-2.sh"
		if name == "w-2" {
			other = "id-2.sh"
		}
		for at, want := range map[string]string{file: "first\n", other: "second\n"} {
			if got, err := os.ReadFile(filepath.Join(dir, at)); err != nil || string(got) != want {
				t.Errorf("%q: %s has %q, %v", name, at, got, err)
			}
		}
		if got, err := filepath.Glob(filepath.Join(dir, "*.sh")); err != nil || len(got) != 2 {
			t.Errorf("%q: %v in its folder (%v)", name, got, err)
		}
		for _, elsewhere := range []string{"*.sh", "work/*.sh", "work/scripts/*/*.sh"} {
			if got, err := filepath.Glob(filepath.Join(home, elsewhere)); err != nil || len(got) > 0 {
				t.Errorf("%q: %v (%v)", name, got, err)
			}
		}
	}
}

// --allow-unsupported ignores unsupported fields, but not other differences.
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

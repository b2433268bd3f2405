package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/plan"
)

// A host's own name leads to no other host's file, and nowhere else.
func TestFileNamesAreSafeAndUnique(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a.", 120) + "a"
	for _, c := range []struct{ named, want map[string]string }{
		{map[string]string{"192.0.2.1": "cp-1", "192.0.2.2": "w-1"}, map[string]string{"192.0.2.1": "cp-1", "192.0.2.2": "w-1"}},
		{map[string]string{"192.0.2.1": "w-1", "192.0.2.2": "w-1", "192.0.2.3": "w-2"},
			map[string]string{"192.0.2.1": "192.0.2.1", "192.0.2.2": "192.0.2.2", "192.0.2.3": "w-2"}},
		{map[string]string{"192.0.2.1": "..", "192.0.2.2": "a/b", "192.0.2.3": "$(touch owned)", "192.0.2.4": "W_1", "192.0.2.5": long},
			map[string]string{"192.0.2.1": "192.0.2.1", "192.0.2.2": "192.0.2.2", "192.0.2.3": "192.0.2.3", "192.0.2.4": "192.0.2.4",
				"192.0.2.5": "192.0.2.5"}},
		// One calls itself as another is called by its ID.
		{map[string]string{"192.0.2.1": "192.0.2.2", "192.0.2.2": "192.0.2.2"},
			map[string]string{"192.0.2.1": "192.0.2.1", "192.0.2.2": "192.0.2.2"}},
		{map[string]string{"192.0.2.1": "192.0.2.2", "192.0.2.2": "w-1"},
			map[string]string{"192.0.2.1": "192.0.2.1", "192.0.2.2": "w-1"}},
		{map[string]string{"192.0.2.1": "fd00--2", "fd00::2": "fd00::2"},
			map[string]string{"192.0.2.1": "192.0.2.1", "fd00::2": "fd00--2"}},
		// IDs are the manifest's, or addresses, and need not be names of files.
		{map[string]string{"..": "..", "/": "/", "a/b": "a/b", "a:b": "a:b"},
			map[string]string{"..": "host", "/": "host-2", "a/b": "a-b", "a:b": "a-b-2"}},
	} {
		got := Proposal{Plan: plan.Plan{Hosts: c.named}}.FileNames()
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v: %s", c.named, diff)
		}
	}
}

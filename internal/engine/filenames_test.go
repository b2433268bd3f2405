package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/plan"
)

// A host's own name never leads to another host's file or anywhere else.
func TestFileNamesAreSafeAndUnique(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a.", 120) + "a"
	for _, c := range []struct{ named, want map[string]string }{
		{map[string]string{"a1": "cp-1", "a2": "w-1"}, map[string]string{"a1": "cp-1", "a2": "w-1"}},
		{map[string]string{"a1": "w-1", "a2": "w-1", "a3": "w-2"},
			map[string]string{"a1": "a1", "a2": "a2", "a3": "w-2"}},
		{map[string]string{"a1": "..", "a2": "a/b", "a3": "$(touch owned)"},
			map[string]string{"a1": "a1", "a2": "a2", "a3": "a3"}},
		{map[string]string{"a1": "W_1", "a2": long}, map[string]string{"a1": "a1", "a2": "a2"}},
		// One claims another host's ID as its name.
		{map[string]string{"a1": "a2", "a2": "a2"}, map[string]string{"a1": "a1", "a2": "a2"}},
		{map[string]string{"a1": "a2", "a2": "w-1"}, map[string]string{"a1": "a1", "a2": "w-1"}},
		{map[string]string{"a1": "fd00--2", "fd00::2": "fd00::2"}, map[string]string{"a1": "a1", "fd00::2": "fd00--2"}},
		// IDs come from the manifest, or are addresses, and need not be file names.
		{map[string]string{"..": "..", "/": "/", "a/b": "a/b", "a:b": "a:b"},
			map[string]string{"..": "host", "/": "host-2", "a/b": "a-b", "a:b": "a-b-2"}},
	} {
		got := Proposal{Plan: plan.Plan{Hosts: c.named, Nodes: c.named}}.FileNames()
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v: %s", c.named, diff)
		}
	}
}

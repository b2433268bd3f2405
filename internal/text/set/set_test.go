package set_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/text/set"
)

func TestUnionHasEachStringOnceInOrder(t *testing.T) {
	t.Parallel()
	got := set.Union([]string{"b", "a", "b"}, nil, []string{"c", "a"})
	if diff := cmp.Diff([]string{"b", "a", "c"}, got); diff != "" {
		t.Error(diff)
	}
	if got := set.Union(nil, []string{}); got != nil {
		t.Errorf("a union of nothing is %#v", got)
	}
}

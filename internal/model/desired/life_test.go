package desired_test

import (
	"testing"

	"kubeone/internal/model/desired"
)

func TestShareIsRoundedDownAndOneAtLeast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ count, percent, total, want int }{
		{1, 0, 10, 1}, {3, 0, 10, 3}, {3, 0, 2, 3}, {1, 0, 0, 1}, {0, 0, 5, 1},
		{0, 25, 10, 2}, {0, 25, 3, 1}, {0, 1, 20, 1}, {0, 100, 7, 7}, {0, 99, 7, 6}, {0, 50, 0, 1},
	} {
		if got := (desired.Share{Count: c.count, Percent: c.percent}).Of(c.total); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestAtOnceIsTheSmallerLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ unavailable, parallel, want int }{{3, 0, 3}, {3, 2, 2}, {2, 5, 2}, {0, 0, 1}} {
		u := desired.Upgrade{MaxUnavailable: desired.Share{Count: c.unavailable}, MaxParallel: c.parallel}
		if got := u.AtOnce(10); got != c.want {
			t.Errorf("%+v: %d at once", c, got)
		}
	}
}

package desired_test

import (
	"testing"

	"kubeone/internal/desired"
)

func TestShareIsRoundedDownAndOneAtLeast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		total int
		want  int
	}{
		{"1", 10, 1}, {"3", 10, 3}, {"3", 2, 3}, {"1", 0, 1},
		{"25%", 10, 2}, {"25%", 3, 1}, {"1%", 20, 1}, {"100%", 7, 7}, {"99%", 7, 6}, {"50%", 0, 1},
	} {
		share, err := desired.ParseShare(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := share.Of(c.total); got != c.want {
			t.Errorf("%s of %d is %d, want %d", c.text, c.total, got, c.want)
		}
		if share.String() != c.text {
			t.Errorf("%s is written %s", c.text, share)
		}
	}
	for _, text := range []string{"", "0", "-1", "0%", "101%", "%", "a", "1.5", "10 %"} {
		if share, err := desired.ParseShare(text); err == nil {
			t.Errorf("%q is %+v", text, share)
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

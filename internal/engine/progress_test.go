package engine

import (
	"testing"

	"kubeone/internal/plan"
)

func TestAHostSaysHowFarItsMemberHadGot(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]plan.Progress{
		"metric 1.000000005e+09\n":       {Revision: 1000000005},
		"metric 4711\n":                  {Revision: 4711},
		"disk 4711\n":                    {Revision: 4711, AtLeast: true},
		"disk 4711\nmetric 4712\n":       {Revision: 4712},
		"metric NaN\ndisk 5\n":           {Revision: 5, AtLeast: true},
		"metric -1\n":                    {},
		"disk 99999999999999999999999\n": {},
		"revision 7\n":                   {},
		"":                               {},
	} {
		if got, ok := progressIn(said); got != want || ok != (want != plan.Progress{}) {
			t.Errorf("%q: %+v, %t, want %+v", said, got, ok, want)
		}
	}
}

package probe

import "testing"

func TestWhetherAHostCanBeWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		l    lines
		want string
	}{
		"nothing is known": {lines{}, ""},
		"it can":           {lines{"filesystem": {"1000000 4096 1000 2000"}}, ""},
		"read-only": {lines{"unwritable": {"yes"}, "filesystem": {"1000000 4096 1000 2000"}},
			"its file system is read-only"},
		"full":                    {lines{"filesystem": {"0 4096 1000 2000"}}, "its disk is full"},
		"almost full":             {lines{"filesystem": {"15 4096 1000 2000"}}, "its disk is full"},
		"small, and not full":     {lines{"filesystem": {"16 4096 1000 2000"}}, ""},
		"no inodes left":          {lines{"filesystem": {"1000000 4096 0 2000"}}, "its disk has no inodes left"},
		"inodes without a limit":  {lines{"filesystem": {"1000000 4096 0 0"}}, ""},
		"an answer of other form": {lines{"filesystem": {"stat: invalid option"}}, ""},
	} {
		if got := parseUnwritable(c.l); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

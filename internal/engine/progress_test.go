package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/observed"
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
		if got, ok := progressIn(said); got.Revision != want.Revision || got.AtLeast != want.AtLeast ||
			got.Members != nil || ok != (want.Revision > 0) {
			t.Errorf("%q: %+v, %t, want %+v", said, got, ok, want)
		}
	}
}

// A database may have several entries of one member, and entries of removed ones.
func TestAHostSaysWhichMembersItsDatabaseHas(t *testing.T) {
	t.Parallel()
	const one, two = `member a1{"id":161,"peerURLs":["https://192.0.2.1:2380"],"name":"cp-1"}` + "\n",
		`member b2{"id":178,"peerURLs":["https://192.0.2.2:2380"],"isLearner":true}` + "\n"
	cp1 := observed.Member{ID: "a1", Name: "cp-1", PeerURLs: []string{"https://192.0.2.1:2380"}}
	cp2 := observed.Member{ID: "b2", PeerURLs: []string{"https://192.0.2.2:2380"}, Learner: true}
	voter := cp2
	voter.Name, voter.Learner = "cp-2", false
	for said, want := range map[string][]observed.Member{
		one + two + "disk 5\n": {cp1, cp2},
		one + two + `member b2{"id":178,"peerURLs":["https://192.0.2.2:2380"],"name":"cp-2"}`: {cp1, voter},
		one + two + "removed b2removed\n":                                 {cp1},
		"removed a1removed\n" + one:                                       nil,
		one + `member c3{"id":178,"peerURLs":["https://192.0.2.2:2380"]}`: {cp1},
		one + `member b2{"id":178,"peerURLs":["https://x\u001b[2J"]}`:     {cp1},
		one + `member b2{"id":178,"peerURLs":[],"name":"a b"}`:            {cp1},
		one + "member \nmember b2\nmember {}\nmember b2{\n":               {cp1},
	} {
		got, _ := progressIn(said)
		if diff := cmp.Diff(want, got.Members); diff != "" {
			t.Errorf("%q (-want +got):\n%s", said, diff)
		}
	}
}

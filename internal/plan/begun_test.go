package plan

import (
	"slices"
	"testing"

	"kubeone/internal/model/observed"
)

// etcd takes one learner at a time: no other member can be added before this one is finished.
func TestAJoinThatHasReachedEtcdIsFinishedBeforeOthersReachIt(t *testing.T) {
	t.Parallel()
	in := healthyCluster(4, 0, "cp-2", "cp-3", "cp-4")
	replaceHost(in, "cp-3", begunHost)
	h, _ := in.Want.Host("cp-3")
	in.Is.Etcd.Members = append(in.Is.Etcd.Members, observed.Member{
		ID: "new", PeerURLs: []string{"https://" + h.PrivateAddress + ":2380"}, Learner: true, Healthy: observed.No,
	})
	p, _ := Build(Input{Decide: in})
	for _, name := range []string{"cp-2", "cp-4"} {
		s, ok := p.Step("join-etcd/" + name)
		if !ok || !slices.Contains(s.Needs, "join-etcd/cp-3") {
			t.Errorf("%s does not wait for the learner of cp-3: %v", name, s.Needs)
		}
	}
	if s, ok := p.Step("join-etcd/cp-3"); !ok ||
		slices.ContainsFunc(s.Needs, func(id string) bool { return id != "join-prepare/cp-3" }) {
		t.Errorf("cp-3 waits for %v", s.Needs)
	}
}

package decide

import (
	"slices"
	"testing"

	"kubeone/internal/decide/identity"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/decidetest"

	"github.com/google/go-cmp/cmp"
)

// Waiting for members makes sense only if those that answer can elect a leader.
func TestWhoMayComeUpByItself(t *testing.T) {
	t.Parallel()
	leaderlessHost := func(h *observed.Host) { h.EtcdHealth, h.APIServer = observed.No, observed.No }
	without := func(in *Input) {
		in.Is.API, in.Is.Etcd = observed.API{Reached: observed.No}, observed.Etcd{Reached: observed.No}
	}
	for name, c := range map[string]struct {
		change func(*Input)
		want   []string
	}{
		"all are well":          {func(*Input) {}, nil},
		"a worker is not Ready": {func(in *Input) { in.nodeNamed("w-2").Ready = observed.No }, []string{w2}},
		"a worker is not Ready, because it has another name now": {func(in *Input) {
			in.nodeNamed("w-2").Ready = observed.No
			in.Contradictions = []identity.Contradiction{{Kind: identity.OtherHostname, Host: w2, Says: "w-2"}}
		}, nil},
		"outside the limit": {func(in *Input) {
			in.nodeNamed("w-2").Ready = observed.No
			in.Limit = map[string]bool{w1: true}
		}, []string{w2}},
		"the whole control plane begins": {func(in *Input) {
			without(in)
			for _, id := range []string{cp1, cp2, cp3} {
				in.changeObserved(id, leaderlessHost)
			}
		}, []string{cp1, cp2, cp3, w1, w2}},
		"one of three does not answer, and the others begin": {func(in *Input) {
			without(in)
			in.loseHosts(cp3)
			in.changeObserved(cp1, leaderlessHost)
			in.changeObserved(cp2, leaderlessHost)
		}, []string{cp1, cp2, w1, w2}},
		"two of three do not answer": {func(in *Input) {
			without(in)
			in.loseHosts(cp2, cp3)
			in.changeObserved(cp1, leaderlessHost)
		}, nil},
		"two of three do not answer, by etcd's list": {func(in *Input) {
			in.loseHosts(cp2, cp3)
			in.killMembers("cp-1")
			in.changeObserved(cp1, leaderlessHost)
		}, nil},
		"two of three are empty machines": {func(in *Input) {
			in.loseHosts(cp2, cp3)
			in.killMembers("cp-1")
			in.changeObserved(cp1, leaderlessHost)
			for _, h := range in.Want.ControlPlane[1:] {
				in.Is.Hosts[h.ID] = decidetest.Bare(h)
			}
		}, nil},
		"one of three does not answer, and one lost its data": {func(in *Input) {
			in.loseEtcdData(cp2, "cp-2")
			in.loseHosts(cp3)
			in.changeObserved(cp1, leaderlessHost)
			in.killMembers("cp-1")
		}, nil},
		"one joins, and its member serves": {func(in *Input) {
			in.changeObserved(cp3, func(h *observed.Host) { h.Marker.Complete = false })
		}, nil},
		"one joins, and its member votes, but does not serve yet": {func(in *Input) {
			in.changeObserved(cp3, func(h *observed.Host) { h.Marker.Complete = false })
			in.killMembers("cp-3")
		}, []string{cp3}},
		"one of two joins, and its member votes, but does not serve yet": {func(in *Input) {
			in.changeObserved(cp3, func(h *observed.Host) { h.Marker.Complete = false })
			in.killMembers("cp-3")
			in.loseEtcdData(cp2, "cp-2")
			in.changeObserved(cp2, func(h *observed.Host) { *h = decidetest.Bare(in.Want.ControlPlane[1]) })
			in.Is.Etcd.Members = slices.DeleteFunc(in.Is.Etcd.Members, func(m observed.Member) bool {
				return m.Name == "cp-2"
			})
		}, []string{cp3}},
		"a kubelet runs, and does not answer": {func(in *Input) {
			in.changeObserved(w1, func(h *observed.Host) { h.Healthz = observed.No })
		}, []string{w1}},
		"a container runtime is being started": {func(in *Input) {
			in.changeObserved(w1, func(h *observed.Host) {
				h.Containerd = observed.Unit{Installed: true, State: "activating/auto-restart"}
			})
		}, []string{w1}},
		"a kubelet has failed, and does not answer": {func(in *Input) {
			in.changeObserved(w1, func(h *observed.Host) {
				h.Healthz, h.Kubelet = observed.No, observed.Unit{Installed: true, State: "failed/failed"}
			})
		}, nil},
	} {
		in := healthyCluster(3, 2)
		c.change(&in)
		if diff := cmp.Diff(c.want, Decide(in).ComingUp); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

package decide

import (
	"strings"
	"testing"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"

	"github.com/google/go-cmp/cmp"
)

// fenceHosts puts hosts in the state that a recovery's fence leaves.
func (in *Input) fenceHosts(ids ...string) {
	for _, id := range ids {
		in.emptyHosts(id)
		in.changeObserved(id, func(h *observed.Host) {
			h.Marker = &observed.Marker{Cluster: decidetest.Cluster, Role: "control-plane", Fenced: "run-1"}
		})
	}
}

// markRecovered makes the cluster one that was recovered once, on cp-1, which knows no other member.
func (in *Input) markRecovered() {
	in.changeObserved(in.Want.ControlPlane[0].ID, func(h *observed.Host) { h.Marker.Epoch = 1 })
	in.Is.Etcd.Members = in.Is.Etcd.Members[:1]
}

func TestARecoveryThatHasNotEnded(t *testing.T) {
	t.Parallel()
	const cp1, cp2, cp3 = "192.0.0.1", "192.0.0.2", "192.0.0.3"
	for name, c := range map[string]struct {
		how  func(*Input)
		want fsm.Route
		lost bool
	}{
		"all fenced, no worker": {func(in *Input) { in.fenceHosts(cp1, cp2, cp3) }, fsm.DisasterRecovery, true},
		"the others fenced, the target empty": {func(in *Input) {
			in.fenceHosts(cp2, cp3)
			in.emptyHosts(cp1)
		}, fsm.DisasterRecovery, true},
		"the others fenced, the target begun": {func(in *Input) {
			in.fenceHosts(cp2, cp3)
			in.changeObserved(cp1, func(h *observed.Host) {
				h.Marker.Complete, h.Marker.Fenced, h.Marker.Restoring = false, "run-1", true
			})
		}, fsm.DisasterRecovery, true},
		"the others fenced, the target finished": {func(in *Input) {
			in.fenceHosts(cp2, cp3)
			in.markRecovered()
		}, fsm.Join, false},
		"one of the life before is back": {func(in *Input) {
			in.markRecovered()
			in.emptyHosts(cp3)
			in.changeObserved(cp2, func(h *observed.Host) { h.EtcdHealth, h.APIServer = observed.No, observed.No })
		}, fsm.Repair, false},
		"one of the life before is back, stopped": {func(in *Input) {
			in.markRecovered()
			in.emptyHosts(cp3)
			in.changeObserved(cp2, func(h *observed.Host) { h.Kubelet.Active = false })
		}, fsm.Repair, false},
	} {
		in := healthyCluster(3, 0)
		c.how(&in)
		if strings.Contains(name, "target") && c.lost || strings.HasPrefix(name, "all") {
			in.Is.API, in.Is.Etcd = observed.API{}, observed.Etcd{}
		}
		d := Decide(in)
		if d.Route != c.want {
			t.Errorf("%s: route %s, want %s; %v", name, d.Route, c.want, d.Trace)
		}
		if got := AssessRecovery(in); got.Lost != c.lost {
			t.Errorf("%s: lost %t, want %t: %s", name, got.Lost, c.lost, got.Why)
		}
		if len(d.Restarts) > 0 {
			t.Errorf("%s: units are started on %v", name, d.Restarts)
		}
	}
}

// A member of an earlier epoch is never counted, and never started.
func TestMembersOfTheLifeBeforeAreSetAside(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	in.markRecovered()
	d := Decide(in) // both others answer, and even have a quorum of their own
	if len(d.Quarantines) != 2 || d.Hosts["192.0.0.2"].Condition != condition.Rejoinable {
		t.Errorf("quarantines %v, cp-2 is %s", d.Quarantines, d.Hosts["192.0.0.2"].Condition)
	}
	in.Is.API, in.Is.Etcd = observed.API{Reached: observed.No}, observed.Etcd{Reached: observed.No}
	if got := newView(in).etcd.tally.Voters; got != 1 {
		t.Errorf("%d voters are supposed, want 1", got)
	}
}

// Voters are counted by the etcd member list if it is known, including those on no host in the manifest.
func TestARecoveryCountsTheVotersThatTheManifestDoesNotHave(t *testing.T) {
	t.Parallel()
	expired := func(in *Input, id string) {
		in.changeObserved(id, func(h *observed.Host) {
			h.EtcdHealth, h.APIServer = observed.No, observed.No
			h.Certificates = []observed.Certificate{{Name: "etcd/peer", Expired: true}}
		})
	}
	for name, c := range map[string]struct {
		how          func(*Input)
		lost, listed bool
		apply        fsm.Route
	}{
		"one of two is gone, and the certificates of the other have run out": {func(in *Input) {
			expired(in, "192.0.0.1")
			in.killMembers("cp-1")
		}, true, true, fsm.DisasterRecovery},
		"they are renewed, and etcd waits for the one that is gone": {func(in *Input) {
			in.changeObserved("192.0.0.1", func(h *observed.Host) {
				h.EtcdHealth, h.APIServer = observed.No,
					observed.No
			})
			in.killMembers("cp-1")
		}, true, true, fsm.DisasterRecovery},
		"etcd does not answer, and its list is not known": {func(in *Input) {
			expired(in, "192.0.0.1")
			in.Is.Etcd = observed.Etcd{Reached: observed.No}
		}, false, false, fsm.Repair},
		"the other one lives": {func(in *Input) {
			expired(in, "192.0.0.1")
			in.killMembers("cp-1")
			in.Is.Etcd.Members[1].Healthy = observed.Yes
		}, false, true, fsm.Repair},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthyCluster(2, 0)
			in.killMembers("cp-2")
			in.Want.ControlPlane, in.Is.API = in.Want.ControlPlane[:1], observed.API{Reached: observed.No}
			delete(in.Is.Hosts, "192.0.0.2")
			c.how(&in)
			got := AssessRecovery(in)
			if d := Decide(in); got.Lost != c.lost || got.Listed != c.listed || d.Route != c.apply {
				t.Errorf("lost %t, listed %t, route %s: %s", got.Lost, got.Listed, d.Route, got.Why)
			}
		})
	}
}

// A ready API server at the endpoint means that a cluster exists: no other is created.
func TestAClusterThatOthersServeIsNoDisaster(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		how   func(*Input)
		want  fsm.Route
		steps int
	}{
		"all hosts are empty": {func(in *Input) { in.emptyHosts("192.0.0.1", "192.0.0.2", "192.0.0.3") },
			fsm.DisasterRecovery, 1},
		"one has lost its data, and the manifest the others": {func(in *Input) {
			in.Want.ControlPlane = in.Want.ControlPlane[:1]
			in.changeObserved("192.0.0.1", func(h *observed.Host) {
				h.EtcdData, h.EtcdHealth, h.APIServer = observed.No, observed.No, observed.No
			})
		}, fsm.DisasterRecovery, 1},
	} {
		for _, at := range []string{"", "192.0.2.9:6443"} {
			in := healthyCluster(3, 0)
			c.how(&in)
			in.Is.Etcd = observed.Etcd{}
			in.Is.API = observed.API{Reached: observed.No, ReadyAt: at}
			d := Decide(in)
			told := d.Route == c.want && len(d.Instructions) == 1 && len(d.Instructions[0].Steps) == c.steps &&
				d.Instructions[0].Steps[0].Code == problem.AddServingHosts
			if told != (at != "") {
				t.Errorf("%s, ready at %q: %s, %v", name, at, d.Route, d.Instructions)
			}
			if got := AssessRecovery(in); got.Elsewhere != at {
				t.Errorf("%s, ready at %q: %+v", name, at, got)
			}
		}
	}
}

func TestADisasterIsAnsweredWithCommandLines(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	in.loseHosts("192.0.0.2", "192.0.0.3")
	in.Is.API.Reached = observed.No
	steps := Decide(in).Instructions[0].Steps
	want := []problem.Step{
		{Code: problem.BringBackHosts, Parameters: problem.Parameters{"count": 1, "hosts": []string{"cp-2", "cp-3"}}},
		{Code: problem.KeepEtcdData, Parameters: problem.Parameters{"hosts": []string{"cp-1"}}},
		{Code: problem.RecoverFromMember, Parameters: problem.Parameters{
			"command": "kubeone recover -m MANIFEST --from surviving-member --confirm-destroyed cp-2 " +
				"--confirm-destroyed cp-3",
			"hosts": []string{"cp-1"},
		}},
		{Code: problem.ConfirmDestroyed},
		{Code: problem.RecoverFromCopy, Parameters: problem.Parameters{
			"command": "kubeone recover -m MANIFEST --from BACKUP --identity KEYFILE --confirm-destroyed cp-2 " +
				"--confirm-destroyed cp-3",
		}},
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

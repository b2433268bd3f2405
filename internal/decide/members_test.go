package decide

import (
	"slices"
	"strings"
	"testing"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/match"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"

	"github.com/google/go-cmp/cmp"
)

// dropHostnames removes the hostnames from a manifest, as in most manifests.
func (in *Input) dropHostnames() {
	for i := range in.Want.ControlPlane {
		in.Want.ControlPlane[i].Hostname = ""
	}
	for i := range in.Want.Workers {
		in.Want.Workers[i].Hostname = ""
	}
}

// hasStep reports whether the instruction has that step.
func hasStep(i problem.Instruction, code problem.Code, parameters problem.Parameters) bool {
	return slices.ContainsFunc(i.Steps, func(s problem.Step) bool {
		return cmp.Equal(s, problem.Step{Code: code, Parameters: parameters})
	})
}

func TestHostsWithoutHostnameInTheManifest(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	in.dropHostnames()
	if d := Decide(in); d.Route != fsm.Nothing || d.Hosts[cp2].Node != "cp-2" || d.Hosts[cp2].Etcd != "id-cp-2" {
		t.Errorf("all is well: %s, %+v", d.Route, d.Hosts[cp2])
	}
	in.loseHosts(cp2, w1)
	in.Is.API.Nodes = slices.DeleteFunc(in.Is.API.Nodes, func(n observed.Node) bool { return n.Name == "w-1" })
	d := Decide(in)
	if d.Hosts[cp2].Node != "cp-2" || d.Hosts[cp2].Member != observed.Yes {
		t.Errorf("an unreachable host is not found by address: %+v", d.Hosts[cp2])
	}
	if d.Route != fsm.Instruct || len(d.Instructions) != 2 ||
		!hasStep(d.Instructions[1], problem.UpdateManifest,
			problem.Parameters{"list": "staticWorkers.hosts", "address": w1}) {
		t.Errorf("got %s, %v", d.Route, d.Instructions)
	}
}

func TestAnUnfitHostWithoutANameIsNamedByItsID(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 1)
	in.dropHostnames()
	in.Is.Hosts[cp1] = observed.Host{Reach: observed.Denied, Class: "hostkey", Problem: "host key changed"}
	in.Is.API.Nodes, in.Is.Etcd = nil, observed.Etcd{}
	if d := Decide(in); d.Trace[0].Why != cp1+": host key changed" {
		t.Errorf("why: %q", d.Trace[0].Why)
	}
}

func TestVersionsOfSilentHosts(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 2)
	in.emptyHosts(w2)
	in.loseHosts(cp3)
	if d := Decide(in); !slices.Equal(d.Joins, []string{w2}) {
		t.Errorf("a silent API server is as new as its kubelet: joins %v", d.Joins)
	}
	in.nodeNamed("cp-3").KubeletVersion = "1.35.0"
	if d := Decide(in); len(d.Joins) > 0 {
		t.Errorf("a silent host may run an older API server: joins %v", d.Joins)
	}
	in.nodeNamed("cp-3").KubeletVersion = ""
	if d := Decide(in); len(d.Joins) > 0 {
		t.Errorf("the silent host's versions are unknown: joins %v", d.Joins)
	}
}

func TestTheAPISpeaksForTheHostThroughWhichItWasAsked(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 0)
	in.changeObserved(cp1, func(h *observed.Host) { h.APIServerVersion = "" })
	if d := Decide(in); d.Route != fsm.Nothing {
		t.Errorf("got %s, %v", d.Route, d.Trace)
	}
}

func TestALivingMemberWhoseHostIsEmptyIsStoppedByHand(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 0)
	in.Is.Hosts[cp3] = decidetest.Bare(in.Want.ControlPlane[2])
	d := Decide(in)
	if d.Route != fsm.Instruct || len(d.Instructions) != 1 ||
		d.Instructions[0].Steps[0].Code != problem.FindMemberMachine ||
		d.Instructions[0].Steps[0].Parameters["member"] != "cp-3 (id-cp-3)" {
		t.Errorf("got %s, %v", d.Route, d.Instructions)
	}
}

func TestADeadMemberWaitsWhileTheQuorumIsThin(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 0)
	in.Is.Etcd.Members = append(in.Is.Etcd.Members, observed.Member{ID: "id-a", Healthy: observed.No},
		observed.Member{ID: "id-b", Learner: true})
	in.Is.Etcd.Members[2].Healthy = observed.Unknown
	in.changeObserved(cp3, func(h *observed.Host) { h.EtcdHealth = observed.Unknown })
	d := Decide(in)
	if d.Route != fsm.DisasterRecovery {
		t.Errorf("2 of 4 voters known to be healthy: got %s, %v", d.Route, d.Trace)
	}
}

// The former owner of the name may still be in the list.
func TestOfTwoMembersWithOneNameTheHostsOwnIsFound(t *testing.T) {
	t.Parallel()
	h := decidetest.Host(desired.ControlPlane, "cp", 1)
	old := observed.Member{ID: "1", Name: "cp-1", PeerURLs: []string{"https://10.9.9.9:2380"}, Healthy: observed.No}
	here := decidetest.Voter(h)
	here.Healthy = observed.No
	elsewhere := observed.Member{
		ID:       "3",
		Name:     "cp-1",
		PeerURLs: []string{"https://10.9.9.8:2380"},
		Healthy:  observed.Yes,
	}
	for want, members := range map[string][]observed.Member{
		"id-cp-1": {old, elsewhere, here},
		"3":       {old, elsewhere},
		"1":       {old},
	} {
		if i := match.MemberIndex(members, h, "cp-1"); i < 0 || members[i].ID != want {
			t.Errorf("found %d in %v, want %s", i, members, want)
		}
	}
	in := healthyCluster(3, 0)
	in.Is.Etcd.Members = append([]observed.Member{old}, in.Is.Etcd.Members...)
	if d := Decide(in); d.Route != fsm.Repair || len(d.Removals) != 1 || d.Removals[0].Member != "1" {
		t.Errorf("got %s, %v", d.Route, d.Removals)
	}
}

// TestAPersonMayActBeforeOurStepsHaveRun checks the instructions for an unreachable host after a dead member beside it
// has returned: the host may be replaced then, but not before.
func TestAPersonMayActBeforeOurStepsHaveRun(t *testing.T) {
	t.Parallel()
	now := healthyCluster(3, 0)
	now.killMembers("cp-2")
	then := healthyCluster(3, 0)
	then.loseHosts(cp3)
	codes := func() []problem.Code {
		var out []problem.Code
		for _, s := range Decide(then).Instructions[0].Steps {
			out = append(out, s.Code)
		}
		return out
	}
	if got := codes(); !slices.Contains(got, problem.ReplaceSafely) {
		t.Errorf("two of three are healthy: %v", got)
	}
	then.Now = now.Is.Etcd.Members
	if got := codes(); !slices.Contains(got, problem.KeepHostQuorum) || slices.Contains(got, problem.UpdateManifest) {
		t.Errorf("one of the other two is still dead: %v", got)
	}
}

// TestAnotherCAThanTheKnownOneStopsEverything covers a foreign cluster of this name, and a host that impersonates one
// of this cluster.
func TestAnotherCAThanTheKnownOneStopsEverything(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	in.CA = in.Is.Hosts[cp1].CAHash
	if d := Decide(in); in.CA == "" || d.Route != fsm.Nothing {
		t.Errorf("the CA is the known one: %s, %v", d.Route, d.Trace)
	}
	in.changeObserved(cp2, func(h *observed.Host) { h.AdminCA = "sha256:other" })
	if d := Decide(in); d.Route != fsm.Error || !strings.Contains(d.Trace[0].Why, "sha256:other") {
		t.Errorf("one host's admin.conf is of another CA: %s, %v", d.Route, d.Trace)
	}
	in = healthyCluster(3, 1)
	in.CA = "sha256:known"
	if d := Decide(in); d.Route != fsm.Error || !strings.Contains(d.Trace[0].Why, "sha256:known") {
		t.Errorf("all hosts are of another CA: %s, %v", d.Route, d.Trace)
	}
}

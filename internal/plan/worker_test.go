package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/decidetest"
)

// aMachine returns a worker that is a Machine, in a cluster in which only this host was probed.
func aMachine(is func(desired.Host) observed.Host) decide.WorkerInput {
	h := decidetest.Host(desired.Worker, "w", 1)
	h.ID, h.HasOwnID = "uid-1", true
	in := decide.WorkerInput{APIServers: []string{decidetest.Version}}
	in.Want = decidetest.Wanted(0, 0)
	in.Want.Workers, in.CA = []desired.Host{h}, decidetest.CA
	in.Want.Artifacts = healthyCluster(1, 1).Want.Artifacts
	seen := is(h)
	if seen.Marker != nil {
		seen.Marker.ID, seen.Marker.Node = h.ID, h.Hostname
	}
	in.Is = observed.World{Hosts: map[string]observed.Host{h.ID: seen}, API: observed.API{Reached: observed.Yes}}
	in.Is.API.AutoApproval = observed.No
	if seen.Marker != nil && seen.Marker.Complete || seen.Reach != observed.Reached {
		in.Is.API.Nodes = []observed.Node{decidetest.ReadyNode(h)}
	}
	return in
}

// withReconfiguration returns a Machine that is to have other settings.
func withReconfiguration(in decide.WorkerInput, turn decide.Turn) decide.WorkerInput {
	id := in.Want.Workers[0].ID
	is := in.Is.Hosts[id]
	is.Digests, in.Turn = map[string]string{"kubelet": "old"}, turn
	in.Is.Hosts[id], in.Config = is, map[string]map[string]string{id: {"kubelet": "new"}}
	return in
}

// withOtherCredentials has the host have other credentials than are desired.
func withOtherCredentials(in decide.WorkerInput) decide.WorkerInput {
	id := in.Want.Workers[0].ID
	is := in.Is.Hosts[id]
	is.Credentials = []observed.Credential{{Of: "registry credentials of docker.io", Is: observed.CredentialOther}}
	in.Is.Hosts[id] = is
	return in
}

func TestPlansOfAWorker(t *testing.T) {
	t.Parallel()
	bare, member, silent := decidetest.Bare, decidetest.Member, decidetest.Silent
	older := func(h desired.Host) observed.Host {
		is := member(h)
		is.Kubelet.Version = "1.35.4"
		return is
	}
	stopped := func(h desired.Host) observed.Host {
		is := older(h)
		is.Kubelet.Active, is.Healthz = false, observed.No
		return is
	}
	gone := func(in decide.WorkerInput) decide.WorkerInput {
		in.MachineDeleted, in.GivenUp = true, true
		return in
	}
	leftNode := aMachine(bare)
	leftNode.Is.API.Nodes = []observed.Node{decidetest.ReadyNode(leftNode.Want.Workers[0])}
	for _, c := range []struct {
		name   string
		in     decide.WorkerInput
		routes string
		steps  string
	}{
		{"a bare host joins", aMachine(bare), "join",
			"prepare/w-1 images/w-1 join-worker/w-1 node-ready/w-1 revoke-tokens"},
		{"nothing to do", aMachine(member), "nothing", ""},
		{"another version", aMachine(older), "upgrade",
			"fetch/w-1 check/w-1 drain-node/w-1 upgrade-worker/w-1 uncordon/w-1"},
		{"other settings", withReconfiguration(aMachine(member), decide.Now), "reconfigure", "reconfigure/w-1"},
		{"other settings, and it is not its turn", withReconfiguration(aMachine(member), decide.NotYet), "wait", ""},
		{"other credentials, and it is not its turn", withOtherCredentials(withReconfiguration(aMachine(member),
			decide.NotYet)),
			"reconfigure wait", "reconfigure/w-1"},
		{"other credentials and its turn", withOtherCredentials(withReconfiguration(aMachine(member), decide.Now)),
			"reconfigure", "reconfigure/w-1"},
		{"other credentials and another version", withOtherCredentials(aMachine(older)), "reconfigure upgrade",
			"reconfigure/w-1 fetch/w-1 check/w-1 drain-node/w-1 upgrade-worker/w-1 uncordon/w-1"},
		{"another version and other settings", withReconfiguration(aMachine(older), decide.Now), "upgrade",
			"fetch/w-1 check/w-1 drain-node/w-1 upgrade-worker/w-1 uncordon/w-1"},
		{"a stopped kubelet of another version", aMachine(stopped), "repair upgrade",
			"restart-units/w-1 fetch/w-1 check/w-1 drain-node/w-1 upgrade-worker/w-1 uncordon/w-1"},
		{"it leaves", gone(aMachine(member)), "return", "drain-node/w-1 reset/w-1 delete-node/w-1"},
		{"it has left but for its Node", gone(leftNode), "return", "delete-node/w-1"},
		{"its host is lost", gone(aMachine(silent)), "abandon", "delete-node/w-1"},
		{"its host is silent", aMachine(silent), "wait", ""},
	} {
		p, decisions := Worker(c.in)
		var ids []string
		for _, s := range p.Steps {
			ids = append(ids, s.ID)
		}
		if got := strings.Join(ids, " "); got != c.steps || strings.Join(p.Routes, " ") != c.routes {
			t.Errorf("%s: routes %v, steps %s\n%+v\n%s", c.name, p.Routes, got, decisions[0].Trace, p.Blocked)
		}
		scope := LockScope(p, c.in.Want, c.in.Is)
		if scope.Cluster != (c.routes == "abandon") {
			t.Errorf("%s: the run locks %+v", c.name, scope)
		}
		if len(p.Steps) == 0 && p.Again == "" && !slices.Equal(p.Routes, []string{"nothing"}) {
			t.Errorf("%s: nobody says why nothing is done", c.name)
		}
	}
}

// TestAWorkersPlanIsTheSameAsTheManifests: the steps of a Machine's worker are those that the manifest's worker gets.
func TestAWorkersPlanIsTheSameAsTheManifests(t *testing.T) {
	t.Parallel()
	whole := askedWorkerOnly(healthyCluster(3, 2, "w-1"))
	of, _ := Build(Input{Decide: whole})
	whole.Is.API.AutoApproval = observed.No
	in := decide.WorkerInput{Input: whole, APIServers: []string{decidetest.Version}}
	in.Want.ControlPlane, in.Want.Workers = nil, whole.Want.Workers[:1]
	alone, _ := Worker(in)
	if diff := cmp.Diff(of.Steps, alone.Steps); diff != "" || len(of.Steps) == 0 {
		t.Errorf("%d steps (-manifest's +machine's):\n%s", len(of.Steps), diff)
	}
}

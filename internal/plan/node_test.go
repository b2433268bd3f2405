package plan

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
)

// withDeadHosts returns a cluster whose named hosts, members and kubelets do not answer.
func withDeadHosts(controlPlanes, workers int, names ...string) decide.Input {
	in := healthyCluster(controlPlanes, workers)
	for _, name := range names {
		replaceHost(in, name, silentHost)
		etcdOf(in, name, func(m *observed.Member) { m.Healthy = observed.No })
		nodeOf(in, name, func(n *observed.Node) { n.Ready = observed.Unknown })
	}
	return in
}

// withSurplusHost returns a cluster with one control-plane host more than the manifest has.
func withSurplusHost() decide.Input {
	in := healthyCluster(2, 1)
	delete(in.Is.Hosts, in.Want.ControlPlane[1].ID)
	in.Want.ControlPlane = in.Want.ControlPlane[:1]
	return in
}

func TestNodePlans(t *testing.T) {
	t.Parallel()
	replaced := withDeadHosts(3, 1, "cp-3")
	replaceHost(replaced, "cp-3", bareHost)
	for name, c := range map[string]struct {
		how   func(decide.Input, string, bool) (Plan, error)
		world decide.Input
		id    string
		gone  bool
	}{
		"node-remove-worker":              {RemoveNode, healthyCluster(1, 2), "192.0.1.2", false},
		"node-remove-control-plane":       {RemoveNode, healthyCluster(3, 0), "192.0.0.2", false},
		"node-remove-gone-worker":         {RemoveNode, withDeadHosts(3, 2, "w-1"), "192.0.1.1", true},
		"node-remove-gone-control-plane":  {RemoveNode, withDeadHosts(3, 1, "cp-3"), "192.0.0.3", true},
		"node-remove-bare":                {RemoveNode, replaced, "192.0.0.3", false},
		"node-remove-again":               {RemoveNode, healthyCluster(3, 0, "cp-3"), "192.0.0.3", false},
		"node-replace-worker":             {ReplaceNode, healthyCluster(1, 2), "192.0.1.2", false},
		"node-replace-control-plane":      {ReplaceNode, healthyCluster(3, 1), "192.0.0.1", false},
		"node-replace-gone-control-plane": {ReplaceNode, withDeadHosts(3, 0, "cp-3"), "192.0.0.3", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := c.how(c.world, c.id, c.gone)
			if err != nil {
				t.Fatal(err)
			}
			pinned(t, name, planText(p))
			if err := checkGraph(c.world, p, nil); err != nil {
				t.Error(err)
			}
			next, err := RemoveNode(carryOut(c.world, p), c.id, c.gone)
			if err != nil || strings.Contains(name, "remove") && len(next.Steps) > 0 {
				t.Errorf("afterwards: %v\n%s", err, planText(next))
			}
		})
	}
}

func TestAReplacedNodeIsAMemberAgain(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"192.0.0.2", "192.0.1.1"} {
		in := healthyCluster(3, 1)
		p, err := ReplaceNode(in, id, false)
		if err != nil {
			t.Fatal(err)
		}
		if next, _ := Build(Input{Decide: carryOut(in, p)}); !next.Empty() {
			t.Errorf("%s: afterwards\n%s", id, planText(next))
		}
	}
}

// What is said to be safe about another host that is broken is so in the cluster as it is, and while the replaced one
// is away.
func TestAReplacementSaysWhatIsSafeNow(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	changeHost(in, "cp-3", func(h *observed.Host) { h.APIServer = observed.No })
	p, err := ReplaceNode(in, "192.0.0.2", false)
	if err != nil {
		t.Fatal(err)
	}
	if got, now := p.Operator, decide.Decide(in).Instructions; len(now) != 1 || !reflect.DeepEqual(got, now) {
		t.Errorf("told\n%+v\nwant\n%+v", got, now)
	}
	replaceHost(in, "cp-2", hostWithoutData)
	etcdOf(in, "cp-2", func(m *observed.Member) { m.Healthy = observed.No })
	if p, err = ReplaceNode(in, "192.0.0.2", false); err != nil {
		t.Fatal(err)
	}
	for _, i := range p.Operator {
		for _, s := range i.Steps {
			if s.Code == problem.ReplaceSafely {
				t.Errorf("with cp-2 dead, one is told to replace cp-3 as well: %+v", i)
			}
		}
	}
	if len(p.Operator) == 0 {
		t.Error("nothing is said of cp-3")
	}
}

func TestRefusedNodeChanges(t *testing.T) {
	t.Parallel()
	cut := withDeadHosts(3, 0, "cp-3")
	etcdOf(cut, "cp-3", func(m *observed.Member) { m.Healthy = observed.Yes })
	mute := healthyCluster(3, 1)
	mute.Is.API = observed.API{Reached: observed.No, Problem: "connection refused"}
	denied := healthyCluster(3, 1)
	changeHost(denied, "w-1", func(h *observed.Host) { h.Reach, h.Problem = observed.Denied, "permission denied" })
	blind := withDeadHosts(3, 0, "cp-3")
	blind.Is.Etcd = observed.Etcd{Reached: observed.No, Problem: "timed out"}
	endpoint := healthyCluster(3, 0)
	endpoint.Want.Endpoint.Host = "CP-1"
	dark := healthyCluster(3, 0)
	dark.Is.Etcd = observed.Etcd{Problem: "timed out"}
	// The manifest now calls a control-plane host a worker, and the etcd members are not known.
	demoted := withDeadHosts(3, 1, "w-1")
	demoted.Is.Etcd = observed.Etcd{Reached: observed.No, Problem: "timed out"}
	for i := range demoted.Is.API.Nodes {
		demoted.Is.API.Nodes[i].ControlPlane = true
	}
	for _, c := range []struct {
		name  string
		how   func(decide.Input, string, bool) (Plan, error)
		world decide.Input
		id    string
		gone  bool
		says  string
	}{
		{"the last control-plane host of the manifest", RemoveNode, withSurplusHost(), "192.0.0.1", false,
			"cp-1 is the last control-plane host in the manifest, but etcd also contains cp-2"},
		{"the last control-plane host", RemoveNode, healthyCluster(1, 1), "192.0.0.1", false,
			"cp-1 is the last control-plane host"},
		{"the API endpoint", RemoveNode, endpoint, "192.0.0.1", false, "cp-1 is the API endpoint (CP-1)"},
		{"the endpoint, to be replaced", ReplaceNode, endpoint, "192.0.0.1", false, "cp-1 is the API endpoint"},
		{"the last one that is left", RemoveNode, healthyCluster(3, 0, "cp-2", "cp-3"), "192.0.0.1", false,
			"is the last control-plane host"},
		{"a healthy one while another is dead", RemoveNode, withDeadHosts(3, 0, "cp-3"), "192.0.0.1", false,
			"must not leave: without it 1 of 2 voters healthy, quorum 2"},
		{"a dead one without quorum", RemoveNode, withDeadHosts(3, 0, "cp-2", "cp-3"), "192.0.0.3", true,
			"must not leave: without it 1 of 2 voters healthy, quorum 2"},
		{"unreachable", RemoveNode, withDeadHosts(3, 1, "w-1"), "192.0.1.1", false,
			"w-1 cannot be reached (connection timed out), so it cannot be drained"},
		{"not unreachable", RemoveNode, healthyCluster(3, 1), "192.0.1.1", true,
			"w-1 answers, so it is not unreachable"},
		{"a refused login", RemoveNode, denied, "192.0.1.1", true,
			"w-1 is running and refuses the login (permission denied)"},
		{"a member that the others hear", RemoveNode, cut, "192.0.0.3", true, "only this machine cannot reach it"},
		{"no API", RemoveNode, mute, "192.0.1.1", false, "connection refused"},
		{"no etcd", RemoveNode, blind, "192.0.0.3", true, "the etcd members are not known"},
		{"no etcd, host reached", RemoveNode, dark, "192.0.0.2", false,
			"the etcd members are not known, so it is unknown whether etcd keeps quorum without cp-2: timed out"},
		{"no etcd, host reached, to be replaced", ReplaceNode, dark, "192.0.0.2", false,
			"the etcd members are not known"},
		{"no etcd, and a worker's Node is a control-plane host's", RemoveNode, demoted, "192.0.1.1", true,
			"the etcd members are not known"},
		{"it could not join again", ReplaceNode, withOtherVersion(), "192.0.1.1", false, "could not join it again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := c.how(c.world, c.id, c.gone)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q\n%s", err, c.says, planText(p))
			}
		})
	}
}

// withOtherVersion returns a cluster that runs another version than the wanted one.
func withOtherVersion() decide.Input {
	in := healthyCluster(3, 1)
	in.Want.KubernetesVersion = "1.38.0"
	return in
}

// A host that is silent and has no name in the manifest is known by the address of its Node.
func TestASilentHostIsKnownByItsAddress(t *testing.T) {
	t.Parallel()
	in := withDeadHosts(3, 0, "cp-3")
	in.Want.ControlPlane[2].Hostname = ""
	p, err := RemoveNode(in, "192.0.0.3", true)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(p.Steps, func(s Step) bool {
		return s.Intent.Kind == step.DeleteNode && s.Intent.NodeName == "cp-3"
	}) ||
		!slices.ContainsFunc(p.Steps, func(s Step) bool {
			return s.Intent.Kind == step.RemoveEtcd &&
				step.ParamsOf[step.RemoveEtcdParams](s.Intent).Member == "id-cp-3"
		}) {
		t.Error(planText(p))
	}
}

// TestAHostThatCallsItselfAnotherTakesOnlyItselfOut: an attacker on a worker chooses its host name.
func TestAHostThatCallsItselfAnotherTakesOnlyItselfOut(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"w-2", "cp-2"} {
		in := healthyCluster(3, 2)
		truth := testManifest(3, 2)
		for i, h := range in.Want.Workers {
			in.Want.Workers[i].Hostname = ""
			changeHost(in, h.Hostname, func(is *observed.Host) { is.Hostname = h.Hostname })
		}
		liar := in.Is.Hosts["192.0.1.1"]
		liar.Hostname = victim
		in.Is.Hosts["192.0.1.1"] = liar
		for i, n := range in.Is.API.Nodes {
			host := slices.IndexFunc(truth.Hosts(), func(h desired.Host) bool { return h.Hostname == n.Name })
			in.Is.API.Nodes[i].Addresses = []string{truth.Hosts()[host].PrivateAddress, n.Name}
		}
		for name, request := range hostRequests(in, "192.0.1.1") {
			if name == "whole" || name == "apply" {
				continue
			}
			p, _ := request()
			for _, s := range p.Steps {
				if s.Host != "192.0.1.1" || s.Intent.Kind == step.DrainNode || s.Intent.Kind == step.DeleteNode ||
					s.Intent.Kind == step.RemoveEtcd {
					t.Errorf("%s of a host that calls itself %s: %s\n%s", name, victim, s.ID, planText(p))
				}
			}
		}
	}
}

// Machines that had exchanged their addresses are who they were: the ID of each is the address of the other.
func TestOneOfTwoHostsThatExchangedTheirAddressesLeaves(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 2)
	w := in.Want.Workers
	w[0].PublicAddress, w[1].PublicAddress = w[1].PublicAddress, w[0].PublicAddress
	w[0].PrivateAddress, w[1].PrivateAddress = w[1].PrivateAddress, w[0].PrivateAddress
	for i, n := range in.Is.API.Nodes {
		for _, h := range w {
			if n.Name == h.Hostname {
				in.Is.API.Nodes[i].Addresses = []string{h.PrivateAddress}
			}
		}
	}
	for _, h := range w {
		p, err := RemoveNode(in, h.ID, false)
		if err != nil || len(p.Steps) == 0 {
			t.Fatalf("%s: %d steps, %v", h.Hostname, len(p.Steps), err)
		}
		for _, s := range p.Steps {
			if s.Host != "" && (s.Host != h.ID || s.Intent.NodeName != h.Hostname) {
				t.Errorf("%s leaves, and %s is about %s at %s", h.Hostname, s.ID, s.Intent.NodeName, s.Host)
			}
		}
	}
}

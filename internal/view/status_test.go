package view

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

func TestStatusAsText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		st    StatusInput
		style Style
	}{
		{"healthy", healthy(), inPipe},
		{"healthy-narrow", healthy(), Style{Width: 80}},
		{"paused", paused(), inPipe},
		{"lost", lost(), onTerminal},
		{"bare", bare(), inPipe},
		{"busy", busy(), inPipe},
		{"machines", withMachines(), inPipe},
		{"machines-narrow", withMachines(), Style{Width: 80}},
		{"machines-whole", wholeMachines(), inPipe},
		{"zero", StatusInput{Want: healthy().Want, Now: now()}, inPipe},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := render(func(b *bytes.Buffer) { Status(b, c.style, c.st) })
			mustBePlain(t, c.style, got)
			pinned(t, "status-"+c.name+".txt", got)
		})
	}
}

func TestStatusInColourIsTheStatusInPlainWithColours(t *testing.T) {
	t.Parallel()
	for _, st := range []StatusInput{healthy(), paused(), lost(), bare(), busy()} {
		colour := render(func(b *bytes.Buffer) { Status(b, inColour, st) })
		plain := render(func(b *bytes.Buffer) { Status(b, onTerminal, st) })
		if colour == plain || escapeSequence.ReplaceAllString(colour, "") != plain {
			t.Errorf("plain:\n%s\ncolour:\n%q", plain, colour)
		}
	}
}

func TestStatusAsJSON(t *testing.T) {
	t.Parallel()
	for name, st := range map[string]StatusInput{
		"healthy":  healthy(),
		"lost":     lost(),
		"busy":     busy(),
		"machines": withMachines(),
		"zero":     {Now: now()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := StatusJSON(st)
			if err != nil {
				t.Fatal(err)
			}
			pinned(t, "status-"+name+".json", string(got))
		})
	}
}

// TestOneThingWrongIsNotHealthy breaks one thing at a time in a healthy cluster.
func TestOneThingWrongIsNotHealthy(t *testing.T) {
	t.Parallel()
	if !Healthy(healthy()) {
		t.Fatal("the healthy cluster is not healthy")
	}
	for name, break1 := range map[string]func(*StatusInput){
		"api: others serve": func(st *StatusInput) {
			st.World.API.Reached, st.World.API.ReadyAt = observed.No, "192.0.2.9:6443"
		},
		"api: nobody at the endpoint": func(st *StatusInput) {
			st.World.API.EndpointAnswers, st.World.API.EndpointProblem = observed.No, "from this machine: refused"
		},
		"components: no network on a Node": func(st *StatusInput) {
			st.Want.Network.CNI = desired.CNI{Name: "flannel", Supported: []string{"flannel"}}
		},
		"components: kube-proxy not ready": func(st *StatusInput) { st.World.API.Pods[0].Ready = observed.No },
		"components: no DNS":               func(st *StatusInput) { st.World.API.Pods[1].Ready = observed.No },
		"components: an object is missing": func(st *StatusInput) {
			st.World.API.Compared = map[string]observed.Comparison{
				"flannel": {Differences: []observed.Difference{{Object: "ClusterRole flannel", Missing: true}}},
			}
		},
		"components: not compared": func(st *StatusInput) {
			st.World.API.Compared = map[string]observed.Comparison{"flannel": {Problem: "a webhook refuses"}}
		},
		"hosts: condition unready": func(st *StatusInput) { st.assess("203.0.113.21", condition.Unready) },
		"hosts: never judged":      func(st *StatusInput) { delete(st.Decision.Hosts, "203.0.113.12") },
		"hosts: none wanted":       func(st *StatusInput) { st.Want.ControlPlane, st.Want.Workers = nil, nil },
		"hosts: one more wanted": func(st *StatusInput) {
			st.Want.Workers = append(st.Want.Workers, desired.Host{ID: "203.0.113.22", Role: desired.Worker})
		},
		"nodes: not Ready":           func(st *StatusInput) { st.World.API.Nodes[3].Ready = observed.No },
		"nodes: not known":           func(st *StatusInput) { st.World.API.Nodes[0].Ready = observed.Unknown },
		"nodes: gone":                func(st *StatusInput) { st.World.API.Nodes = st.World.API.Nodes[:3] },
		"api: silent":                func(st *StatusInput) { st.World.API.Reached = observed.No },
		"api: not asked":             func(st *StatusInput) { st.World.API.Reached = observed.Unknown },
		"etcd: a voter is unhealthy": func(st *StatusInput) { st.World.Etcd.Members[1].Healthy = observed.No },
		"etcd: a voter is silent":    func(st *StatusInput) { st.World.Etcd.Members[1].Healthy = observed.Unknown },
		"etcd: an alarm":             func(st *StatusInput) { st.World.Etcd.Members[1].Alarms = []string{"NOSPACE"} },
		"etcd: an alarm of one that left": func(st *StatusInput) {
			st.World.Etcd.Orphans = []observed.Alarm{{Member: "f", Name: "NOSPACE"}}
		},
		"etcd: no members":     func(st *StatusInput) { st.World.Etcd.Members = nil },
		"etcd: list not known": func(st *StatusInput) { st.World.Etcd.Reached = observed.Unknown },
		"etcd: a dead orphan voter": func(st *StatusInput) {
			st.World.Etcd.Members = append(st.World.Etcd.Members, observed.Member{ID: "f", Healthy: observed.No})
		},
		"certificates: one ends now": func(st *StatusInput) {
			st.World.Hosts["203.0.113.12"].Certificates[1].NotAfter = now()
		},
	} {
		st := healthy()
		break1(&st)
		if Healthy(st) {
			t.Errorf("healthy in spite of %s", name)
		}
	}
}

func (st *StatusInput) assess(id string, c condition.Condition) {
	a := st.Decision.Hosts[id]
	a.Condition = c
	st.Decision.Hosts[id] = a
}

// TestWhatIsNoMatterOfHealthIsHealthy adds conditions that an operator should know but that are not urgent.
func TestWhatIsNoMatterOfHealthIsHealthy(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*StatusInput){
		"drift": func(st *StatusInput) {
			st.Decision.Drift = map[string][]string{"203.0.113.11": {"kubelet"}}
		},
		"a cordoned node": func(st *StatusInput) { st.World.API.Nodes[3].Unschedulable = true },
		"a certificate with one day": func(st *StatusInput) {
			st.World.Hosts["203.0.113.12"].Certificates[1].NotAfter = now().Add(24 * time.Hour)
		},
		"a warning": func(st *StatusInput) { st.Decision.Warnings = []problem.Problem{{Code: problem.HostNotAsked}} },
		"a host outside the manifest": func(st *StatusInput) {
			st.World.Hosts["203.0.113.99"] = observed.Host{Reach: observed.Unreachable}
		},
	} {
		st := healthy()
		change(&st)
		if !Healthy(st) {
			t.Errorf("not healthy because of %s", name)
		}
	}
}

func TestHowManyVotersMayFail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		voters, healthy, quorum, mayFail int
		holds                            bool
	}{
		{0, 0, 1, 0, false}, {1, 1, 1, 0, true}, {2, 2, 2, 0, true}, {3, 3, 2, 1, true}, {3, 2, 2, 0, true},
		{3, 1, 2, 0, false}, {4, 4, 3, 1, true}, {5, 5, 3, 2, true}, {5, 3, 3, 0, true},
	} {
		st := StatusInput{World: observed.World{Etcd: observed.Etcd{Reached: observed.Yes}}}
		for i := range c.voters {
			st.World.Etcd.Members = append(st.World.Etcd.Members, observed.Member{Healthy: observed.Of(i < c.healthy)})
		}
		e := st.etcdReport()
		if e.Quorum != c.quorum || e.MayFail != c.mayFail || e.Holds != c.holds || e.Healthy != c.healthy ||
			e.Voters != c.voters {
			t.Errorf("%d of %d voters: %+v, want quorum %d, %d may fail, holds %t", c.healthy, c.voters, e, c.quorum,
				c.mayFail, c.holds)
		}
	}
}

// The next command in a status does what the status says.
func TestNextPromisesWhatIsDone(t *testing.T) {
	t.Parallel()
	for route, want := range map[fsm.Route]string{
		fsm.Resources: "kubeone apply updates", fsm.Reconfigure: "kubeone apply changes one host at a time",
		fsm.Join: "run kubeone apply to join", fsm.Repair: "run kubeone apply to repair", fsm.Upgrade: "kubeone plan shows",
	} {
		got := nextCommand(Report{Route: route, Version: "1.36.3"})
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q", route, got)
		}
	}
}

// Machines count for health like hosts of the manifest.
func TestMachinesThatAreNotWholeAreNotHealthy(t *testing.T) {
	t.Parallel()
	if !Healthy(wholeMachines()) {
		t.Fatal("a cluster whose Machine is Ready is not healthy")
	}
	for name, change := range map[string]func(*observed.Pool, []observed.Node){
		"an error":  func(p *observed.Pool, _ []observed.Node) { p.Machines[0].Error = "wrong" },
		"no Node":   func(p *observed.Pool, _ []observed.Node) { p.Machines[0].Node = "" },
		"not Ready": func(_ *observed.Pool, n []observed.Node) { n[4].Ready = observed.No },
		"not known": func(_ *observed.Pool, n []observed.Node) { n[4].Ready = observed.Unknown },
		"too few":   func(p *observed.Pool, _ []observed.Node) { p.Deployments[0].Replicas = 2 },
		"not read": func(p *observed.Pool, _ []observed.Node) {
			*p = observed.Pool{Problem: "conversion webhook failed", Machines: p.Machines}
		},
		"not all there": func(p *observed.Pool, _ []observed.Node) { p.More = true },
	} {
		st := wholeMachines()
		change(st.World.API.Pool, st.World.API.Nodes)
		if Healthy(st) {
			t.Errorf("%s: healthy", name)
		}
		st.World.API.Pool.Machines[0].Deleting = true // it is being deleted
		if name == "an error" && !Healthy(st) {
			t.Errorf("%s: a Machine that is deleted counts", name)
		}
	}
	st := wholeMachines()
	st.World.API.Pool.Controllers = observed.No // Nodes do not depend on controllers
	if !Healthy(st) {
		t.Error("without controllers: not healthy")
	}
}

// TestADeadHostIsToldOfOnce has an error, a warning and a reason about the same host.
func TestADeadHostIsToldOfOnce(t *testing.T) {
	t.Parallel()
	st := paused()
	st.Decision.Problems = []problem.Problem{timedOut("203.0.113.13")}
	st.Decision.Warnings = []problem.Problem{timedOut("203.0.113.13")}
	st.Decision.Instructions = nil
	var out strings.Builder
	Status(&out, Style{}, st)
	if told := strings.Count(out.String(), dialTimeout); told != 1 {
		t.Errorf("told %d times:\n%s", told, out.String())
	}
}

package plan

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/decide/identity"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// withDemoted returns a cluster whose manifest has become another one: of these control-plane hosts it makes workers.
func withDemoted(in decide.Input, names ...string) decide.Input {
	var left []desired.Host
	for _, h := range in.Want.ControlPlane {
		if slices.Contains(names, h.Hostname) {
			h.Role = desired.Worker
			in.Want.Workers = append(slices.Clone(in.Want.Workers), h)
			continue
		}
		left = append(left, h)
	}
	in.Want.ControlPlane = left
	return in
}

// hostRequests returns all requests about one host, and those about all.
func hostRequests(in decide.Input, id string) map[string]func() (Plan, error) {
	return map[string]func() (Plan, error){
		"reset":   func() (Plan, error) { return Reset(in, ResetOptions{Hosts: []string{id}}) },
		"remove":  func() (Plan, error) { return RemoveNode(in, id, false) },
		"replace": func() (Plan, error) { return ReplaceNode(in, id, false) },
		"gone":    func() (Plan, error) { return RemoveNode(in, id, true) },
		"whole":   func() (Plan, error) { return Reset(in, ResetOptions{}) },
		"recover": func() (Plan, error) { return Recover(in, RecoverOptions{}) },
		"apply": func() (Plan, error) {
			p, decisions := Build(Input{Decide: in})
			if problems := decide.Contradictions(in); len(problems) > 0 && len(p.Steps) == 0 {
				return p, errors.New(decisions[0].Trace[0].Why)
			}
			return p, nil
		},
	}
}

func TestAnotherRoleThanAMembersStopsEveryRequest(t *testing.T) {
	t.Parallel()
	in := withDemoted(healthyCluster(3, 1), "cp-2", "cp-3")
	who := identity.Match(in.Want, in.Is)
	in.Want, in.Is, in.Contradictions = who.Want, who.Is, who.Contradictions
	if len(in.Contradictions) != 2 {
		t.Fatalf("%+v", in.Contradictions)
	}
	for name, request := range hostRequests(in, "192.0.0.2") {
		p, err := request()
		if err == nil || len(p.Steps) > 0 || !strings.Contains(err.Error(), "it is in the cluster as control-plane") {
			t.Errorf("%s: %v\n%s", name, err, planText(p))
		}
	}
}

// interruptJoin makes cp-3 a voter that does not answer, because its join was interrupted. No repair is due, and the
// plan for the other hosts begins.
func interruptJoin(in decide.Input) {
	changeHost(in, "cp-3", func(h *observed.Host) {
		h.Marker.Complete, h.EtcdHealth, h.APIServer = false, observed.No, observed.No
	})
	etcdOf(in, "cp-3", func(m *observed.Member) { m.Healthy = observed.No })
}

// Beside a voter that does not answer, no other one is stopped. What comes before that is carried out all the same, and
// no worker overtakes the control plane.
func TestNoMemberIsStoppedBesideOneThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*decide.Input)
		keeps  string // a step that comes before
	}{
		"upgrade": {func(in *decide.Input) {
			const former = "1.36.2"
			in.Is.API.Version = former
			for _, h := range in.Want.Hosts() {
				nodeOf(*in, h.Hostname, func(n *observed.Node) { n.KubeletVersion = former })
				changeHost(*in, h.Hostname, func(is *observed.Host) {
					is.Kubelet.Version = former
					if h.Role == desired.ControlPlane {
						is.APIServerVersion = former
					}
				})
			}
		}, "snapshot/cp-2"},
		"reconfigure": {func(in *decide.Input) {
			in.Config["192.0.0.1"] = map[string]string{"kubelet": "config-2"}
			in.Limit = map[string]bool{"192.0.0.1": true, "192.0.1.2": true} // else cp-3 joins first
		}, "node-ready/w-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthyCluster(3, 2, "w-2")
			interruptJoin(in)
			c.change(&in)
			p, _ := Build(Input{Decide: in})
			if !strings.Contains(p.Again, "the etcd member of cp-1 must not be stopped: 1 other voters healthy") {
				t.Errorf("again %q, blocked %q", p.Again, p.Blocked)
			}
			if _, ok := p.Step(c.keeps); !ok {
				t.Errorf("%s is not planned", c.keeps)
			}
			for _, s := range p.Steps {
				switch s.Intent.Kind {
				case step.UpgradeControlPlane, step.UpgradeWorker, step.Reconfigure, step.DrainNode:
					t.Errorf("%s is planned", s.ID)
				}
			}
		})
	}
}

// TestNoRequestHarmsEtcd makes every request in every world, including worlds whose manifest has changed the role of
// hosts unnoticed, and checks the plan with its own count of votes.
func TestNoRequestHarmsEtcd(t *testing.T) {
	t.Parallel()
	worlds := 4000
	if testing.Short() {
		worlds = 1600
	}
	planned := map[string]int{}
	for seed := range worlds {
		r := rand.New(rand.NewPCG(uint64(seed), 11)) // #nosec G404 -- a test
		in := randomWorld(r)
		hosts := in.Want.Hosts()
		about := hosts[r.IntN(len(hosts))]
		for _, h := range in.Want.ControlPlane {
			if len(in.Want.ControlPlane) > 1 && r.IntN(4) == 0 {
				in = withDemoted(in, h.Hostname)
			}
		}
		for name, request := range hostRequests(in, about.ID) {
			p, err := request()
			if err != nil || name == "whole" {
				continue
			}
			if len(p.Steps) > 0 {
				planned[name]++
			}
			if err := etcdHarm(in, p); err != nil {
				t.Fatalf("world %d: %s %s: %v\n%s", seed, name, about.Hostname, err, planText(p))
			}
		}
	}
	for name := range hostRequests(decide.Input{}, "") {
		if name != "whole" && name != "recover" && planned[name] == 0 {
			t.Errorf("%s was never planned", name)
		}
	}
	t.Log(planned)
}

// etcdHarm reports what a plan does to etcd that must not be done, counted from its list of members.
func etcdHarm(in decide.Input, p Plan) error {
	members := slices.Clone(in.Is.Etcd.Members)
	find := func(host string) int {
		return slices.IndexFunc(members, func(m observed.Member) bool {
			h, _ := in.Want.Host(host)
			return m.Name == h.Hostname || slices.Contains(m.PeerURLs, "https://"+h.PrivateAddress+":2380")
		})
	}
	for _, s := range p.Steps {
		switch s.Intent.Kind {
		case step.RemoveEtcd:
			id := step.ParamsOf[step.RemoveEtcdParams](s.Intent).Member
			members = slices.DeleteFunc(members, func(m observed.Member) bool { return m.ID == id })
			if voters, alive := voices(members); alive < voters/2+1 {
				return fmt.Errorf("%s leaves %d of %d voters", s.ID, alive, voters)
			}
		case step.ResetHost:
			if i := find(s.Host); i >= 0 && in.Is.Hosts[s.Host].EtcdData != observed.No {
				return fmt.Errorf("%s wipes the data of member %s", s.ID, members[i].Name)
			}
		case step.UpgradeControlPlane, step.UpgradeWorker:
			if i := find(s.Host); i >= 0 && !members[i].Learner {
				voters, alive := voices(slices.Concat(members[:i:i], members[i+1:]))
				if alive < (voters+1)/2+1 && voters+1 > 2 {
					return fmt.Errorf("%s stops one of %d voters, and %d others answer", s.ID, voters+1, alive)
				}
			}
		case step.JoinEtcd:
			if find(s.Host) < 0 {
				h, _ := in.Want.Host(s.Host)
				members = append(members, observed.Member{ID: "new-" + s.Host, Name: h.Hostname, Healthy: observed.Yes})
			}
		case step.RestartUnits, step.Regenerate:
			if i := find(s.Host); i >= 0 {
				members[i].Healthy = observed.Yes
			}
		}
	}
	return nil
}

func voices(members []observed.Member) (voters, alive int) {
	for _, m := range members {
		if !m.Learner {
			voters++
			if m.Healthy == observed.Yes {
				alive++
			}
		}
	}
	return voters, alive
}

// TestStepsEnterAPlanInOnePlace finds a way into a plan that goes around the question whether etcd allows the step.
func TestStepsEnterAPlanInOnePlace(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && setsSteps(fn) {
				places = append(places, fn.Name.Name)
			}
		}
	}
	if !slices.Equal(places, []string{"insertStep"}) {
		t.Errorf("steps enter plans in %v; only insertStep asks etcd first", places)
	}
}

// setsSteps reports whether the function assigns a plan's steps.
func setsSteps(fn *ast.FuncDecl) bool {
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		if assign, ok := n.(*ast.AssignStmt); ok {
			for _, left := range assign.Lhs {
				s, ok := left.(*ast.SelectorExpr)
				found = found || ok && s.Sel.Name == "Steps"
			}
		}
		return true
	})
	return found
}

package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"

	"github.com/google/go-cmp/cmp"
)

func TestDigestCountsWhatIsDoneAndNotTheWords(t *testing.T) {
	t.Parallel()
	base := func() Plan {
		p, _ := Build(Input{Decide: bareCluster(1, 1), FirstContacts: map[string]string{"192.0.0.1": "SHA256:aaa"}})
		Sign(&p, map[string]string{"192.0.0.1": "script-1", "192.0.1.1": "script-2"})
		return p
	}
	want := base().Digest()
	for name, change := range map[string]struct {
		how  func(*Plan)
		same bool
	}{
		"nothing": {func(*Plan) {}, true},
		"a note":  {func(p *Plan) { p.Notes = append(p.Notes, "by the way") }, true},
		"a title": {func(p *Plan) { p.Steps[0].Title = "another word" }, true},
		"a script": {func(p *Plan) { Sign(p, map[string]string{"192.0.0.1": "script-3", "192.0.1.1": "script-2"}) },
			false},
		"a need": {func(p *Plan) { p.Steps[1].Needs = nil }, false},
		"an upload": {func(p *Plan) {
			p.Steps[0].Intent.Params = step.PrepareParams{Content: step.Content{Uploads: []string{"other"}}}
		}, false},
		"a step less": {func(p *Plan) { p.Steps = p.Steps[1:] }, false},
		"another host key": {func(p *Plan) { p.FirstContacts = map[string]string{"192.0.0.1": "SHA256:bbb"} },
			false},
		"another cluster":     {func(p *Plan) { p.Cluster = "beta" }, false},
		"read from its JSON":  {rereadPlan, true},
		"a step's other host": {func(p *Plan) { p.Steps[0].Host = "192.0.1.1" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := base()
			change.how(&p)
			if same := p.Digest() == want; same != change.same {
				t.Errorf("the digest is the same: %t, want %t", same, change.same)
			}
		})
	}
}

func rereadPlan(p *Plan) {
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	*p = Plan{}
	if err := json.Unmarshal(raw, p); err != nil {
		panic(err)
	}
}

func TestSignedAreStepsOnHostsOnly(t *testing.T) {
	t.Parallel()
	in := bareCluster(1, 0)
	in.Addons = nil
	p, _ := Build(Input{Decide: in})
	Sign(&p, map[string]string{"192.0.0.1": "script-1"})
	for _, s := range p.Steps {
		want := ""
		if s.Intent.Kind.OnHost() {
			want = "script-1"
		}
		if s.Intent.Digest != want {
			t.Errorf("%s has digest %q, want %q", s.ID, s.Intent.Digest, want)
		}
	}
}

func TestBuildLeavesTheWorldAsItIs(t *testing.T) {
	t.Parallel()
	in, same := halfJoined(), halfJoined()
	Build(Input{Decide: in})
	if diff := cmp.Diff(same, in); diff != "" {
		t.Errorf("planning changed its input:\n%s", diff)
	}
}

func TestNodeName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want desired.Host
		seen observed.Host
		name string
	}{
		{desired.Host{ID: "192.0.2.1", Hostname: "CP-1"}, observed.Host{Hostname: "other"}, "cp-1"},
		{desired.Host{ID: "192.0.2.1"}, observed.Host{Hostname: "Own"}, "own"},
		{desired.Host{ID: "192.0.2.1"}, observed.Host{}, "192.0.2.1"},
		{desired.Host{}, observed.Host{}, ""},
	} {
		if got := NodeName(c.want, c.seen); got != c.name {
			t.Errorf("NodeName(%+v, %+v) = %q, want %q", c.want, c.seen, got, c.name)
		}
	}
}

func TestWhatAPlanLeavesToDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plan            Plan
		empty, complete bool
	}{
		{Plan{Notes: []string{"n"}}, true, true},
		{Plan{Steps: []Step{{ID: "x"}}}, false, true},
		{Plan{Steps: []Step{{ID: "x"}}, Again: "a"}, false, false},
		{Plan{Operator: make([]problem.Instruction, 1)}, false, false},
		{Plan{Blocked: "b"}, false, false},
	} {
		if c.plan.Empty() != c.empty || c.plan.Complete() != c.complete {
			t.Errorf("%+v: empty %t, complete %t", c.plan, c.plan.Empty(), c.plan.Complete())
		}
	}
}

func TestUnknownControlPlaneIsNeverInstalledOver(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(desired.Host) observed.Host{"silent": silentHost, "foreign": foreign} {
		in := bareCluster(3, 2)
		replaceHost(in, "cp-2", spoil)
		p, ds := Build(Input{Decide: in})
		if len(p.Steps) > 0 || ds[0].Route != fsm.Error {
			t.Errorf("%s: route %s with steps:\n%s", name, ds[0].Route, planText(p))
		}
	}
}

func TestASavedPlanIsReadOrRefused(t *testing.T) {
	t.Parallel()
	p, _ := Build(Input{Decide: bareCluster(3, 1)})
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Decode(text)
	if diff := cmp.Diff(p, read); err != nil || diff != "" || p.Digest() != read.Digest() {
		t.Errorf("%v\n%s", err, diff)
	}
	for text, says := range map[string]string{
		`{"format":1,"steps":[{"id":"a","intent":{"kind":"rewrite","parts":["etcd"]}}]}`: "format 1, but " +
			"this version reads format 2",
		`{"format":2,"steps":[{"id":"a","intent":{"kind":"rewrite"}}]}`:          `"rewrite" is not a kind of step`,
		`{"format":2,"steps":[{"id":"a","intent":{"kind":"check","parts":[]}}]}`: `unknown field "parts"`,
		`{`: "unexpected end",
	} {
		if _, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error that says %q", text, err, says)
		}
	}
}

// TestSecurityThatIsNotCarriedOutStopsEverything: a cluster without it is not what the manifest asks for.
func TestSecurityThatIsNotCarriedOutStopsEverything(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]decide.Input{"new": bareCluster(3, 1), "healthy": healthyCluster(3, 1)} {
		in.Want.SecurityNotCarriedOut = []string{"features.encryptionProviders"}
		p, decisions := Build(Input{Decide: in})
		if len(p.Steps) > 0 || !strings.Contains(p.Blocked, "features.encryptionProviders") || len(decisions) == 0 {
			t.Errorf("%s: %s", name, planText(p))
		}
	}
}

// A cluster whose machines were made again, without a reset, is another cluster.
func TestAnInstallationIsWholeWhereAnotherCAIsKnown(t *testing.T) {
	t.Parallel()
	in := bareCluster(3, 1)
	unknown, _ := Build(Input{Decide: in})
	in.CA = "sha256:of-the-cluster-before"
	known, _ := Build(Input{Decide: in})
	if !unknown.Complete() || !known.Complete() || known.Digest() != unknown.Digest() {
		t.Errorf("%d steps, again %q; without the CA %d steps", len(known.Steps), known.Again, len(unknown.Steps))
	}
}

// A cluster gets as many DNS servers as the manifest says in the run that makes it, although kubeadm makes two.
func TestAnInstallationSetsTheReplicasOfDNS(t *testing.T) {
	t.Parallel()
	for replicas, want := range map[int32]bool{0: false, 2: false, 3: true} {
		in := bareCluster(1, 0)
		in.System = map[string]string{"kube-dns": "r/coredns"}
		in.Want.Network.DNS.Replicas = replicas
		p, _ := Build(Input{Decide: in})
		s, planned := p.Step("set-system")
		if planned != want || planned && !slices.Contains(s.Needs, "init/cp-1") {
			t.Errorf("%d: planned %t\n%s", replicas, planned, planText(p))
		}
	}
}

// The same where kubeadm makes the Deployment again: once it is there.
func TestReplicasAreSetAfterTheDeploymentIsMade(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 0)
	in.System = map[string]string{"kube-dns": "r/coredns"}
	in.Want.Network.DNS.Replicas = 3
	in.Is.API.Compared = map[string]observed.Comparison{"kube-dns": {Differences: []observed.Difference{
		{Object: "Deployment kube-system/coredns", Missing: true},
	}}}
	p, _ := Build(Input{Decide: in})
	if s, ok := p.Step("set-system"); !ok || !slices.Contains(s.Needs, "system-addons/cp-1") || !p.Complete() {
		t.Errorf("complete %t\n%s", p.Complete(), planText(p))
	}
}

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide"
	"kubeone/internal/decide/rotation"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// setAuthorities gives control-plane hosts what they have of each authority.
func setAuthorities(in decide.Input, names ...string) decide.Input {
	for _, name := range names {
		changeHost(in, name, func(h *observed.Host) {
			h.Authorities = map[string]observed.Authority{}
			for _, of := range observed.Authorities() {
				h.Authorities[of] = observed.Authority{Trusted: []string{"old"}}
			}
		})
	}
	return in
}

// changeAuthority changes what a host has of an authority.
func changeAuthority(in decide.Input, name, of string, a observed.Authority) {
	changeHost(in, name, func(h *observed.Host) {
		if h.Authorities == nil {
			h.Authorities = map[string]observed.Authority{}
		}
		h.Authorities[of] = a
	})
}

// threeKeys returns all authorities but the CA of the cluster.
func threeKeys() []string {
	return []string{observed.EtcdCA, observed.FrontProxyCA, observed.ServiceAccounts}
}

// stepOrder returns the plan's steps, each with what it is about.
func stepOrder(p Plan) []string {
	var out []string
	for _, s := range p.Steps {
		text := s.ID
		if params, ok := s.Intent.Params.(step.RotateParams); ok {
			text += " " + strings.Join(params.Authorities, ",")
			if len(params.NewKeys) > 0 {
				text += " new " + strings.Join(params.NewKeys, ",")
			}
		}
		out = append(out, text)
	}
	return out
}

func TestARotationHasEachPhaseOnAllHostsBeforeTheNext(t *testing.T) {
	t.Parallel()
	in := setAuthorities(healthyCluster(3, 1), "cp-1", "cp-2", "cp-3")
	p, err := RotateCA(in, threeKeys(), true)
	if err != nil || p.Blocked != "" || p.Again != "" {
		t.Fatal(err, p.Blocked, p.Again)
	}
	const all = " etcd,front-proxy,service-account"
	if diff := cmp.Diff([]string{
		"rotate-learn/cp-1" + all + " new" + all, "rotate-learn/cp-2" + all + " new" + all,
		"rotate-learn/cp-3" + all + " new" + all,
		"rotate-use/cp-1" + all, "rotate-use/cp-2" + all, "rotate-use/cp-3" + all,
		"renew-token-secrets", "renew-tokens/cp-1", "renew-tokens/cp-2", "renew-tokens/cp-3", "renew-tokens/w-1",
		"rotate-forget/cp-1" + all, "rotate-forget/cp-2" + all, "rotate-forget/cp-3" + all,
		"trim-front-proxy-ca", "record",
	}, stepOrder(p)); diff != "" {
		t.Error(diff)
	}
	// One host at a time, and no host drops the old key before all tokens are new.
	needs := map[string][]string{}
	for _, s := range p.Steps {
		needs[s.ID] = s.Needs
	}
	for id, want := range map[string][]string{
		"rotate-learn/cp-1": nil, "rotate-learn/cp-2": {"rotate-learn/cp-1"}, "rotate-use/cp-1": {"rotate-learn/cp-3"},
		"renew-tokens/w-1":  {"rotate-use/cp-3"},
		"renew-tokens/cp-1": {"rotate-use/cp-3"}, "renew-tokens/cp-2": {"renew-tokens/cp-1"},
		"rotate-forget/cp-1":  {"renew-token-secrets", "renew-tokens/cp-3", "renew-tokens/w-1"},
		"trim-front-proxy-ca": {"rotate-forget/cp-3"},
	} {
		if diff := cmp.Diff(want, needs[id]); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
	const title = "trust a new key in addition to the present one: the etcd CA, the front proxy CA and the key of " +
		"service accounts"
	if s := p.Steps[0]; s.Risk != Restarts || s.Title != title {
		t.Errorf("%s, %s", s.Title, s.Risk)
	}
}

func TestARotationGoesOnWhereItWasCutOff(t *testing.T) {
	t.Parallel()
	in := setAuthorities(healthyCluster(3, 0), "cp-1", "cp-2", "cp-3")
	if p, err := RotateCA(in, threeKeys(), false); err != nil || !p.Empty() || p.Blocked != "" {
		t.Errorf("nothing has begun: %v, %v", err, stepOrder(p))
	}
	changeAuthority(in, "cp-1", observed.EtcdCA, observed.Authority{Trusted: []string{"new", "old"}})
	changeAuthority(in, "cp-2", observed.EtcdCA, observed.Authority{Trusted: []string{"new", "old"}, Next: "new",
		BegunPhase: "use"})
	changeAuthority(in, "cp-3", observed.EtcdCA, observed.Authority{Trusted: []string{"old", "new"}, Next: "new"})
	for _, anew := range []bool{false, true} {
		p, err := RotateCA(in, threeKeys(), anew)
		if diff := cmp.Diff([]string{
			"rotate-use/cp-2 etcd", "rotate-use/cp-3 etcd",
			"rotate-forget/cp-1 etcd", "rotate-forget/cp-2 etcd", "rotate-forget/cp-3 etcd", "record",
		}, stepOrder(p)); err != nil || diff != "" {
			t.Errorf("anew %t: %v %s", anew, err, diff)
		}
	}
}

func TestNothingIsRotatedWhereSomebodyWouldNotHearOfIt(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*decide.Input){
		"cp-2 is unreachable: ": func(in *decide.Input) { replaceHost(*in, "cp-2", silentHost) },
		"cp-2 is restartable: ": func(in *decide.Input) { replaceHost(*in, "cp-2", stoppedHost) },
		"control-plane host cp-9 is not in the manifest": func(in *decide.Input) {
			in.Is.Etcd.Members = append(slices.Clone(in.Is.Etcd.Members),
				observed.Member{ID: "9", Name: "cp-9", Healthy: observed.Yes})
		},
		"a control-plane host does not report what it trusts for front-proxy": func(in *decide.Input) {
			changeAuthority(*in, "cp-3", observed.FrontProxyCA, observed.Authority{})
		},
	} {
		in := setAuthorities(healthyCluster(3, 0), "cp-1", "cp-2", "cp-3")
		change(&in)
		p, err := RotateCA(in, threeKeys(), true)
		if err != nil || !strings.Contains(p.Blocked, want) || len(p.Steps) > 0 {
			t.Errorf("want %q: %v, %q, %v", want, err, p.Blocked, stepOrder(p))
		}
	}
	in := setAuthorities(healthyCluster(3, 0), "cp-1", "cp-2", "cp-3")
	in.Is.Etcd.Members[1].Healthy = observed.No
	if p, err := RotateCA(in, []string{observed.EtcdCA}, true); err == nil && p.Blocked == "" {
		t.Errorf("a member is stopped although another one is dead: %v", stepOrder(p))
	}
}

// The former key of service accounts stays trusted while it is unknown whether all pods have tokens of the new one.
func TestTokensThatNobodySeesKeepTheFormerKey(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*decide.Input){
		"w-1 (unreachable)": func(in *decide.Input) { replaceHost(*in, "w-1", silentHost) },
		"pool-1 (not in the manifest)": func(in *decide.Input) {
			in.Is.API.Nodes = append(slices.Clone(in.Is.API.Nodes), observed.Node{Name: "pool-1", Ready: observed.Yes})
		},
	} {
		in := setAuthorities(healthyCluster(1, 1), "cp-1")
		change(&in)
		p, err := RotateCA(in, threeKeys(), true)
		const all = " etcd,front-proxy,service-account"
		if diff := cmp.Diff([]string{
			"rotate-learn/cp-1" + all + " new" + all, "rotate-use/cp-1" + all,
			"rotate-forget/cp-1 etcd,front-proxy", "trim-front-proxy-ca", "record",
		}, stepOrder(p)); err != nil || diff != "" || !strings.Contains(p.Again, want) {
			t.Errorf("%v, %q %s", err, p.Again, diff)
		}
		s, _ := p.Step("rotate-use/cp-1")
		if !slices.Contains(s.Changes, "outage: the API does not answer during this time") {
			t.Errorf("changes %q", s.Changes)
		}
	}
}

func TestNamesOfAuthorities(t *testing.T) {
	t.Parallel()
	in := setAuthorities(healthyCluster(2, 0), "cp-1", "cp-2")
	if got, err := RotationGoals([]string{"front-proxy", "etcd", "etcd"}, in); err != nil ||
		!slices.Equal(got, []string{"etcd", "front-proxy"}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := RotationGoals(nil, in); err != nil || !slices.Equal(got, threeKeys()) {
		t.Errorf("%v, %v", got, err)
	}
	changeAuthority(in, "cp-1", observed.ClusterCA, observed.Authority{Trusted: []string{"old", "new"}, Next: "new"})
	if got, err := RotationGoals(nil, in); err != nil || !slices.Equal(got, observed.Authorities()) {
		t.Errorf("where the rotation of the cluster's has begun: %v, %v", got, err)
	}
	const says = `the key of authority "ca" cannot be rotated; choose from cluster, etcd, front-proxy, service-account`
	if _, err := RotationGoals([]string{"ca"}, in); fmt.Sprint(err) != says {
		t.Error(err)
	}
}

// Whatever some hosts have done already, a plan ends with one key, the same, on all of them.
// statesOfARotation are those in which a host can be found.
func statesOfARotation() []observed.Authority {
	return []observed.Authority{
		{Trusted: []string{"old"}}, {Trusted: []string{"old", "new"}, Next: "new"},
		{Trusted: []string{"old", "new"}, Next: "new", BegunPhase: "learn"}, {Trusted: []string{"old", "new"}},
		{Trusted: []string{"new", "old"}, Next: "new", BegunPhase: "use"}, {Trusted: []string{"new", "old"}},
		{Trusted: []string{"new"}, BegunPhase: "forget"}, {Trusted: []string{"new"}},
	}
}

func TestEveryPlanOfARotationEndsIt(t *testing.T) {
	t.Parallel()
	states := statesOfARotation()
	for _, one := range states {
		for _, two := range states {
			in := setAuthorities(healthyCluster(2, 0), "cp-1", "cp-2")
			changeAuthority(in, "cp-1", observed.EtcdCA, one)
			changeAuthority(in, "cp-2", observed.EtcdCA, two)
			p, err := RotateCA(in, []string{observed.EtcdCA}, false)
			if err != nil || p.Blocked != "" {
				t.Fatal(err, p.Blocked)
			}
			w := step.NewWorld(in, p.Hosts, 0)
			for _, s := range p.Steps {
				if s.Intent.Kind.OnHost() {
					h, _ := in.Want.Host(s.Host)
					w.Predict(h, s.Intent)
				}
			}
			hosts := rotation.HostsOf(in.Want.ControlPlane, w.Is.Hosts)
			if begun := rotation.Begun(hosts); len(begun) > 0 {
				t.Errorf("%+v and %+v: %v ends with %+v", one, two, stepOrder(p), hosts)
			}
		}
	}
}

// clusterCA plans the rotation of the CA of the cluster alone.
func clusterCA(t *testing.T, in decide.Input, anew bool) Plan {
	t.Helper()
	p, err := RotateCA(in, []string{observed.ClusterCA}, anew)
	if err != nil || p.Blocked != "" {
		t.Fatal(err, p.Blocked)
	}
	return p
}

// The CA of the cluster is learnt by everybody before it signs: a run ends there, and the next ones continue when pods
// know it, and by its certificates.
func TestTheClustersOwnCAIsLearntByEverybodyFirst(t *testing.T) {
	t.Parallel()
	in := setAuthorities(healthyCluster(2, 2), "cp-1", "cp-2")
	for _, worker := range []string{"w-1", "w-2"} {
		changeAuthority(in, worker, observed.ClusterCA, observed.Authority{Trusted: []string{"old"}})
	}
	p := clusterCA(t, in, true)
	if diff := cmp.Diff([]string{
		"rotate-learn/cp-1 cluster new cluster", "rotate-learn/cp-2 cluster new cluster", "publish-ca",
		"learn-ca/w-1", "learn-ca/w-2", "record",
	}, stepOrder(p)); diff != "" || !strings.Contains(p.Again, "restart pods") {
		t.Errorf("%q %s", p.Again, diff)
	}

	learnt := observed.Authority{Trusted: []string{"old", "new"}, Next: "new"}
	for _, name := range []string{"cp-1", "cp-2"} {
		changeAuthority(in, name, observed.ClusterCA, learnt)
	}
	changeAuthority(in, "w-1", observed.ClusterCA, observed.Authority{Trusted: []string{"old", "new"}})
	p = clusterCA(t, in, false)
	if diff := cmp.Diff([]string{"publish-ca", "learn-ca/w-2", "record"}, stepOrder(p)); diff != "" ||
		!strings.Contains(p.Again, "restart pods") {
		t.Errorf("%q %s", p.Again, diff)
	}
	changeAuthority(in, "w-2", observed.ClusterCA, observed.Authority{Trusted: []string{"old", "new"}})
	p = clusterCA(t, in, false)
	if diff := cmp.Diff([]string{
		"publish-ca", "pods-trust-ca", "rotate-use/cp-1 cluster", "rotate-use/cp-2 cluster", "record",
	}, stepOrder(p)); diff != "" || !strings.Contains(p.Again, "once no certificate that it has signed is in use") {
		t.Errorf("%q %s", p.Again, diff)
	}
	if s, _ := p.Step("rotate-use/cp-1"); !slices.Equal(s.Needs, []string{"pods-trust-ca"}) ||
		!strings.Contains(strings.Join(s.Changes, "\n"), "reject the API server") {
		t.Errorf("it signs after %v, which changes %q", s.Needs, s.Changes)
	}

	used := observed.Authority{Trusted: []string{"new", "old"}, BegunPhase: observed.Used}
	changeAuthority(in, "cp-1", observed.ClusterCA, used)
	p = clusterCA(t, in, false) // what API servers show has changed by now: no pod is looked at again
	if diff := cmp.Diff([]string{"publish-ca", "rotate-use/cp-2 cluster", "record"}, stepOrder(p)); diff != "" {
		t.Error(diff)
	}
	changeAuthority(in, "cp-1", observed.ClusterCA, observed.Authority{
		Trusted: []string{"new", "old"}, Next: "new", BegunPhase: string(rotation.Use),
	})
	if p := clusterCA(t, in, false); slices.Contains(stepOrder(p), "pods-trust-ca") {
		t.Errorf("a host has begun to sign, and pods are looked at: %v", stepOrder(p))
	}

	changeAuthority(in, "cp-1", observed.ClusterCA, used)
	changeAuthority(in, "cp-2", observed.ClusterCA, used)
	p = clusterCA(t, in, false)
	if diff := cmp.Diff([]string{
		"regenerate/cp-1", "regenerate/cp-2", "regenerate/w-1", "regenerate/w-2", "publish-ca-alone",
		"forget-ca/w-1", "forget-ca/w-2", "rotate-forget/cp-1 cluster", "rotate-forget/cp-2 cluster",
		"trim-client-ca", "revoke-tokens", "record",
	}, stepOrder(p)); diff != "" || p.Again != "" {
		t.Errorf("%q %s", p.Again, diff)
	}
	if s, _ := p.Step("regenerate/w-2"); !slices.Contains(s.Needs, "regenerate/w-1") {
		t.Errorf("all workers' kubelets are without certificates at the same time: %v", s.Needs)
	}
	if s, _ := p.Step("rotate-forget/cp-1"); !strings.Contains(strings.Join(s.Changes, "\n"), "are refused") {
		t.Errorf("nobody is told of kubeconfigs: %q", s.Changes)
	}
}

// No host signs with a CA that another does not know, or drops one that another still presents.
func TestAWorkerThatIsAwayHoldsUpTheClustersCA(t *testing.T) {
	t.Parallel()
	in := setAuthorities(healthyCluster(1, 1), "cp-1")
	changeAuthority(in, "cp-1", observed.ClusterCA, observed.Authority{Trusted: []string{"old", "new"}, Next: "new"})
	replaceHost(in, "w-1", silentHost)
	if p := clusterCA(t, in, false); slices.ContainsFunc(stepOrder(p), func(s string) bool {
		return strings.HasPrefix(s, "rotate-use")
	}) || !strings.Contains(p.Again, "w-1 (unreachable)") {
		t.Errorf("%q %v", p.Again, stepOrder(p))
	}
	changeAuthority(in, "cp-1", observed.ClusterCA, observed.Authority{Trusted: []string{"new", "old"},
		BegunPhase: observed.Used})
	if p := clusterCA(t, in, false); len(p.Steps) > 0 || !strings.Contains(p.Again, "w-1 (unreachable)") {
		t.Errorf("%q %v", p.Again, stepOrder(p))
	}
}

// If a run is interrupted after all hosts have dropped a CA, extension API servers still trust it: API servers only
// add. The next run removes it, but nothing that was added for an authority that is not being rotated.
func TestWhatExtensionAPIServersStillTrustIsTakenOut(t *testing.T) {
	t.Parallel()
	in := setAuthorities(healthyCluster(1, 1), "cp-1")
	for name, c := range map[string]struct {
		trusted map[string][]string
		asked   []string
		anew    bool
		want    []string
	}{
		"nobody has asked": {nil, []string{observed.ClusterCA}, false, nil},
		"all is well": {map[string][]string{observed.ClusterCA: {"old"}, observed.FrontProxyCA: {"old"}},
			[]string{observed.ClusterCA}, false, nil},
		"a former CA for clients": {map[string][]string{observed.ClusterCA: {"former", "old"}},
			[]string{observed.EtcdCA}, false, []string{"trim-client-ca", "record"}},
		"one of the front proxy": {map[string][]string{observed.FrontProxyCA: {"old", "former"}},
			nil, false, []string{"trim-front-proxy-ca", "record"}},
		"another one is rotated": {map[string][]string{observed.ClusterCA: {"former", "old"}},
			[]string{observed.EtcdCA}, true, []string{
				"rotate-learn/cp-1 etcd new etcd", "rotate-use/cp-1 etcd", "rotate-forget/cp-1 etcd", "record",
			}},
	} {
		in.Is.API.ExtensionCAs = c.trusted
		p, err := RotateCA(in, c.asked, c.anew)
		if diff := cmp.Diff(c.want, stepOrder(p)); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestTheClustersCAIsNotRotatedWithNodesOfOthers(t *testing.T) {
	t.Parallel()
	in := setAuthorities(healthyCluster(1, 0), "cp-1")
	in.Is.API.Nodes = append(slices.Clone(in.Is.API.Nodes), observed.Node{Name: "pool-1", Ready: observed.Yes})
	p, err := RotateCA(in, []string{observed.ClusterCA}, true)
	if err != nil || !strings.Contains(p.Blocked, "not in the manifest") || !strings.Contains(p.Blocked, "pool-1") {
		t.Errorf("%v, %q", err, p.Blocked)
	}
}

// Wherever the rotation of the cluster CA was cut off, the next runs end it, and after no step does anybody sign with
// one that a host, a worker too, does not trust.
func TestEveryHostTrustsWhatTheClustersCASigns(t *testing.T) {
	t.Parallel()
	const worker = "w-1"
	ended := 0
	for _, one := range statesOfARotation() {
		for _, two := range statesOfARotation() {
			for _, third := range [][]string{{"old"}, {"old", "new"}, {"new", "old"}, {"new"}} {
				in := setAuthorities(healthyCluster(2, 1), "cp-1", "cp-2")
				changeAuthority(in, "cp-1", observed.ClusterCA, one)
				changeAuthority(in, "cp-2", observed.ClusterCA, two)
				changeAuthority(in, worker, observed.ClusterCA, observed.Authority{Trusted: third})
				if mistrustingHost(in) != "" {
					continue // these are not visited
				}
				for range 4 {
					p := clusterCA(t, in, false)
					w := step.NewWorld(in, p.Hosts, 0)
					for _, s := range p.Steps {
						if !s.Intent.Kind.OnHost() {
							continue
						}
						h, _ := in.Want.Host(s.Host)
						w.Predict(h, s.Intent)
						in.Is = w.Is
						if why := mistrustingHost(in); why != "" {
							t.Fatalf("%+v, %+v, %v: after %s %s", one, two, third, s.ID, why)
						}
					}
				}
				hosts := rotation.HostsOf(in.Want.ControlPlane, in.Is.Hosts)
				if begun := rotation.Begun(hosts); len(begun) > 0 {
					t.Errorf("%+v, %+v, %v: it ends with %+v", one, two, third, hosts)
				}
				ended++
			}
		}
	}
	if ended < 20 {
		t.Errorf("%d rotations", ended)
	}
}

// mistrustingHost reports which host does not trust a CA that another one signs with; "" if all do.
func mistrustingHost(in decide.Input) string {
	for _, signing := range in.Want.ControlPlane {
		signer := in.Is.Hosts[signing.ID].Authorities[observed.ClusterCA].Signer()
		for _, h := range in.Want.Hosts() {
			if a := in.Is.Hosts[h.ID].Authorities[observed.ClusterCA]; !slices.Contains(a.Trusted, signer) {
				return fmt.Sprintf("%s trusts %v, and %s signs with %s", h.Hostname, a.Trusted, signing.Hostname,
					signer)
			}
		}
	}
	return ""
}

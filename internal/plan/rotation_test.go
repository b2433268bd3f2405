package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide"
	"kubeone/internal/decide/rotation"
	"kubeone/internal/observed"
	"kubeone/internal/step"
)

// signing gives control-plane hosts what they have of each authority.
func signing(in decide.Input, names ...string) decide.Input {
	for _, name := range names {
		mutate(in, name, func(h *observed.Host) {
			h.Authorities = map[string]observed.Authority{}
			for _, of := range observed.Authorities() {
				h.Authorities[of] = observed.Authority{Trusted: []string{"old"}}
			}
		})
	}
	return in
}

// has changes what a host has of an authority.
func has(in decide.Input, name, of string, a observed.Authority) {
	mutate(in, name, func(h *observed.Host) { h.Authorities[of] = a })
}

// course are the plan's steps, each with what it is about.
func course(p Plan) []string {
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
	in := signing(healthy(3, 1), "cp-1", "cp-2", "cp-3")
	p, err := RotateCA(in, observed.Authorities(), true)
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
	}, course(p)); diff != "" {
		t.Error(diff)
	}
	// One host after the other, and no host drops the old key before all tokens are new.
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
	const title = "trust a new key beside the present one: etcd's CA, the front proxy's CA and the key of " +
		"service accounts"
	if s := p.Steps[0]; s.Risk != Restarts || s.Title != title {
		t.Errorf("%s, %s", s.Title, s.Risk)
	}
}

func TestARotationGoesOnWhereItWasCutOff(t *testing.T) {
	t.Parallel()
	in := signing(healthy(3, 0), "cp-1", "cp-2", "cp-3")
	if p, err := RotateCA(in, observed.Authorities(), false); err != nil || !p.Empty() || p.Blocked != "" {
		t.Errorf("nothing has begun: %v, %v", err, course(p))
	}
	has(in, "cp-1", observed.EtcdCA, observed.Authority{Trusted: []string{"new", "old"}})
	has(in, "cp-2", observed.EtcdCA, observed.Authority{Trusted: []string{"new", "old"}, Next: "new", Begun: "use"})
	has(in, "cp-3", observed.EtcdCA, observed.Authority{Trusted: []string{"old", "new"}, Next: "new"})
	for _, anew := range []bool{false, true} {
		p, err := RotateCA(in, observed.Authorities(), anew)
		if diff := cmp.Diff([]string{
			"rotate-use/cp-2 etcd", "rotate-use/cp-3 etcd",
			"rotate-forget/cp-1 etcd", "rotate-forget/cp-2 etcd", "rotate-forget/cp-3 etcd", "record",
		}, course(p)); err != nil || diff != "" {
			t.Errorf("anew %t: %v %s", anew, err, diff)
		}
	}
}

func TestNothingIsRotatedWhereSomebodyWouldNotHearOfIt(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*decide.Input){
		"cp-2 is unreachable: ": func(in *decide.Input) { become(*in, "cp-2", silent) },
		"cp-2 is restartable: ": func(in *decide.Input) { become(*in, "cp-2", stopped) },
		"control-plane host cp-9 is not in the manifest": func(in *decide.Input) {
			in.Is.Etcd.Members = append(slices.Clone(in.Is.Etcd.Members),
				observed.Member{ID: "9", Name: "cp-9", Healthy: observed.Yes})
		},
		"some control-plane host does not say whom it trusts for front-proxy": func(in *decide.Input) {
			has(*in, "cp-3", observed.FrontProxyCA, observed.Authority{})
		},
	} {
		in := signing(healthy(3, 0), "cp-1", "cp-2", "cp-3")
		change(&in)
		p, err := RotateCA(in, observed.Authorities(), true)
		if err != nil || !strings.Contains(p.Blocked, want) || len(p.Steps) > 0 {
			t.Errorf("want %q: %v, %q, %v", want, err, p.Blocked, course(p))
		}
	}
	in := signing(healthy(3, 0), "cp-1", "cp-2", "cp-3")
	in.Is.Etcd.Members[1].Healthy = observed.No
	if p, err := RotateCA(in, []string{observed.EtcdCA}, true); err == nil && p.Blocked == "" {
		t.Errorf("a member is stopped although another one is dead: %v", course(p))
	}
}

// The former key of service accounts stays trusted while nobody knows whether all pods have tokens of the new one.
func TestTokensThatNobodySeesKeepTheFormerKey(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*decide.Input){
		"w-1 (unreachable)": func(in *decide.Input) { become(*in, "w-1", silent) },
		"pool-1 (not of the manifest)": func(in *decide.Input) {
			in.Is.API.Nodes = append(slices.Clone(in.Is.API.Nodes), observed.Node{Name: "pool-1", Ready: observed.Yes})
		},
	} {
		in := signing(healthy(1, 1), "cp-1")
		change(&in)
		p, err := RotateCA(in, observed.Authorities(), true)
		const all = " etcd,front-proxy,service-account"
		if diff := cmp.Diff([]string{
			"rotate-learn/cp-1" + all + " new" + all, "rotate-use/cp-1" + all,
			"rotate-forget/cp-1 etcd,front-proxy", "trim-front-proxy-ca", "record",
		}, course(p)); err != nil || diff != "" || !strings.Contains(p.Again, want) {
			t.Errorf("%v, %q %s", err, p.Again, diff)
		}
		if s, _ := p.Step("rotate-use/cp-1"); !slices.Contains(s.Changes, "outage: the API does not answer meanwhile") {
			t.Errorf("changes %q", s.Changes)
		}
	}
}

func TestNamesOfAuthorities(t *testing.T) {
	t.Parallel()
	if got, err := RotationGoals([]string{"front-proxy", "etcd", "etcd"}); err != nil ||
		!slices.Equal(got, []string{"etcd", "front-proxy"}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := RotationGoals(nil); err != nil || !slices.Equal(got, observed.Authorities()) {
		t.Errorf("%v, %v", got, err)
	}
	const says = `"ca" is no authority whose key can be rotated; those are etcd, front-proxy, service-account`
	if _, err := RotationGoals([]string{"ca"}); fmt.Sprint(err) != says {
		t.Error(err)
	}
}

// Whatever some hosts have done already, a plan ends with one key, the same, on all of them.
func TestEveryPlanOfARotationEndsIt(t *testing.T) {
	t.Parallel()
	states := []observed.Authority{
		{Trusted: []string{"old"}}, {Trusted: []string{"old", "new"}, Next: "new"},
		{Trusted: []string{"old", "new"}, Next: "new", Begun: "learn"}, {Trusted: []string{"old", "new"}},
		{Trusted: []string{"new", "old"}, Next: "new", Begun: "use"}, {Trusted: []string{"new", "old"}},
		{Trusted: []string{"new"}, Begun: "forget"}, {Trusted: []string{"new"}},
	}
	for _, one := range states {
		for _, two := range states {
			in := signing(healthy(2, 0), "cp-1", "cp-2")
			has(in, "cp-1", observed.EtcdCA, one)
			has(in, "cp-2", observed.EtcdCA, two)
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
				t.Errorf("%+v and %+v: %v ends with %+v", one, two, course(p), hosts)
			}
		}
	}
}

package apply

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/rotation"
	"kubeone/internal/host"
	"kubeone/internal/keys/authority"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/script"
	"kubeone/internal/testutil/authoritytest"
	"kubeone/internal/testutil/hostfake"
)

var rotatedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// pairs are two key pairs of each authority: the signing one and the next one.
type pairs struct{ old, new map[string]authority.Pair }

func newPairs(t *testing.T) pairs {
	t.Helper()
	p := pairs{map[string]authority.Pair{}, map[string]authority.Pair{}}
	for _, name := range observed.Authorities() {
		first := []byte(authoritytest.CA)
		if name == observed.ServiceAccounts {
			first = []byte(firstPublic)
		}
		for _, into := range []map[string]authority.Pair{p.old, p.new} {
			made, err := authority.New(rotatedAt, first)
			if err != nil {
				t.Fatal(err)
			}
			into[name] = made
		}
	}
	return p
}

// files returns the files of a host that trusts these pairs, signs with the first, and may have the next key.
func files(name string, trusted []authority.Pair, next *authority.Pair, begun string) map[string][]byte {
	at, public := authority.FilesOf(name), authority.Public{}
	for _, p := range trusted {
		public = public.With(p.Public)
	}
	out := map[string][]byte{at.Public: public.Text(), at.Key: trusted[0].KeyText()}
	if next != nil {
		out["next/"+at.Next()], out["next/"+at.NextKey()] = next.Public.Text(), next.KeyText()
	}
	if begun != "" {
		out[script.RotationFile] = []byte(name + " " + begun + "\n")
	}
	return out
}

// rotationRun is a run on control-plane hosts a, b, … with these files. Nil is an unreachable host; a host without
// files is not a member.
func rotationRun(t *testing.T, has ...map[string][]byte) *Run {
	t.Helper()
	r := &Run{Hosts: map[string]host.Host{}, Plan: plan.Plan{Hosts: map[string]string{}},
		Now: func() time.Time { return rotatedAt }}
	for i, files := range has {
		id := string(rune('a' + i))
		r.Plan.Hosts[id] = "cp-" + id
		r.Want.ControlPlane = append(r.Want.ControlPlane, desired.Host{ID: id, Role: desired.ControlPlane})
		if files == nil {
			continue
		}
		said := ""
		if len(files) > 0 {
			text, err := authority.WriteArchive(files, rotatedAt)
			if err != nil {
				t.Fatal(err)
			}
			said = string(text)
		}
		r.Hosts[id] = hostfake.New(t, "cp-"+id,
			hostfake.Expect{Name: "read the keys of authorities", Stdout: said, Times: -1})
	}
	return r
}

func rotateStep(p step.RotateParams) plan.Step {
	return plan.Step{ID: "rotate", Host: "a", Intent: step.With(p)}
}

// given returns the files that a step's host gets.
func given(t *testing.T, r *Run, s plan.Step) map[string][]byte {
	t.Helper()
	secret, err := r.secretFiles(t.Context(), s, step.RotationSecret)
	if err != nil {
		t.Fatal(err)
	}
	out, err := authority.ReadArchive(secret[script.AuthoritiesFile])
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.secretFiles(t.Context(), s, step.RotationSecret)
	if err != nil || !bytes.Equal(again[script.AuthoritiesFile], secret[script.AuthoritiesFile]) {
		t.Errorf("a step that is tried again gets something else: %v", err)
	}
	return out
}

func TestAHostLearnsOfAKeyThatIsMade(t *testing.T) {
	t.Parallel()
	p := newPairs(t)
	for _, name := range observed.Authorities() {
		old, at := p.old[name], authority.FilesOf(name)
		has := files(name, []authority.Pair{old}, nil, "")
		r := rotationRun(t, has, has, map[string][]byte{})
		got := given(t, r, rotateStep(step.RotateParams{
			Phase: rotation.Learn, Authorities: []string{name}, NewKeys: []string{name},
		}))
		made, err := authority.ParsePair(got["next/"+at.Next()], got["next/"+at.NextKey()])
		if err != nil || made.ID() == old.ID() {
			t.Fatalf("%s: %v, %v", name, made, err)
		}
		trusted, most := authority.Keys(got[at.Public]), 3
		if name == observed.ClusterCA {
			most++ // clients that know the former CA know this one
			if !slices.Contains(authority.Followers(old.ID(), got[authority.Succession]), made.ID()) {
				t.Error("the next CA of the cluster has no signature of the present one")
			}
		}
		if diff := cmp.Diff([]string{old.ID(), made.ID()}, trusted); diff != "" || len(got) != most {
			t.Errorf("%s: %d files, %s", name, len(got), diff)
		}
	}
}

func TestAHostGetsTheKeyThatAnotherOneHas(t *testing.T) {
	t.Parallel()
	const name = observed.EtcdCA
	p := newPairs(t)
	old, next := p.old[name], p.new[name]
	learnt := files(name, []authority.Pair{old, next}, &next, "")
	at := authority.FilesOf(name)

	got := given(t, rotationRun(t, files(name, []authority.Pair{old}, nil, ""), learnt), rotateStep(step.RotateParams{
		Phase: rotation.Learn, Authorities: []string{name}, NewKeys: []string{name}, // planned before b was given one
	}))
	if !bytes.Equal(got["next/"+at.NextKey()], next.KeyText()) {
		t.Error("a key is made although another host has one")
	}

	// A key without its certificate, from an exchange cut off between the two, belongs to neither.
	half := files(name, []authority.Pair{old, next}, &next, "use")
	half[at.Key] = next.KeyText()
	used := files(name, []authority.Pair{next, old}, nil, "")
	for text, r := range map[string]*Run{
		"of its own":    rotationRun(t, learnt, learnt),
		"half there":    rotationRun(t, half, learnt),
		"of who signs":  rotationRun(t, files(name, []authority.Pair{old, next}, &next, ""), used),
		"already there": rotationRun(t, files(name, []authority.Pair{next, old}, &next, "use"), used),
	} {
		got := given(t, r, rotateStep(step.RotateParams{Phase: rotation.Use, Authorities: []string{name}}))
		if diff := cmp.Diff([]string{next.ID(), old.ID()}, authority.Keys(got[at.Public])); diff != "" ||
			!bytes.Equal(got[at.Key], next.KeyText()) || len(got) != 2 {
			t.Errorf("%s: %d files, %s", text, len(got), diff)
		}
	}

	got = given(t, rotationRun(t, used, used), rotateStep(step.RotateParams{
		Phase: rotation.Forget, Authorities: []string{name},
	}))
	if diff := cmp.Diff(map[string][]byte{at.Public: next.Public.Text()}, got); diff != "" {
		t.Error(diff)
	}
}

// The hosts' state when a step begins overrides the plan.
func TestAPhaseThatIsNotTheNextOneIsRefused(t *testing.T) {
	t.Parallel()
	const name = observed.FrontProxyCA
	p := newPairs(t)
	old, next := p.old[name], p.new[name]
	odd := map[string][]byte{"x": nil}
	settled, learnt := files(name, []authority.Pair{old}, nil, ""), files(name, []authority.Pair{old, next}, &next, "")
	for text, c := range map[string]struct {
		r     *Run
		phase rotation.Phase
		says  string
	}{
		"used before all have learnt":  {rotationRun(t, learnt, settled), rotation.Use, errPhaseChanged.Error()},
		"forgotten before all use it":  {rotationRun(t, learnt, learnt), rotation.Forget, errPhaseChanged.Error()},
		"one is away":                  {rotationRun(t, learnt, nil), rotation.Use, "cp-b was not reached"},
		"one has something else there": {rotationRun(t, learnt, odd), rotation.Use, "not the cert"},
		"no host is a member":          {rotationRun(t, map[string][]byte{}), rotation.Learn, "no control-plane host"},
		"the private key is missing": {rotationRun(t, func() map[string][]byte {
			f := files(name, []authority.Pair{old, next}, &next, "")
			f["next/front-proxy-ca.key"] = old.KeyText()
			return f
		}()), rotation.Use, "no control-plane host has the private key"},
	} {
		_, err := c.r.secretFiles(t.Context(),
			rotateStep(step.RotateParams{Phase: c.phase, Authorities: []string{name}}),
			step.RotationSecret)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", text, err, c.says)
		}
	}
}

// Workers learn the cluster's CAs once all control-plane hosts are ready for that.
func TestWorkersTrustWhatTheControlPlaneDoes(t *testing.T) {
	t.Parallel()
	const name = observed.ClusterCA
	p := newPairs(t)
	old, next := p.old[name], p.new[name]
	settled, learnt := files(name, []authority.Pair{old}, nil, ""), files(name, []authority.Pair{old, next}, &next, "")
	used := files(name, []authority.Pair{next, old}, nil, "")
	for text, c := range map[string]struct {
		r    *Run
		kind step.Kind
		want []string // nil: refused
	}{
		"one has not learnt":     {rotationRun(t, learnt, settled), step.LearnCA, nil},
		"all have":               {rotationRun(t, learnt, learnt), step.LearnCA, []string{old.ID(), next.ID()}},
		"one signs with the old": {rotationRun(t, used, learnt), step.ForgetCA, nil},
		"all sign with the new":  {rotationRun(t, used, used), step.ForgetCA, []string{next.ID()}},
		"one is away":            {rotationRun(t, used, nil), step.ForgetCA, nil},
	} {
		s := plan.Step{ID: "worker", Host: "w", Intent: step.Intent{Kind: c.kind}}
		secret, err := c.r.secretFiles(t.Context(), s, step.RotationSecret)
		if c.want == nil {
			if err == nil {
				t.Errorf("%s: it is not refused", text)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := authority.ReadArchive(secret[script.AuthoritiesFile])
		if diff := cmp.Diff(c.want, authority.Keys(got["ca.crt"])); err != nil || diff != "" || len(got) != 1 {
			t.Errorf("%s: %v, %d files, %s", text, err, len(got), diff)
		}
	}
}

func TestKeysOfTokensThatAreDropped(t *testing.T) {
	t.Parallel()
	const name = observed.ServiceAccounts
	p := newPairs(t)
	old, next := p.old[name], p.new[name]
	used := files(name, []authority.Pair{next, old}, nil, "")
	s := plan.Step{ID: "renew-tokens", Host: "w", Intent: step.Intent{Kind: step.RenewTokens}}
	got, err := rotationRun(t, used, used).secretFiles(t.Context(), s, step.RotationSecret)
	if want := authority.TokenKeyID(old.ID()) + "\n"; err != nil || string(got[script.TokenKeysFile]) != want {
		t.Errorf("%s, %v", got, err)
	}
	for text, has := range map[string]map[string][]byte{
		"tokens are still signed by the former key":    files(name, []authority.Pair{old, next}, &next, ""),
		"a host was given another key to sign with":    files(name, []authority.Pair{next, old}, &old, ""),
		"the exchange of keys on a host has not ended": files(name, []authority.Pair{next, old}, nil, "use"),
	} {
		r := rotationRun(t, used, has)
		if _, err := r.secretFiles(t.Context(), s, step.RotationSecret); !errors.Is(err, errPhaseChanged) {
			t.Errorf("on a worker, %s: %v", text, err)
		}
		api := &tokenSecrets{}
		if err := r.renewTokenSecrets(t.Context(), api, plan.Step{}); !errors.Is(err, errPhaseChanged) || api.asked {
			t.Errorf("through the API, %s: asked %t, %v", text, api.asked, err)
		}
	}
}

// tokenSecrets is an API that records whether tokens in Secrets were renewed.
type tokenSecrets struct {
	API
	asked bool
}

func (s *tokenSecrets) RenewTokenSecrets(context.Context, []string, func(namespace, name string)) error {
	s.asked = true
	return nil
}

// firstPublic is a public key that new ones are derived from.
const firstPublic = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQUKQyAl6eaNNq39wEPB3d4UvSIp7
+zuq5K6jhShbt9yGsLJstjJCOGM+lenAgbS1zfkiHV+74lZtv741c+ll2A==
-----END PUBLIC KEY-----
`

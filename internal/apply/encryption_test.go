package apply

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/decide/atrest"
	"kubeone/internal/host"
	"kubeone/internal/keys/encryption"
	"kubeone/internal/model/desired"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/script"
	"kubeone/internal/testutil/hostfake"
)

func keyOf(t *testing.T, name, seed string) encryption.Key {
	t.Helper()
	k, err := encryption.NewKey(name, strings.NewReader(strings.Repeat(seed, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// keysRun is a run on control-plane hosts a, b, … with these answers about their keys; "" is an unreachable host.
func keysRun(t *testing.T, said ...string) *Run {
	t.Helper()
	r := &Run{Hosts: map[string]host.Host{}, Plan: plan.Plan{Hosts: map[string]string{}}}
	for i, text := range said {
		id := string(rune('a' + i))
		r.Plan.Hosts[id] = "cp-" + id
		r.Want.ControlPlane = append(r.Want.ControlPlane, desired.Host{ID: id, Role: desired.ControlPlane})
		if text == "" {
			continue
		}
		e := hostfake.Expect{Name: "read the keys for Secrets", Stdout: strings.TrimPrefix(text, "empty"), Times: -1}
		if text == "fails" {
			e = hostfake.Expect{Err: &host.Error{Class: host.Unreachable}, Times: -1}
		}
		r.Hosts[id] = hostfake.New(t, "cp-"+id, e)
	}
	return r
}

func saying(c encryption.Config) string { return "member\nconfig\n" + string(c.Text()) }

func encryptStep(p step.EncryptParams) plan.Step {
	return plan.Step{ID: "encrypt", Host: "a", Intent: step.With(p)}
}

// keysInStepFile returns the keys in the step's file, or nil if the step gets no file.
func keysInStepFile(t *testing.T, r *Run, s plan.Step) (encryption.Config, error) {
	t.Helper()
	config, err := r.encryptionConfig(t.Context(), s)
	if err != nil || config == nil {
		return nil, err
	}
	files, err := r.secretFiles(t.Context(), s, step.EncryptionSecret)
	if err != nil {
		t.Fatal(err)
	}
	repeated, err := encryption.Parse(files[script.EncryptionFile])
	if err != nil || !slices.Equal(repeated, config) {
		t.Errorf("%v, %v: a step that is retried gets other keys", repeated, err)
	}
	return repeated, nil
}

func TestAHostGetsTheKeysOfTheOthers(t *testing.T) {
	t.Parallel()
	one, two := keyOf(t, "kubeone-1", "a"), keyOf(t, "kubeone-2", "b")
	r := keysRun(t, "member\nlost\n", saying(encryption.Config{one, two}), "fails")
	got, err := keysInStepFile(t, r, encryptStep(step.EncryptParams{
		Phase: atrest.Give, Providers: []string{"kubeone-2", "kubeone-1"},
	}))
	if err != nil || !slices.Equal(got, encryption.Config{two, one}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := keysInStepFile(t, r, encryptStep(step.EncryptParams{Phase: atrest.Forget})); err != nil || got != nil {
		t.Errorf("the end of encryption needs no keys: %v, %v", got, err)
	}
	if _, err := keysInStepFile(t, r, encryptStep(step.EncryptParams{Providers: []string{"kubeone-3"}})); err == nil {
		t.Error("no host has that key")
	}
}

func TestNewKeyNeedsEveryHostWithoutIt(t *testing.T) {
	t.Parallel()
	learn := encryptStep(step.EncryptParams{
		Phase: atrest.Learn, Providers: []string{"identity", "kubeone-1"}, NewKey: "kubeone-1",
	})
	r := keysRun(t, "member\n", "member\n")
	first, err := keysInStepFile(t, r, learn)
	if err != nil || !slices.Equal(first.Names(), []string{"identity", "kubeone-1"}) {
		t.Fatalf("%v, %v", first, err)
	}
	// An earlier run has uploaded it to a host.
	one := keyOf(t, "kubeone-1", "a")
	got, err := keysInStepFile(t, keysRun(t, "member\n", saying(encryption.Config{encryption.IdentityKey(), one})), learn)
	if err != nil || got.Find("kubeone-1") == nil || *got.Find("kubeone-1") != one {
		t.Errorf("%v, %v", got, err)
	}
	for name, said := range map[string]string{
		"silent": "", "broken off": "fails", "lost": "member\nlost\n", "odd": "odd",
	} {
		if _, err := keysInStepFile(t, keysRun(t, "member\n", said), learn); err == nil {
			t.Errorf("%s: a host may have a key of that name", name)
		}
	}
}

func TestDifferentKeysOfOneNameStopAStep(t *testing.T) {
	t.Parallel()
	r := keysRun(t, saying(encryption.Config{keyOf(t, "kubeone-1", "a")}),
		saying(encryption.Config{keyOf(t, "kubeone-1", "b")}))
	_, err := keysInStepFile(t, r, encryptStep(step.EncryptParams{Providers: []string{"kubeone-1"}}))
	var different *encryption.DifferentKeysError
	if !errors.As(err, &different) {
		t.Errorf("%v", err)
	}
}

func TestAHostThatJoinsGetsAllKeys(t *testing.T) {
	t.Parallel()
	one, two := keyOf(t, "kubeone-1", "a"), keyOf(t, "kubeone-2", "b")
	join := plan.Step{ID: "pki", Host: "a", Intent: step.With(step.CopyPKIParams{Peer: "c"})}
	r := keysRun(t, "empty", saying(encryption.Config{two, one}), saying(encryption.Config{one}))
	got, err := keysInStepFile(t, r, join)
	if err != nil || !slices.Equal(got, encryption.Config{one, two}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := keysInStepFile(t, keysRun(t, "empty", "member\n", "member\n"), join); err != nil || got != nil {
		t.Errorf("nothing is encrypted: %v, %v", got, err)
	}
	if _, err := keysInStepFile(t, keysRun(t, "empty", "member\n", "member\nlost\n"), join); err == nil {
		t.Error("the host that it is to be like has lost its keys")
	}
}

func TestNewClusterStartsWithEncryptionKey(t *testing.T) {
	t.Parallel()
	begin := plan.Step{ID: "init", Host: "a", Intent: step.Intent{Kind: step.Init}}
	r := keysRun(t, "empty", "")
	if got, err := keysInStepFile(t, r, begin); err != nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
	r.Want.EncryptSecrets = true
	if got, err := keysInStepFile(t, r, begin); err != nil || !slices.Equal(got.Names(), []string{atrest.FirstKey}) {
		t.Errorf("%v, %v", got, err)
	}
	one := keyOf(t, "kubeone-1", "a")
	r = keysRun(t, "config\n"+string(encryption.Config{one}.Text()))
	r.Want.EncryptSecrets = true
	if got, err := keysInStepFile(t, r, begin); err != nil || !slices.Equal(got, encryption.Config{one}) {
		t.Errorf("an installation that goes on: %v, %v", got, err)
	}
}

package step

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
)

func TestIntentsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	seconds := 3
	for want, i := range map[string]Intent{
		`{"kind":"quarantine"}`: {Kind: Quarantine},
		`{"kind":"restart-units","role":"worker","nodeName":"w-1","units":["kubelet"]}`: {
			Kind: RestartUnits, Role: desired.Worker, NodeName: "w-1",
			Params: RestartUnitsParams{Units: []string{"kubelet"}},
		},
		`{"kind":"drain-node","timeoutSeconds":60,"onTimeout":"skip",` +
			`"graceSeconds":3,"upgrade":true,"maxUnavailable":2}`: With(
			DrainNodeParams{TimeoutSeconds: 60, OnTimeout: SkipOnTimeout, GraceSeconds: &seconds, Upgrade: true,
				MaxUnavailable: 2},
		),
		`{"kind":"prepare","uploads":["b1"],"packages":["iptables"]}`: With(
			PrepareParams{Content: Content{Uploads: []string{"b1"}}, Packages: []string{"iptables"}},
		),
		`{"kind":"remove-etcd","member":"c","peer":"3","confirm":true}`: With(
			RemoveEtcdParams{Member: "c", Death: Death{Peer: "3", Confirm: true}},
		),
		`{"kind":"reset"}`: With(ResetHostParams{}),
	} {
		text, err := json.Marshal(i)
		if err != nil || string(text) != want {
			t.Errorf("written as %s, want %s (%v)", text, want, err)
		}
		var read Intent
		if err := json.Unmarshal(text, &read); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(i, read); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestWhatNoKindHasIsRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		`{"kind":"rewrite"}`:                     `"rewrite" is not a kind of step`,
		`{}`:                                     `"" is not a kind of step`,
		`{"kind":"check","units":["kubelet"]}`:   `unknown field "units"`,
		`{"kind":"images","packages":["x"]}`:     `unknown field "packages"`,
		`{"kind":"restart-units","units":"all"}`: "cannot unmarshal",
		`{"kind":7}`:                             "cannot unmarshal",
		`[]`:                                     "cannot unmarshal",
	} {
		var i Intent
		if err := json.Unmarshal([]byte(text), &i); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error that says %s", text, err, says)
		}
	}
}

func TestParametersOfAnotherKindAreNotWritten(t *testing.T) {
	t.Parallel()
	if _, err := json.Marshal(Intent{Kind: Check, Params: DrainNodeParams{}}); err == nil {
		t.Error("written")
	}
}

func TestVariablesAreThereWithoutASteps(t *testing.T) {
	t.Parallel()
	none := Variables(nil)
	some := Variables([]Intent{{Kind: Check}, With(RegenerateParams{Parts: []string{"etcd", "kubelet-credentials"}})})
	if len(none) != len(some) {
		t.Fatalf("%v and %v", none, some)
	}
	for n := range none {
		want := ""
		if none[n].Name == "PARTS" {
			want = "etcd kubelet-credentials"
		}
		empty, err := none[n].Value()
		value, failed := some[n].Value()
		if empty != "" || value != want || some[n].Name != none[n].Name || err != nil || failed != nil {
			t.Errorf("%v and %v, want %q", none[n], some[n], want)
		}
	}
}

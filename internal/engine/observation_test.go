package engine

import (
	"strings"
	"testing"

	"kubeone/internal/cluster"
	"kubeone/internal/decide"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/probe"
)

// A request reads additional facts only where they matter.
func TestWhichFactsARequestNeeds(t *testing.T) {
	t.Parallel()
	want := wanted("demo")
	well := Proposal{Want: want, Observed: probe.Result{
		World: living(want, observed.Host{}), Access: &cluster.Access{},
	}}
	silent, old := well, well
	silent.Observed.Access = nil
	old.Observed.World = living(want, observed.Host{})
	h := old.Observed.World.Hosts[playedWorker]
	h.Kubelet.Version = "1.35.0"
	old.Observed.World.Hosts[playedWorker] = h
	forced := Apply{Options: decide.Options{ForceUpgrade: true}}
	survivor := Recover{About: plan.Copy{From: step.SurvivingMember}}
	for name, c := range map[string]struct {
		request Request
		base    Proposal
		needs   factNeeds
	}{
		"apply, nothing differs":      {Apply{}, well, factNeeds{}},
		"apply, a host is older":      {Apply{}, old, factNeeds{upgradeRisks: true}},
		"a reset, a host is older":    {Reset{}, old, factNeeds{}},
		"a forced upgrade":            {forced, well, factNeeds{upgradeRisks: true}},
		"a forced upgrade, no API":    {forced, silent, factNeeds{}},
		"a rotation":                  {RotateCA{}, well, factNeeds{extensionCAs: true}},
		"a rotation, no API":          {RotateCA{}, silent, factNeeds{}},
		"recover from a survivor":     {survivor, well, factNeeds{progress: true}},
		"recover from a snapshot":     {Recover{}, well, factNeeds{}},
		"recover, etcd lists nothing": {Recover{}, Proposal{Want: want}, factNeeds{progress: true}},
	} {
		if got := newNeeds(c.request, c.base); got != c.needs {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The plan of an upgrade states what could not be checked; other plans do not.
func TestWhatIsNotKnownBeforeAnUpgrade(t *testing.T) {
	t.Parallel()
	o := observation{unasked: errNamesOnly}
	upgrade := plan.Plan{Steps: []plan.Step{{Intent: step.With(step.DrainNodeParams{Upgrade: true})}}}
	if got := o.upgradeNotes(upgrade); len(got) != 1 || !strings.Contains(got[0], errNamesOnly.Error()) {
		t.Errorf("an upgrade: %q", got)
	}
	if got := o.upgradeNotes(plan.Plan{}); got != nil {
		t.Errorf("no upgrade: %q", got)
	}
}

package plan

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// hooksAround returns hooks before and after that, on the operator's machine and on the host.
func hooksAround(activities ...desired.Activity) []desired.Hook {
	var out []desired.Hook
	for _, of := range activities {
		out = append(out,
			desired.Hook{Name: "tell-" + string(of), When: desired.Before, Activity: of,
				Command: []string{"tell", "before " + string(of)}, Timeout: time.Minute},
			desired.Hook{Name: "check-" + string(of), When: desired.After, Activity: of, OnHost: true,
				Command: []string{"check", string(of)}, Timeout: 2 * time.Minute},
		)
	}
	return out
}

// hookedWorlds returns worlds whose plans have hooks.
func hookedWorlds() map[string]func() decide.Input {
	return map[string]func() decide.Input{
		"hooks-install": func() decide.Input {
			in := bareCluster(1, 1)
			in.Want.Hooks = hooksAround(desired.Applying, desired.Installing)[:3]
			return in
		},
		"hooks-upgrade": func() decide.Input {
			in := healthyCluster(1, 1)
			in.Want.KubernetesVersion = "1.36.4"
			in.Want.Hooks = hooksAround(desired.Upgrading, desired.Draining)
			return in
		},
		"hooks-owed": func() decide.Input {
			in := healthyCluster(1, 2)
			in.Want.Hooks = hooksAround(desired.Upgrading, desired.Joining)
			changeHost(in, "w-1", func(h *observed.Host) { h.HooksOwed = []string{"upgrade", "reconfigure"} })
			nodeOf(in, "w-1", func(n *observed.Node) {
				n.Unschedulable, n.Annotations = true, map[string]string{observed.CordonAnnotation: "a run"}
			})
			return in
		},
	}
}

// hooksInPlace looks at each activity on each host: what it consists of has all hooks before it as ancestors, and is an
// ancestor of all hooks after it, and a Node is opened after the hooks of its upgrade.
func hooksInPlace(in decide.Input, p Plan, _ []decide.Decision) error {
	over := ancestorSteps(p)
	made := slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Intent.Kind == step.Init })
	for _, hook := range p.Steps {
		m := hook.Intent.Moment()
		for _, s := range p.Steps {
			of, _ := s.Intent.Kind.PartOf()
			if of == desired.Joining && made {
				of = desired.Installing
			}
			switch {
			case m.Activity == "", hook.Host != s.Host && m.Activity != desired.Applying, hook.ID == s.ID:
			case m.Activity != desired.Applying && of != m.Activity:
			case m.When == desired.Before && !over[s.ID][hook.ID] && s.Intent.Moment() != m:
				return fmt.Errorf("%s does not wait for %s", s.ID, hook.ID)
			case m.When == desired.After && !over[hook.ID][s.ID] && s.Intent.Moment() != m:
				return fmt.Errorf("%s does not wait for %s", hook.ID, s.ID)
			}
			if core := s.Intent.Kind.Joins(); core && s.Host == hook.Host && m.When == desired.After &&
				m.Activity == desired.Installing && !over[hook.ID][s.ID] {
				return fmt.Errorf("%s does not wait for %s", hook.ID, s.ID)
			}
			has := slices.ContainsFunc(in.Want.Hooks, func(h desired.Hook) bool {
				return step.Moment{When: h.When, Activity: h.Activity} == m
			})
			if s.Intent.Kind == step.Uncordon && s.Host == hook.Host && hook.Intent.EndsUpgrade() && has &&
				!over[s.ID][hook.ID] {
				return fmt.Errorf("%s does not wait for %s", s.ID, hook.ID)
			}
		}
	}
	return checkHooksPlanned(in, p, made)
}

// checkHooksPlanned checks that each hook is there for each host to which its activity happens.
func checkHooksPlanned(in decide.Input, p Plan, made bool) error {
	for _, s := range p.Steps {
		of, core := s.Intent.Kind.PartOf()
		if of == desired.Joining && made {
			of = desired.Installing
		}
		for _, h := range in.Want.Hooks {
			has := slices.ContainsFunc(p.Steps, func(hook Step) bool {
				return hook.Host == s.Host && hook.Intent.Moment() == step.Moment{When: h.When, Activity: h.Activity} &&
					(hook.Intent.Kind == step.Hooks) == h.OnHost
			})
			if core && of == h.Activity && !has {
				return fmt.Errorf("%s is there, and %s %s %s is not", s.ID, h.Name, h.When, h.Activity)
			}
		}
	}
	return nil
}

// A Node that waits for the hooks after its upgrade is not opened before it is upgraded again, by force, and these
// have succeeded.
func TestAForcedUpgradeOpensNothingBeforeItsHooks(t *testing.T) {
	t.Parallel()
	in := hookedWorlds()["hooks-owed"]()
	in.ForceUpgrade = true
	forgets := in
	forgets.Want.Hooks = nil
	forgotten, ds := Build(Input{Decide: forgets})
	if err := errors.Join(checkGraph(forgets, forgotten, ds), hooksInPlace(forgets, forgotten, ds)); err != nil {
		t.Error(err)
	}
	if _, ok := forgotten.Step("hooks-after-upgrade/w-1"); !ok {
		t.Error("w-1 does not forget hooks that the manifest does not have any more")
	}
	p, ds := Build(Input{Decide: in})
	if err := errors.Join(checkGraph(in, p, ds), hooksInPlace(in, p, ds)); err != nil {
		t.Error(err)
	}
	opened := 0
	for _, s := range p.Steps {
		if s.Intent.Kind == step.Uncordon && s.Intent.NodeName == "w-1" {
			opened++
		}
	}
	if opened != 1 {
		t.Errorf("w-1 is opened %d times: %v", opened, p.Steps)
	}
}

// What a run was not asked for it does not do: a host that owes hooks has them from an apply.
func TestOnlyAnApplyRunsTheHooksThatAreOwed(t *testing.T) {
	t.Parallel()
	in := hookedWorlds()["hooks-owed"]()
	removal, err := RemoveNode(in, "192.0.1.2", false)
	if err != nil {
		t.Fatal(err)
	}
	reset, err := Reset(in, ResetOptions{Hosts: []string{"192.0.1.2"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range slices.Concat(removal.Steps, reset.Steps) {
		if s.Host == "192.0.1.1" {
			t.Errorf("%s is run", s.ID)
		}
	}
}

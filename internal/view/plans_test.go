package view

import (
	"fmt"
	"os"
	"path/filepath"

	"kubeone/internal/plan"
)

// savedPlan reads a plan from testdata/plans. The plans are saved, not built, so that a new kind of step changes no
// golden file of this package.
func savedPlan(name string) plan.Plan {
	text, err := os.ReadFile(filepath.Join("testdata", "plans", name+".json"))
	if err != nil {
		panic(err)
	}
	p, err := plan.Decode(text)
	if err != nil {
		panic(fmt.Errorf("plan %s: %w", name, err))
	}
	return p
}

// install installs three control-plane hosts and a worker on bare machines.
func install() plan.Plan { return savedPlan("install") }

// oneMoreWorker joins a worker to a running cluster that still has a kubeadm approval rule.
func oneMoreWorker() plan.Plan { return savedPlan("worker") }

// manyWorkers joins seven workers that all get the same steps.
func manyWorkers() plan.Plan { return savedPlan("workers") }

// restartedKubelet is a repair with few enough changes to show each.
func restartedKubelet() plan.Plan { return savedPlan("repair") }

// unreachable has one host of each role that does not answer: steps elsewhere, and instructions.
func unreachable() plan.Plan { return savedPlan("unreachable") }

// upgrade upgrades one host of each role to a new patch version.
func upgrade() plan.Plan { return savedPlan("upgrade") }

// unsafe has no steps, because the manifest has security settings that this version does not support.
func unsafe() plan.Plan { return savedPlan("blocked") }

// everyAction has one step of each action, and texts with terminal control sequences. No world leads to it.
func everyAction() plan.Plan { return savedPlan("actions") }

// nothing has no steps.
func nothing() plan.Plan { return savedPlan("nothing") }

// failing is the plan of a cluster whose only host does not answer.
func failing() plan.Plan { return savedPlan("error") }

package engine

import (
	"errors"
	"testing"

	"kubeone/internal/decide/identity"
	"kubeone/internal/locks"
	"kubeone/internal/plan"
)

// A run continues without a worker that another run has taken. It does not continue without a host of the cluster's
// control plane, whatever the manifest calls it.
func TestOnlyTheLocksOfWorkersAreDispensedWith(t *testing.T) {
	t.Parallel()
	s := play(t)
	controlPlane := s.cfg.Want.ControlPlane[0].ID
	s.hosts[playedWorker].taken = true
	reached := map[string]identity.ProbeKey{controlPlane: identity.ProbeKey(controlPlane), playedWorker: playedWorker}
	proposal := Proposal{Want: s.cfg.Want, who: identity.Result{Reached: reached}}
	scope := plan.Scope{Hosts: []string{controlPlane, playedWorker}, ControlPlane: []string{controlPlane}}
	held, err := s.takeLocks(t.Context(), proposal, scope, nil, RunOptions{RunID: "run-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release(t.Context())
	if held.Hosts.Denied(playedWorker) == nil {
		t.Error("the worker that another run has is not denied")
	}
	scope.ControlPlane = append(scope.ControlPlane, playedWorker)
	var by *locks.HeldError
	if again, err := s.takeLocks(t.Context(), proposal, scope, nil, RunOptions{RunID: "run-2"}); err == nil {
		again.Release(t.Context())
		t.Error("it is of the control plane, another run has it, and the run began")
	} else if !errors.As(err, &by) {
		t.Errorf("got %v", err)
	}
}

package ssh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/engine"
	"kubeone/internal/locks"
	"kubeone/internal/machines/provider"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// isGivenUp reports whether a deleted Machine stops waiting for a host that does not respond. Lost is the time at which
// its Node stopped reporting. If it is zero, the wait starts with the deletion.
func isGivenUp(m *v1alpha1.Machine, lost, now time.Time) bool {
	if m.DeletionTimestamp == nil {
		return false
	}
	config, _, err := parseConfig(m.Spec)
	if err != nil {
		config = Config{}
	}
	sinceDeletion := now.Sub(m.DeletionTimestamp.Time)
	unresponsive := sinceDeletion
	if !lost.IsZero() {
		unresponsive = max(sinceDeletion, now.Sub(lost))
	}
	return unresponsive > config.silentTimeout() && sinceDeletion > min(minDeleteWait, config.silentTimeout())
}

// maxProposals limits the number of consecutive plans. A worker needs only a few.
const maxProposals = 8

func carryOut(ctx context.Context, e *engine.Engine, request engine.Worker, onBegin func()) error {
	for range maxProposals {
		p, err := e.Propose(ctx, request)
		if err != nil {
			return planError(err)
		}
		if len(p.RunningSteps()) > 0 {
			if err := e.Await(ctx, p); err != nil {
				return planError(err)
			}
			continue
		}
		if finished, err := finalResult(p, request); finished {
			return err
		}
		onBegin()
		if _, err := e.CarryOut(ctx, p, engine.RunOptions{}); err != nil && !errors.Is(err, engine.ErrWorldChanged) {
			return planError(err)
		}
	}
	return fmt.Errorf("the host has not reached the desired state after %d plans", maxProposals)
}

// planError converts errors that the host did not cause to a *provider.Waiting: a lock that another run holds, a
// release that is unusable or cannot be resolved, or an API that does not respond. It returns other errors unchanged.
func planError(err error) error {
	var held *locks.HeldError
	var unusable *engine.ReleaseError
	var unresolved *engine.UnresolvedError
	var api *apicall.Error
	switch {
	case errors.As(err, &held):
		return &provider.Waiting{Reason: reasonHostBusy, Message: err.Error()}
	case errors.As(err, &unresolved):
		return &provider.Waiting{Reason: reasonNoRelease, Message: unresolved.Err.Error(), After: time.Minute}
	case errors.As(err, &unusable):
		return &provider.Waiting{Reason: reasonNoRelease, Message: err.Error(), After: time.Minute}
	case errors.As(err, &api) && api.Class == apicall.Transient:
		return &provider.Waiting{Reason: reasonAPISilent, Message: err.Error()}
	}
	return err
}

// finalResult reports whether nothing is left to carry out for the host, and returns the result in that case.
func finalResult(p engine.Proposal, request engine.Worker) (finished bool, err error) {
	switch route := p.Decision().Route; {
	case route == fsm.Nothing && p.Plan.Empty() && request.MachineDeleted && !hostAnswered(p):
		return true, errUnresponsive
	case route == fsm.Nothing && p.Plan.Empty():
		return true, nil
	case route == fsm.Wait && problem.Has(p.Decision().Problems, problem.SettingsLater):
		return true, errDiffers
	case route == fsm.Wait && !hostAnswered(p):
		return true, &provider.Waiting{Reason: reasonHostSilent, Message: p.Plan.Again}
	case route == fsm.Wait:
		return true, &provider.Waiting{Reason: reasonWaiting, Message: p.Plan.Again}
	case route == fsm.Error && isSpecProblem(p.Decision().Problems):
		return true, &provider.Waiting{Reason: reasonVersionRefused, Message: p.Plan.Again, After: time.Minute}
	case route == fsm.Error:
		return true, errors.New(p.Plan.Again)
	}
	return false, nil
}

// isSpecProblem reports whether the problem is in the spec and not on the host, so that another host would not help.
func isSpecProblem(problems []problem.Problem) bool {
	return problem.Has(problems, problem.KubeletVersionRefused) || problem.Has(problems, problem.ContainerdRefused)
}

// errUnresponsive reports that the Node of a deleted Machine is deleted, but its host does not respond. The host is not
// free until it has been reset.
var errUnresponsive = errors.New("the host does not respond; it stays claimed until it responds and has been reset")

func hostAnswered(p engine.Proposal) bool {
	for _, h := range p.Observed.World.Hosts {
		if h.Reach != observed.Reached {
			return false
		}
	}
	return true
}

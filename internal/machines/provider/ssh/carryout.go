package ssh

import (
	"context"
	"errors"
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

// givenUp reports whether a Machine that is deleted need not wait any longer for a host that does not answer. It is
// silent since its Node was lost, or, where that is ready, since the deletion.
func givenUp(m *v1alpha1.Machine, lost, now time.Time) bool {
	if m.DeletionTimestamp == nil {
		return false
	}
	config, _, err := configOf(m.Spec)
	if err != nil {
		config = Config{}
	}
	asked := now.Sub(m.DeletionTimestamp.Time)
	silent := asked
	if !lost.IsZero() {
		silent = max(asked, now.Sub(lost))
	}
	return silent > config.givenUp() && asked > min(leastAsked, config.givenUp())
}

// mostProposals is how many plans may follow one another: a worker has few routes.
const mostProposals = 8

func carryOut(ctx context.Context, e *engine.Engine, request engine.Worker, begins func()) error {
	for range mostProposals {
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
		if over, err := resultOf(p, request); over {
			return err
		}
		begins()
		if _, err := e.CarryOut(ctx, p, engine.RunOptions{}); err != nil && !errors.Is(err, engine.ErrWorldChanged) {
			return planError(err)
		}
	}
	return errors.New("the host does not become what is wanted, however often that is planned")
}

// planError is why a plan was not made, or not carried out. A release that no bundle has, is not what it was, or cannot
// be looked up, a lock that somebody has, and an API that does not answer are no fault of the host.
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

// resultOf reports whether nothing is to be carried out, and what that means.
func resultOf(p engine.Proposal, request engine.Worker) (over bool, err error) {
	switch route := p.Decision().Route; {
	case route == fsm.Nothing && p.Plan.Empty() && request.Gone && !hostAnswered(p):
		return true, errSilent
	case route == fsm.Nothing && p.Plan.Empty():
		return true, nil
	case route == fsm.Wait && problem.Has(p.Decision().Problems, problem.SettingsLater):
		return true, errDiffers
	case route == fsm.Wait && !hostAnswered(p):
		return true, &provider.Waiting{Reason: reasonHostSilent, Message: p.Plan.Again}
	case route == fsm.Wait:
		return true, &provider.Waiting{Reason: reasonWaiting, Message: p.Plan.Again}
	case route == fsm.Error && ofSpec(p.Decision().Problems):
		return true, &provider.Waiting{Reason: reasonVersionRefused, Message: p.Plan.Again, After: time.Minute}
	case route == fsm.Error:
		return true, errors.New(p.Plan.Again)
	}
	return false, nil
}

// ofSpec reports whether what stands in the way is of what is wanted, and not of the host: another one would not do
// either.
func ofSpec(problems []problem.Problem) bool {
	return problem.Has(problems, problem.KubeletVersionRefused) || problem.Has(problems, problem.ContainerdRefused)
}

// errSilent says that a Machine that is gone has no Node any more, and that its host has not answered: it is not free.
var errSilent = errors.New("the host has not answered: it stays the Machine's until it does, and is bare")

func hostAnswered(p engine.Proposal) bool {
	for _, h := range p.Observed.World.Hosts {
		if h.Reach != observed.Reached {
			return false
		}
	}
	return true
}

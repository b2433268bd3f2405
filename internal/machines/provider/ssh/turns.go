package ssh

import (
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/decide"
	"kubeone/internal/machines/machine"
	"kubeone/internal/machines/provider"
	"kubeone/internal/machines/rollout"
)

// turnOf says whether it is the host's turn: it has been given it, has not refused the same settings, and not too many
// others have failed with them.
func (p *Provider) turnOf(ctx context.Context, h *kubeone.Host, want wanted) (turn decide.Turn, why string, err error) {
	if want.revision == "" {
		return decide.NotYet, "", nil
	}
	turns, err := p.planTurns(ctx, p.client, want, false)
	switch {
	case err != nil:
		return decide.NotYet, "", err
	case turns.Stopped != "" || refusedHere(h, want):
		return decide.Refused, turns.Held, nil
	case h.Status.Settings != nil && h.Status.Settings.State == kubeone.SettingsChanging:
		return decide.Now, "", nil
	}
	return decide.NotYet, turns.Held, nil
}

// takeTurn notes that it is the host's turn, if it is. Whose it is is asked of the API server then, not of a cache.
func (p *Provider) takeTurn(ctx context.Context, m *v1alpha1.Machine, h *kubeone.Host, want wanted) error {
	name := m.Namespace + "/" + m.Name
	turns, err := p.planTurns(ctx, p.client, want, false)
	if err != nil {
		return err
	}
	if slices.Contains(turns.Next, name) {
		p.settings.giving.Lock()
		defer p.settings.giving.Unlock()
		if turns, err = p.planTurns(ctx, p.live, want, true); err != nil {
			return err
		}
	}
	if !slices.Contains(turns.Next, name) {
		return &provider.Waiting{
			Reason: provider.SettingsAwaited, After: awaitTurn,
			Message: "its host has other settings than the cluster's record; " + orIts(turns.Held),
		}
	}
	if err := p.setSettings(ctx, h, &kubeone.HostSettings{
		Revision: want.settings, State: kubeone.SettingsChanging,
	}); err != nil {
		return err
	}
	return &provider.Waiting{
		Reason: provider.Reconfiguring, Message: "it is its host's turn to get other settings", After: poll / 2,
	}
}

func orIts(held string) string {
	if held == "" {
		return "its deployment gives it these with other versions, or nobody looks after it"
	}
	return held
}

// setSettings notes what becomes of other settings on a host, in one write, or none where it is so.
func (p *Provider) setSettings(ctx context.Context, h *kubeone.Host, to *kubeone.HostSettings) error {
	is := h.Status.Settings
	if is == to || is != nil && to != nil && *is == *to {
		return nil
	}
	h.Status.Settings = to
	err := p.client.Status().Update(ctx, h)
	p.settings.dropPlan()
	return err
}

func (s *settings) dropPlan() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planned = time.Time{}
}

// planTurns is whose turn it is, as it was at most turnsAge ago, or as it is now.
func (p *Provider) planTurns(ctx context.Context, from client.Reader, want wanted, fresh bool) (rollout.Turns, error) {
	s, now := p.settings, p.site.Now()
	s.mu.Lock()
	turns, planned := s.turns, s.planned
	s.mu.Unlock()
	if !fresh && isYounger(planned, now, turnsAge) {
		return turns, nil
	}
	members, err := p.rolloutMembers(ctx, from, want)
	if err != nil {
		return rollout.Turns{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting.noteMembers(members, now)
	turns = rollout.NextSettings(members, want.limits)
	s.turns, s.planned = turns, now
	return turns, nil
}

// outOfService is since when each host is out of service, as far as this process has seen it, by its Machine's name.
type outOfService map[string]outage

// outage is how long a host has been out of service.
type outage struct{ since, last time.Time }

const (
	// longestOutage is for how long the others wait for a host that is out of service.
	longestOutage = 20 * time.Minute
	// shortestService is for how long a host must be in service again until an outage of it is over: one that comes
	// back again and again for a moment would hold the others up for ever.
	shortestService = time.Minute
)

// noteMembers notes which members are out of service, and says which of them the others do not wait for any longer.
func (o outOfService) noteMembers(members []rollout.Member, now time.Time) {
	known := map[string]bool{}
	for i := range members {
		m := &members[i]
		known[m.Name] = true
		was, seen := o[m.Name]
		over := !seen || !isYounger(was.last, now, shortestService)
		switch out := m.OutOfService() != ""; {
		case out && over:
			o[m.Name] = outage{since: now, last: now}
		case out:
			o[m.Name] = outage{since: was.since, last: now}
			m.Overdue = now.Sub(was.since) >= longestOutage
		case over:
			delete(o, m.Name)
		}
	}
	maps.DeleteFunc(o, func(name string, _ outage) bool { return !known[name] })
}

// rolloutMembers are the Machines that have a host of the pool which is a Node, and are not deleted.
func (p *Provider) rolloutMembers(ctx context.Context, from client.Reader, want wanted) ([]rollout.Member, error) {
	var all v1alpha1.MachineList
	var hosts kubeone.HostList
	var sets v1alpha1.MachineSetList
	var deployments v1alpha1.MachineDeploymentList
	for _, list := range []client.ObjectList{&all, &hosts, &sets, &deployments} {
		if err := from.List(ctx, list); err != nil {
			return nil, err
		}
	}
	moving := machine.Moving(sets.Items, deployments.Items)
	of := map[types.UID]*kubeone.Host{}
	for i := range hosts.Items {
		if h := &hosts.Items[i]; h.Status.Claim != nil && h.Status.State == kubeone.HostJoined {
			of[h.Status.Claim.UID] = h
		}
	}
	var out []rollout.Member
	for i := range all.Items {
		m := &all.Items[i]
		h := of[m.UID]
		if h == nil || m.DeletionTimestamp != nil || m.Status.NodeRef == nil {
			continue
		}
		one := memberOf(m, h, p.settings.foundOf(m.UID), want)
		if owner := metav1.GetControllerOf(m); owner != nil {
			one.Moving = moving[owner.UID]
		}
		out = append(out, one)
	}
	return out, nil
}

func memberOf(m *v1alpha1.Machine, h *kubeone.Host, is found, want wanted) rollout.Member {
	_, paused := m.Annotations[v1alpha1.PausedAnnotation]
	one := rollout.Member{Name: m.Namespace + "/" + m.Name, Ready: !isNodeNotReady(m), Paused: paused}
	if s := h.Status.Settings; s != nil {
		one.Turn = s.State == kubeone.SettingsChanging
	}
	if refusedHere(h, want) {
		one.Refused = h.Status.Settings.Message
	}
	one.Changing = !one.Turn && machine.IsUpdating(m)
	switch {
	case is.revision != want.revision:
	case is.differs:
		one.Settings = rollout.SettingsDiffer
	default:
		one.Settings = rollout.SettingsCurrent
	}
	return one
}

// Woken are Machines that are to be looked after again, for the settings' sake.
func (p *Provider) Woken() <-chan event.GenericEvent { return p.settings.woken }

// followSettings wakes all Machines when the record wants other settings, or too many have failed with them, and those
// whose turn it is. It returns when the context ends.
func (p *Provider) followSettings(ctx context.Context) {
	tick := time.NewTicker(turnsAge)
	defer tick.Stop()
	last, stopped := "", ""
	for {
		want := p.settings.currentSettings(ctx, p.site.Now())
		if want.revision != "" {
			turns, err := p.planTurns(ctx, p.client, want, false)
			switch {
			case err != nil: // the next look may do
			case want.revision != last || turns.Stopped != stopped:
				last, stopped = want.revision, turns.Stopped
				p.wakeMachines(ctx, nil)
			default:
				p.wakeMachines(ctx, slices.Concat(turns.Begun, turns.Next))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// wakeMachines has the Machines of these names looked after again; nil is all.
func (p *Provider) wakeMachines(ctx context.Context, names []string) {
	if names != nil && len(names) == 0 {
		return
	}
	var all v1alpha1.MachineList
	if err := p.client.List(ctx, &all); err != nil {
		return // the cache ends
	}
	for i := range all.Items {
		m := &all.Items[i]
		if names != nil && !slices.Contains(names, m.Namespace+"/"+m.Name) {
			continue
		}
		select {
		case p.settings.woken <- event.GenericEvent{Object: m}:
		case <-ctx.Done():
			return
		}
	}
}

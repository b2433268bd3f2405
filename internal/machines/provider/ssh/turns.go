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

// turnOf returns Now if it is the turn of the host. It returns Refused if the host refused these settings or the
// rollout has stopped, and NotYet otherwise. Why says what the waiting hosts are waiting for.
func (p *Provider) turnOf(ctx context.Context, h *kubeone.Host, want desiredSettings) (turn decide.Turn, why string,
	err error) {
	if want.revision == "" {
		return decide.NotYet, "", nil
	}
	turns, err := p.planTurns(ctx, p.client, want, false)
	switch {
	case err != nil:
		return decide.NotYet, "", err
	case turns.Stopped != "" || hasRefused(h, want):
		return decide.Refused, turns.Held, nil
	case h.Status.Settings != nil && h.Status.Settings.State == kubeone.SettingsChanging:
		return decide.Now, "", nil
	}
	return decide.NotYet, turns.Held, nil
}

// takeTurn records in the Host that its turn has started, if it is next. It confirms this with the API server, because
// the cache may be outdated. It always returns an error; the next call continues.
func (p *Provider) takeTurn(ctx context.Context, m *v1alpha1.Machine, h *kubeone.Host, want desiredSettings) error {
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
			Reason: provider.SettingsAwaited, After: turnRetry,
			Message: "the host settings differ from the cluster record: " + describeHeld(turns.Held),
		}
	}
	if err := p.setSettings(ctx, h, &kubeone.HostSettings{
		Revision: want.settings, State: kubeone.SettingsChanging,
	}); err != nil {
		return err
	}
	return &provider.Waiting{
		Reason: provider.Reconfiguring, Message: "the host may now apply the new settings", After: poll / 2,
	}
}

func describeHeld(held string) string {
	if held == "" {
		return "they will change with the rollout of its deployment, unless the Machine is paused"
	}
	return held
}

// setSettings writes the settings status of the Host if it changed.
func (p *Provider) setSettings(ctx context.Context, h *kubeone.Host, to *kubeone.HostSettings) error {
	current := h.Status.Settings
	if current == to || current != nil && to != nil && *current == *to {
		return nil
	}
	h.Status.Settings = to
	err := p.client.Status().Update(ctx, h)
	p.settings.discardTurns()
	return err
}

func (s *settings) discardTurns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plannedAt = time.Time{}
}

// planTurns returns the turns. They are at most maxTurnsAge old; if fresh is true, they are always recomputed.
func (p *Provider) planTurns(ctx context.Context, from client.Reader, want desiredSettings, fresh bool) (rollout.Turns,
	error) {
	s, now := p.settings, p.site.Now()
	s.mu.Lock()
	turns, planned := s.turns, s.plannedAt
	s.mu.Unlock()
	if !fresh && isYounger(planned, now, maxTurnsAge) {
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
	s.turns, s.plannedAt = turns, now
	return turns, nil
}

// outOfService contains the outages that this process has observed, by namespace/name of the Machine.
type outOfService map[string]outage

// outage contains the times at which a host was first and last observed out of service.
type outage struct{ since, last time.Time }

const (
	// maxOutage is how long other hosts wait for a host that is out of service.
	maxOutage = 20 * time.Minute
	// minService is how long a host must be in service again to end its outage. Without it, a host that fails
	// repeatedly could block the others forever.
	minService = time.Minute
)

// noteMembers updates the outages, and sets Overdue on members that have been out of service for too long.
func (o outOfService) noteMembers(members []rollout.Member, now time.Time) {
	known := map[string]bool{}
	for i := range members {
		m := &members[i]
		known[m.Name] = true
		was, seen := o[m.Name]
		ended := !seen || !isYounger(was.last, now, minService)
		switch out := m.OutOfService() != ""; {
		case out && ended:
			o[m.Name] = outage{since: now, last: now}
		case out:
			o[m.Name] = outage{since: was.since, last: now}
			m.Overdue = now.Sub(was.since) >= maxOutage
		case ended:
			delete(o, m.Name)
		}
	}
	maps.DeleteFunc(o, func(name string, _ outage) bool { return !known[name] })
}

// rolloutMembers returns the Machines that have a joined host and a Node, except those that are being deleted.
func (p *Provider) rolloutMembers(ctx context.Context, from client.Reader, want desiredSettings) ([]rollout.Member,
	error) {
	var all v1alpha1.MachineList
	var hosts kubeone.HostList
	var sets v1alpha1.MachineSetList
	var deployments v1alpha1.MachineDeploymentList
	for _, list := range []client.ObjectList{&all, &hosts, &sets, &deployments} {
		if err := from.List(ctx, list); err != nil {
			return nil, err
		}
	}
	moving := machine.MovingSets(sets.Items, deployments.Items)
	byMachine := map[types.UID]*kubeone.Host{}
	for i := range hosts.Items {
		if h := &hosts.Items[i]; h.Status.Claim != nil && h.Status.State == kubeone.HostJoined {
			byMachine[h.Status.Claim.UID] = h
		}
	}
	var out []rollout.Member
	for i := range all.Items {
		m := &all.Items[i]
		h := byMachine[m.UID]
		if h == nil || m.DeletionTimestamp != nil || m.Status.NodeRef == nil {
			continue
		}
		one := newMember(m, h, p.settings.hostSettings(m.UID), want)
		if owner := metav1.GetControllerOf(m); owner != nil {
			one.Moving = moving[owner.UID]
		}
		out = append(out, one)
	}
	return out, nil
}

func newMember(m *v1alpha1.Machine, h *kubeone.Host, current hostSettings, want desiredSettings) rollout.Member {
	_, paused := m.Annotations[v1alpha1.PausedAnnotation]
	one := rollout.Member{Name: m.Namespace + "/" + m.Name, Ready: !isNodeNotReady(m), Paused: paused}
	if s := h.Status.Settings; s != nil {
		one.Turn = s.State == kubeone.SettingsChanging
	}
	if hasRefused(h, want) {
		one.Refused = h.Status.Settings.Message
	}
	one.Changing = !one.Turn && machine.IsUpdating(m)
	switch {
	case current.revision != want.revision:
	case current.differs:
		one.Settings = rollout.SettingsDiffer
	default:
		one.Settings = rollout.SettingsCurrent
	}
	return one
}

// Woken delivers the Machines that must be reconciled again because of their settings.
func (p *Provider) Woken() <-chan event.GenericEvent { return p.settings.woken }

// followSettings wakes all Machines when the settings in the record change, or when their rollout stops or resumes. It
// also wakes the Machines that have their turn. It returns when the context ends.
func (p *Provider) followSettings(ctx context.Context) {
	tick := time.NewTicker(maxTurnsAge)
	defer tick.Stop()
	last, stopped := "", ""
	for {
		want := p.settings.currentSettings(ctx, p.site.Now())
		if want.revision != "" {
			turns, err := p.planTurns(ctx, p.client, want, false)
			switch {
			case err != nil: // retried at the next tick
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

// wakeMachines sends the named Machines to Woken; nil sends all.
func (p *Provider) wakeMachines(ctx context.Context, names []string) {
	if names != nil && len(names) == 0 {
		return
	}
	var all v1alpha1.MachineList
	if err := p.client.List(ctx, &all); err != nil {
		return // the cache is stopping
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

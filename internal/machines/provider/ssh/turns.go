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

// turnOf returns Now if the host has its turn, Refused if it refused these settings or the rollout stopped, and
// otherwise NotYet. Why says what others wait for.
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

// takeTurn records the host's turn if it is next. It confirms that with the API server, not only the cache.
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
			Message: "the host's settings differ from the cluster's record: " + describeHeld(turns.Held),
		}
	}
	if err := p.setSettings(ctx, h, &kubeone.HostSettings{
		Revision: want.settings, State: kubeone.SettingsChanging,
	}); err != nil {
		return err
	}
	return &provider.Waiting{
		Reason: provider.Reconfiguring, Message: "it is the host's turn to apply other settings", After: poll / 2,
	}
}

func describeHeld(held string) string {
	if held == "" {
		return "they change with the rollout of its deployment, unless the Machine is paused"
	}
	return held
}

// setSettings writes the Host's settings status if it changed.
func (p *Provider) setSettings(ctx context.Context, h *kubeone.Host, to *kubeone.HostSettings) error {
	is := h.Status.Settings
	if is == to || is != nil && to != nil && *is == *to {
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

// planTurns returns the turns, at most turnsAge old, or recomputed if fresh.
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

// outOfService has the outages that this process has seen, by the Machine's namespace/name.
type outOfService map[string]outage

// outage is when a host was first and last seen out of service.
type outage struct{ since, last time.Time }

const (
	// longestOutage is how long other hosts wait for one that is out of service.
	maxOutage = 20 * time.Minute
	// shortestService is how long a host must be back in service to end its outage. Otherwise a flapping host would
	// hold up the others forever.
	minService = time.Minute
)

// noteMembers updates the outages and sets Overdue on members whose outage is too long.
func (o outOfService) noteMembers(members []rollout.Member, now time.Time) {
	known := map[string]bool{}
	for i := range members {
		m := &members[i]
		known[m.Name] = true
		was, seen := o[m.Name]
		over := !seen || !isYounger(was.last, now, minService)
		switch out := m.OutOfService() != ""; {
		case out && over:
			o[m.Name] = outage{since: now, last: now}
		case out:
			o[m.Name] = outage{since: was.since, last: now}
			m.Overdue = now.Sub(was.since) >= maxOutage
		case over:
			delete(o, m.Name)
		}
	}
	maps.DeleteFunc(o, func(name string, _ outage) bool { return !known[name] })
}

// rolloutMembers returns the Machines with a joined host and a Node, except those being deleted.
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
		one := newMember(m, h, p.settings.hostSettings(m.UID), want)
		if owner := metav1.GetControllerOf(m); owner != nil {
			one.Moving = moving[owner.UID]
		}
		out = append(out, one)
	}
	return out, nil
}

func newMember(m *v1alpha1.Machine, h *kubeone.Host, is hostSettings, want desiredSettings) rollout.Member {
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
	case is.revision != want.revision:
	case is.differs:
		one.Settings = rollout.SettingsDiffer
	default:
		one.Settings = rollout.SettingsCurrent
	}
	return one
}

// Woken delivers Machines to reconcile again because of their settings.
func (p *Provider) Woken() <-chan event.GenericEvent { return p.settings.woken }

// followSettings wakes all Machines when the record's settings change or their rollout stops or resumes. It also wakes
// Machines whose turn it is. It returns when the context ends.
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
		return // the cache stops
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

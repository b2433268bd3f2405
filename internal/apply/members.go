package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kubeone/internal/etcd"
	"kubeone/internal/host"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// LivingError says that something that was to be removed for being dead is alive. Nothing was removed.
type LivingError struct {
	What string // "etcd member cp-2 (8e9e05c52164694d)", "host cp-2"
	How  string // what it was alive by
}

// Error says what lives and what to do.
func (e *LivingError) Error() string {
	return e.What + " is alive: " + e.How + "; nothing was removed. Look at it with kubeone status and plan again"
}

// EtcdError is a step that etcd, as it is, does not allow.
type EtcdError struct{ Err error }

// Error is the cause's text.
func (e *EtcdError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EtcdError) Unwrap() error { return e.Err }

// removeMember takes a member out of etcd, if the quorum allows it as etcd is now. One that is gone already is
// removed.
func (r *Run) removeMember(ctx context.Context, _ API, s plan.Step) error {
	params := step.ParamsOf[step.RemoveEtcdParams](s.Intent)
	if params.Confirm {
		if err := r.confirm(ctx, s, params.Death, r.memberSilent); err != nil {
			return err
		}
	}
	client, err := r.Connect.etcd(ctx, patient(etcdWithout(r.Etcd, params.Peer)))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	id, err := etcd.ParseID(params.Member)
	if err != nil {
		return fmt.Errorf("etcd member %q: %w", params.Member, err)
	}
	seen, err := client.Observe(ctx)
	if err != nil {
		return err
	}
	if listed, err := MayLeave(seen, params); !listed || err != nil {
		return err
	}
	if err := client.RemoveMember(ctx, id); !errors.Is(err, etcd.ErrNotFound) {
		return err
	}
	return nil
}

// etcdWithout reaches etcd through other hosts than the one that leaves, where there are others.
func etcdWithout(a *etcd.Access, leaves string) *etcd.Access {
	if a == nil || leaves == "" {
		return a
	}
	others := *a
	others.Via = nil
	for _, via := range a.Via {
		if via.ID != leaves {
			others.Via = append(others.Via, via)
		}
	}
	if len(others.Via) == 0 {
		return a
	}
	return &others
}

// patient reaches etcd with more time for each answer: a voter that is only late is no reason to keep a member.
func patient(a *etcd.Access) *etcd.Access {
	if a == nil {
		return nil
	}
	of := *a
	of.Answer = etcd.PatientAnswer
	return &of
}

// deleteNode deletes a Node. One that goes because its host is dead or replaced must not be Ready any more, and its
// host, where the step names it, is confirmed to be dead.
func (r *Run) deleteNode(ctx context.Context, client API, s plan.Step) error {
	if death := step.ParamsOf[step.DeleteNodeParams](s.Intent).Death; death.Confirm {
		if death.Peer != "" {
			if err := r.confirm(ctx, s, death, nil); err != nil {
				return err
			}
		}
		within, cancel := context.WithTimeout(ctx, NodeTimeout)
		defer cancel()
		if err := client.WaitNodeSilent(within, s.Intent.NodeName); err != nil {
			return fmt.Errorf("the Node %s belongs to a machine that is alive; stop that, or give one of the two "+
				"another name: %w", s.Intent.NodeName, err)
		}
	}
	return client.DeleteNode(ctx, s.Intent.NodeName)
}

// Silence is since when something was found dead by one look after the other, and when last.
type Silence struct{ Since, Last time.Time }

// Found is the silence after a look that began and ended then, and found no life. It begins anew after a gap, also of a
// clock that was set back. The zero value is that of what nobody has looked at.
func (s Silence) Found(began, ended time.Time) Silence {
	if !s.lasts(began) {
		s.Since = ended.Round(0)
	}
	s.Last = ended.Round(0)
	return s
}

// lasts reports whether a look at that moment would go on with the silence.
func (s Silence) lasts(at time.Time) bool {
	gap := at.Round(0).Sub(s.Last)
	return !s.Last.IsZero() && gap >= 0 && gap <= DeathGap
}

// Dead reports whether the silence has lasted for long enough.
func (s Silence) Dead() bool { return !s.Last.IsZero() && s.Last.Sub(s.Since) >= DeathWithin }

// confirm looks at what the step removes, and at the host it was on, again and again for DeathWithin. Every sign of
// life is an error, and so is what cannot be found out, but for looks in between that leave no gap: etcd may be slow.
func (r *Run) confirm(ctx context.Context, s plan.Step, of step.Death,
	silent func(context.Context, step.RemoveEtcdParams) error) error {
	for is := (Silence{}); !is.Dead(); {
		if !is.Last.IsZero() {
			if !r.pause(ctx, DeathEvery) {
				return ctx.Err()
			}
		}
		began := r.Now()
		if err := r.lookForLife(ctx, s, of, silent); err != nil {
			living := (*LivingError)(nil)
			if !errors.As(err, &living) && ctx.Err() == nil && is.lasts(r.Now()) {
				continue
			}
			return err
		}
		is = is.Found(began, r.Now())
		r.emit(Event{
			Type: StepOutput,
			Step: s.ID,
			Host: r.name(s.Host),
			Line: fmt.Sprintf("found dead for %.0f of %.0f s", is.Last.Sub(is.Since).Seconds(), DeathWithin.Seconds()),
		})
	}
	return nil
}

// lookForLife looks once.
func (r *Run) lookForLife(ctx context.Context, s plan.Step, of step.Death,
	silent func(context.Context, step.RemoveEtcdParams) error) error {
	if silent != nil {
		if err := silent(ctx, step.ParamsOf[step.RemoveEtcdParams](s.Intent)); err != nil {
			return err
		}
	}
	return r.hostSilent(ctx, of.Peer)
}

// memberSilent asks etcd for the member that the step removes, and that member for itself.
func (r *Run) memberSilent(ctx context.Context, of step.RemoveEtcdParams) error {
	client, err := r.Connect.etcd(ctx, etcdWithout(r.Etcd, of.Peer))
	if err != nil {
		return fmt.Errorf("it is not known whether etcd member %s is dead: %w", of.Member, err)
	}
	defer func() { _ = client.Close() }()
	seen, err := client.Observe(ctx)
	if err != nil {
		return fmt.Errorf("it is not known whether etcd member %s is dead: %w", of.Member, err)
	}
	return FoundDead(seen, of.Member)
}

// hasMember ends with status 3 if something of Kubernetes runs on a host, or etcd data is on it.
const hasMember = `for comm in /proc/[0-9]*/comm; do
	read -r name <"$comm" 2>/dev/null || continue
	case $name in etcd | kube-apiserver) exit 3 ;; esac
done
[ ! -e /var/lib/etcd/member ] || exit 3`

// hostSilent makes sure of a host that did not answer when the plan was made that it still does not, and of one
// that did (an empty one, which took the place of a dead one) that it does not run what is to be removed.
func (r *Run) hostSilent(ctx context.Context, id string) error {
	h, answered := r.Hosts[id]
	if !answered {
		if h = r.Unreachable[id]; h == nil {
			return nil
		}
	}
	check := "true"
	if answered {
		check = hasMember
	}
	_, err := h.Run(ctx, host.Cmd{Name: "look for signs of life", Script: check, Timeout: ProbeTimeout})
	var exit *host.ExitError
	switch class := host.ClassOf(err); {
	case answered && errors.As(err, &exit):
		return &LivingError{"host " + r.name(id), "etcd, or its data, is on it"}
	case answered, class == host.Unreachable, class == host.Lost, errors.Is(err, context.DeadlineExceeded):
		return ctx.Err()
	case err != nil:
		return &LivingError{"host " + r.name(id), err.Error()}
	}
	return &LivingError{"host " + r.name(id), "it answers again"}
}

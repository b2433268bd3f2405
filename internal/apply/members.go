package apply

import (
	"context"
	"errors"
	"fmt"
	"kubeone/internal/decide/match"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"time"
)

// LivingError means that a step did not remove a member, Node or host because it is still alive. Nothing was removed.
type LivingError struct {
	What string // "etcd member cp-2 (8e9e05c52164694d)", "host cp-2"
	How  string // the sign of life
}

// Error says what is alive and what to do.
func (e *LivingError) Error() string {
	return e.What + " is alive: " + e.How + "; nothing was removed. Inspect it with kubeone status, then plan again"
}

// EtcdError means that a step failed because the state of etcd does not allow it.
type EtcdError struct{ Err error }

// Error returns the cause's text.
func (e *EtcdError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EtcdError) Unwrap() error { return e.Err }

// removeMember removes a member from etcd if the remaining members keep quorum. A member that is no longer listed
// counts as removed.
func (r *Run) removeMember(ctx context.Context, _ API, s plan.Step) error {
	params := step.ParamsOf[step.RemoveEtcdParams](s.Intent)
	if params.Confirm {
		if err := r.confirmDead(ctx, s, params.Death, r.checkMemberDead); err != nil {
			return err
		}
	}
	client, err := r.Connect.connectEtcd(ctx, withLongTimeout(avoidHost(r.Etcd, params.Peer)))
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
	if listed, err := CheckRemoval(seen, params); !listed || err != nil {
		return err
	}
	if err := client.RemoveMember(ctx, id); !errors.Is(err, etcd.ErrNotFound) {
		return err
	}
	return nil
}

// avoidHost returns access to etcd through hosts other than the given one. If there are no others, it returns the
// access unchanged.
func avoidHost(a *etcd.Access, leaves string) *etcd.Access {
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

// withLongTimeout returns access that waits longer for each answer. A slow voter must not prevent the removal of a
// member.
func withLongTimeout(a *etcd.Access) *etcd.Access {
	if a == nil {
		return nil
	}
	of := *a
	of.Answer = etcd.PatientAnswer
	return &of
}

// deleteNode deletes a Node. If its host is dead or replaced, deleteNode first waits until the Node is not Ready. If
// the step names the host, it also confirms that the host is dead.
func (r *Run) deleteNode(ctx context.Context, client API, s plan.Step) error {
	if death := step.ParamsOf[step.DeleteNodeParams](s.Intent).Death; death.Confirm {
		if death.Peer != "" {
			if err := r.confirmDead(ctx, s, death, nil); err != nil {
				return err
			}
		}
		within, cancel := context.WithTimeout(ctx, NodeTimeout)
		defer cancel()
		if err := client.WaitNodeSilent(within, s.Intent.NodeName); err != nil {
			return fmt.Errorf("the Node %s belongs to a machine that is alive; stop the machine or rename one "+
				"of the two: %w", s.Intent.NodeName, err)
		}
	}
	return client.DeleteNode(ctx, s.Intent.NodeName)
}

// Silence is a period in which consecutive checks found no sign of life, from the first check to the last.
type Silence struct{ Since, Last time.Time }

// Found returns the silence extended by a check, from began to ended, that found no sign of life. After a gap, or if
// the clock was set back, the silence starts again. The zero value has no checks.
func (s Silence) Found(began, ended time.Time) Silence {
	if !s.extendsTo(began) {
		s.Since = ended.Round(0)
	}
	s.Last = ended.Round(0)
	return s
}

// extendsTo reports whether a check at that time would extend the silence instead of starting a new one.
func (s Silence) extendsTo(at time.Time) bool {
	gap := at.Round(0).Sub(s.Last)
	return !s.Last.IsZero() && gap >= 0 && gap <= DeathGap
}

// Dead reports whether the silence has lasted for long enough.
func (s Silence) Dead() bool { return !s.Last.IsZero() && s.Last.Sub(s.Since) >= DeathWithin }

// confirmDead repeatedly checks what the step removes, and its host, for DeathWithin. Any sign of life is an error. A
// check that fails is repeated if there is time for it before DeathGap, because etcd may be slow; otherwise its error
// is returned.
func (r *Run) confirmDead(ctx context.Context, s plan.Step, of step.Death,
	silent func(context.Context, step.RemoveEtcdParams) error) error {
	for silence := (Silence{}); !silence.Dead(); {
		if !silence.Last.IsZero() {
			if !r.pause(ctx, DeathEvery) {
				return ctx.Err()
			}
		}
		began := r.Now()
		if err := r.checkForLife(ctx, s, of, silent); err != nil {
			living := (*LivingError)(nil)
			if !errors.As(err, &living) && ctx.Err() == nil && silence.extendsTo(r.Now()) {
				continue
			}
			return err
		}
		silence = silence.Found(began, r.Now())
		r.emitEvent(Event{
			Type: StepOutput,
			Step: s.ID,
			Host: r.displayName(s.Host),
			Line: fmt.Sprintf("dead for %.0f of %.0f s", silence.Last.Sub(silence.Since).Seconds(),
				DeathWithin.Seconds()),
		})
	}
	return nil
}

// checkForLife checks once for signs of life and returns a *LivingError for the first one.
func (r *Run) checkForLife(ctx context.Context, s plan.Step, of step.Death,
	silent func(context.Context, step.RemoveEtcdParams) error) error {
	if silent != nil {
		if err := silent(ctx, step.ParamsOf[step.RemoveEtcdParams](s.Intent)); err != nil {
			return err
		}
	}
	return r.checkHostDead(ctx, of.Peer)
}

// checkMemberDead returns an error unless etcd and the member itself confirm that the member to be removed is dead.
func (r *Run) checkMemberDead(ctx context.Context, of step.RemoveEtcdParams) error {
	client, err := r.Connect.connectEtcd(ctx, avoidHost(r.Etcd, of.Peer))
	if err != nil {
		return fmt.Errorf("cannot tell whether etcd member %s is dead: %w", of.Member, err)
	}
	defer func() { _ = client.Close() }()
	seen, err := client.Observe(ctx)
	if err != nil {
		return fmt.Errorf("cannot tell whether etcd member %s is dead: %w", of.Member, err)
	}
	return CheckDead(seen, of.Member)
}

// detectMember exits with 3 if a host runs a Kubernetes component or has etcd data.
const detectMember = `for comm in /proc/[0-9]*/comm; do
	read -r name <"$comm" 2>/dev/null || continue
	case $name in etcd | kube-apiserver) exit 3 ;; esac
done
[ ! -e /var/lib/etcd/member ] || exit 3`

// checkHostDead returns a *LivingError if a host that did not answer at plan time answers now. A host that did answer
// then has replaced a dead one and is empty. It is an error if that host runs etcd or an API server, or holds etcd
// data.
func (r *Run) checkHostDead(ctx context.Context, id string) error {
	h, answered := r.Hosts[id]
	if !answered {
		if h = r.Unreachable[id]; h == nil {
			return nil
		}
	}
	check := "true"
	if answered {
		check = detectMember
	}
	_, err := h.Run(ctx, host.Cmd{Name: "look for signs of life", Script: check, Timeout: ProbeTimeout})
	var exit *host.ExitError
	switch class := host.ClassOf(err); {
	case answered && errors.As(err, &exit):
		return &LivingError{"host " + r.displayName(id), "it runs etcd or holds etcd data"}
	case answered, class == host.Unreachable, class == host.Lost, errors.Is(err, context.DeadlineExceeded):
		return ctx.Err()
	case err != nil:
		return &LivingError{"host " + r.displayName(id), err.Error()}
	}
	return &LivingError{"host " + r.displayName(id), "it answers again"}
}

// The following checks define the state that etcd must be in. Callers that carry out a plan query etcd and apply them.

// EtcdCheck is a condition that etcd must meet within EtcdTimeout, or the step fails.
type EtcdCheck struct {
	What    string // the condition, in "waiting for …"
	Without string // ID of a host to avoid when asking etcd, if there are others; empty: none
	// Wrong returns what is still missing, or "". An error ends the wait.
	Wrong func(observed.Etcd) (string, error)
}

// EtcdCheckBeforeStep returns the check to pass before the step starts, or nil if there is none; was is the world at
// plan time. A step that removes a member has no check here, because CheckRemoval decides just before the removal.
func EtcdCheckBeforeStep(s plan.Step, want desired.Cluster, was observed.World) *EtcdCheck {
	d := s.Intent.Disrupts()
	part := match.Part(was, hostForStep(s, want), s.Intent.NodeName)
	switch {
	case d == quorum.NoDisruption, d == quorum.Leave:
		return nil
	case d == quorum.Purge:
		return newQuorumCheck()
	case !part.Any() && (s.Intent.Role != desired.ControlPlane || was.Etcd.Reached != observed.Yes):
		return nil
	case d == quorum.Wipe:
		return newLeftCheck(s, want)
	case d == quorum.StopHealthy && !wasHealthy(part, was.Etcd):
		return nil
	}
	return newStopCheck(s, want)
}

// EtcdCheckBeforeUncordon returns the check to pass before a Ready node in the desired version is uncordoned, or nil if
// there is none. After the upgrade of a control-plane host, all voters must be healthy. A node that an earlier run left
// cordoned does not wait for members on other hosts.
func EtcdCheckBeforeUncordon(i step.Intent) *EtcdCheck {
	if i.Role != desired.ControlPlane || step.ParamsOf[step.UncordonParams](i).Resume {
		return nil
	}
	return &EtcdCheck{What: "all etcd voters to be healthy", Wrong: func(e observed.Etcd) (string, error) {
		return unhealthyVoter(e), nil
	}}
}

// unhealthyVoter returns a message about a voter that is not healthy, or "" if all are healthy. It ignores learners,
// because they have no vote and can stay in the list while their host is down.
func unhealthyVoter(e observed.Etcd) string {
	for _, m := range e.Members {
		if !m.Learner && m.Healthy != observed.Yes {
			return "member " + m.Name + " (" + m.ID + ") is not healthy"
		}
	}
	return ""
}

// newStopCheck returns a check that etcd keeps quorum while the member on the host is stopped.
func newStopCheck(s plan.Step, want desired.Cluster) *EtcdCheck {
	return &EtcdCheck{What: "a quorum without " + s.Intent.NodeName, Wrong: func(e observed.Etcd) (string, error) {
		if v := quorum.Check(quorum.Stop, e, memberPart(e, s, want)); !v.Safe {
			return v.Why, nil
		}
		return "", nil
	}}
}

// newLeftCheck returns a check that etcd lists no member on the host.
func newLeftCheck(s plan.Step, want desired.Cluster) *EtcdCheck {
	return &EtcdCheck{What: "its list of members", Without: s.Host, Wrong: func(e observed.Etcd) (string, error) {
		if e.Problem != "" {
			return e.Problem, nil
		}
		part := memberPart(e, s, want)
		v := quorum.Check(quorum.Wipe, e, part)
		switch {
		case v.Safe:
			return "", nil
		case part.Member != "":
			return "", fmt.Errorf("%s must not be reset: %s; plan again, so that its etcd member is removed first",
				s.Intent.NodeName, v.Why)
		}
		return v.Why, nil
	}}
}

// newQuorumCheck returns a check that etcd has quorum.
func newQuorumCheck() *EtcdCheck {
	return &EtcdCheck{What: "a quorum", Wrong: func(e observed.Etcd) (string, error) {
		if v := quorum.Check(quorum.Purge, e, quorum.Part{}); !v.Safe {
			return v.Why, nil
		}
		return "", nil
	}}
}

// memberPart returns the current part of the host in etcd. The state of its data is unknown, because nothing has
// observed it since the plan.
func memberPart(e observed.Etcd, s plan.Step, want desired.Cluster) quorum.Part {
	part := match.Part(observed.World{Etcd: e}, hostForStep(s, want), s.Intent.NodeName)
	part.Data = observed.Unknown
	return part
}

func hostForStep(s plan.Step, want desired.Cluster) desired.Host {
	h, _ := want.Host(s.Host)
	h.ID = s.Host
	return h
}

// wasHealthy reports whether, at plan time, etcd had quorum and the member on the host was healthy.
func wasHealthy(part quorum.Part, was observed.Etcd) bool {
	m, found := findMember(was, part.Member)
	return quorum.Count(was.Members).Holds() && found && m.Healthy == observed.Yes
}

// CheckRemoval returns an error if the member must not be removed from etcd in its current state. listed is false if
// the member has already left. A member that was an abandoned learner at plan time and votes now is an error, because
// its join has continued without its run.
func CheckRemoval(e observed.Etcd, of step.RemoveEtcdParams) (listed bool, err error) {
	m, found := findMember(e, of.Member)
	if !found {
		return false, nil
	}
	if of.Learner && !m.Learner {
		return true, &LivingError{memberName(m), "it completed its join and votes"}
	}
	if v := quorum.Check(quorum.Leave, e, quorum.Part{Member: of.Member}); !v.Safe {
		return true, &EtcdError{fmt.Errorf(
			"%s must not leave now: %s; repair the other members first, as kubeone plan shows", memberName(m),
			v.Why)}
	}
	return true, nil
}

// CheckDead returns an error if the member with that ID answers or its state is unknown. It returns nil if the member
// is dead, or is not listed because an earlier run removed it.
func CheckDead(e observed.Etcd, id string) error {
	m, found := findMember(e, id)
	switch {
	case !found:
		return nil
	case m.Healthy == observed.Yes, m.Version != "":
		return &LivingError{memberName(m), "it answers"}
	case e.Problem != "":
		return errors.New(e.Problem)
	}
	return nil
}

func findMember(seen observed.Etcd, id string) (observed.Member, bool) {
	for _, m := range seen.Members {
		if m.ID == id {
			return m, true
		}
	}
	return observed.Member{}, false
}

func memberName(m observed.Member) string {
	if m.Name == "" {
		return "etcd member " + m.ID + " (nameless)"
	}
	return "etcd member " + m.Name + " (" + m.ID + ")"
}

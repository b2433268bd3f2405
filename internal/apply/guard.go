package apply

import (
	"errors"
	"fmt"

	"kubeone/internal/decide/match"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// What etcd must be like, as rules of values: whoever carries out a plan asks etcd and goes by them.

// EtcdCheck is what etcd is asked for until it is so, for EtcdTimeout at most.
type EtcdCheck struct {
	What    string // what is waited for
	Without string // ID of a host through which etcd is not asked, where it can be asked through others; empty for none
	// Wrong says what is not so yet, empty if nothing is. An error ends the wait.
	Wrong func(observed.Etcd) (string, error)
}

// BeforeStep is what etcd must be like when the step begins; was is the world as the plan found it. A nil check asks
// nothing. A member that leaves is judged by MayLeave, which whoever takes it out asks at that moment.
func BeforeStep(s plan.Step, want desired.Cluster, was observed.World) *EtcdCheck {
	d := s.Intent.Disrupts()
	part := match.Part(was, hostOf(s, want), s.Intent.NodeName)
	switch {
	case d == quorum.NoDisruption, d == quorum.Leave:
		return nil
	case d == quorum.Purge:
		return holds()
	case !part.Any() && (s.Intent.Role != desired.ControlPlane || was.Etcd.Reached != observed.Yes):
		return nil
	case d == quorum.Wipe:
		return hasLeft(s, want)
	case d == quorum.StopHealthy && !wasHealthy(part, was.Etcd):
		return nil
	}
	return mayStop(s, want)
}

// BeforeUncordon is what etcd must be like when a node that is Ready in the wanted version is opened: after the
// upgrade of a control-plane host all voters are healthy. One that an earlier run left closed does not wait for
// other hosts' members.
func BeforeUncordon(i step.Intent) *EtcdCheck {
	if i.Role != desired.ControlPlane || step.ParamsOf[step.UncordonParams](i).Resume {
		return nil
	}
	return &EtcdCheck{What: "every voter of etcd healthy", Wrong: func(e observed.Etcd) (string, error) {
		return allHealthy(e), nil
	}}
}

// allHealthy names a voter that is not healthy. A learner has no vote, and may stay one as long as its own host
// is away.
func allHealthy(e observed.Etcd) string {
	for _, m := range e.Members {
		if !m.Learner && m.Healthy != observed.Yes {
			return "member " + m.Name + " (" + m.ID + ") is not healthy"
		}
	}
	return ""
}

// mayStop is that the host's member may be stopped for a while, by the rules of the quorum.
func mayStop(s plan.Step, want desired.Cluster) *EtcdCheck {
	return &EtcdCheck{What: "a quorum without " + s.Intent.NodeName, Wrong: func(e observed.Etcd) (string, error) {
		if v := quorum.May(quorum.Stop, e, partOn(e, s, want)); !v.Safe {
			return v.Why, nil
		}
		return "", nil
	}}
}

// hasLeft is that the host has no member in etcd.
func hasLeft(s plan.Step, want desired.Cluster) *EtcdCheck {
	return &EtcdCheck{What: "its list of members", Without: s.Host, Wrong: func(e observed.Etcd) (string, error) {
		if e.Problem != "" {
			return e.Problem, nil
		}
		part := partOn(e, s, want)
		v := quorum.May(quorum.Wipe, e, part)
		switch {
		case v.Safe:
			return "", nil
		case part.Member != "":
			return "", fmt.Errorf("%s must not be reset: %s; plan again, its removal comes first", s.Intent.NodeName,
				v.Why)
		}
		return v.Why, nil
	}}
}

// holds is that etcd has its quorum.
func holds() *EtcdCheck {
	return &EtcdCheck{What: "a quorum", Wrong: func(e observed.Etcd) (string, error) {
		if v := quorum.May(quorum.Purge, e, quorum.Part{}); !v.Safe {
			return v.Why, nil
		}
		return "", nil
	}}
}

// partOn is what the step's host has of etcd now. Its data is where the plan found it, or began with.
func partOn(e observed.Etcd, s plan.Step, want desired.Cluster) quorum.Part {
	part := match.Part(observed.World{Etcd: e}, hostOf(s, want), s.Intent.NodeName)
	part.Data = observed.Unknown
	return part
}

func hostOf(s plan.Step, want desired.Cluster) desired.Host {
	h, _ := want.Host(s.Host)
	h.ID = s.Host
	return h
}

// wasHealthy reports whether the host's member was well, as the plan found it, in an etcd with a quorum.
func wasHealthy(part quorum.Part, was observed.Etcd) bool {
	m, found := memberOf(was, part.Member)
	return quorum.Count(was.Members).Holds() && found && m.Healthy == observed.Yes
}

// MayLeave says whether the member may be taken out of etcd as it is now. One that is not listed has left. One that was
// to leave as an abandoned learner, and that has a vote by now, was not abandoned: its join went on without its run.
func MayLeave(e observed.Etcd, of step.RemoveEtcdParams) (listed bool, err error) {
	m, found := memberOf(e, of.Member)
	if !found {
		return false, nil
	}
	if of.Learner && !m.Learner {
		return true, &LivingError{memberName(m), "it has ended its join, and votes"}
	}
	if v := quorum.May(quorum.Leave, e, quorum.Part{Member: of.Member}); !v.Safe {
		return true, &EtcdError{fmt.Errorf(
			"%s must not leave now: %s; bring the other members back first, kubeone plan says how", memberName(m),
			v.Why)}
	}
	return true, nil
}

// FoundDead is why the member with that ID does not go for dead: it answers, or nobody can say. One that is not
// listed was removed by an earlier run.
func FoundDead(e observed.Etcd, id string) error {
	m, found := memberOf(e, id)
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

func memberOf(seen observed.Etcd, id string) (observed.Member, bool) {
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

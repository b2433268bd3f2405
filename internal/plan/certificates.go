package plan

import (
	"errors"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
	"kubeone/internal/text/set"
)

// RenewCertificates plans the renewal of the control plane's certificates and kubeconfigs, one host at a time. It skips
// hosts where a renewal would add less than an hour, so that a killed run resumes where it ended; with all, it renews
// every host. It plans nothing while a control-plane host is unhealthy.
func RenewCertificates(in decide.Input, all bool) (Plan, error) {
	if err := contradictionErrors(in); err != nil {
		return Plan{}, err
	}
	b := newBuilder(in, "certificates-renew")
	d := decide.Decide(in)
	if why := b.whyNotRenewable(d); why != "" {
		b.addBlocked(why)
		return b.plan, nil
	}
	var previous []string
	for _, h := range in.Want.ControlPlane {
		seen := in.Is.Hosts[h.ID]
		if d.Hosts[h.ID].Condition != condition.Healthy {
			continue // it has not joined, and its join makes certificates
		}
		if names := condition.Renewable(&seen, in.Want.Certificates.Validity(), all); len(names) > 0 {
			previous = []string{b.renewOn(h, "asked for: "+problem.List(names), previous)}
		}
	}
	if err := errors.Join(b.refused...); err != nil {
		return Plan{}, err
	}
	b.finishPlan(d)
	return b.plan, nil
}

// whyNotRenewable returns why no certificate may be renewed now; "" if nothing is in the way.
func (b *builder) whyNotRenewable(d decide.Decision) string {
	if !b.clusterAnswers() {
		return "the cluster API or etcd does not answer; run kubeone plan to see what to do"
	}
	var ill []string
	for _, h := range b.in.Want.ControlPlane {
		a := d.Hosts[h.ID]
		if a.Condition != condition.Healthy && !a.Condition.Installable() {
			ill = append(ill, b.displayName(h)+" is "+string(a.Condition)+": "+strings.Join(problem.Texts(a.Reasons),
				"; "))
		}
	}
	if len(ill) == 0 {
		return ""
	}
	return "certificates are renewed only while every control-plane host is healthy, but " + strings.Join(ill, "; ") +
		"; run kubeone plan to see what to do"
}

// renewEnding plans the renewal of certificates that expire soon, one control-plane host at a time. It reports whether
// the next steps can be predicted: a plan has at most one step of a kind for each host.
func (b *builder) renewEnding(d decide.Decision) bool {
	var previous []string
	for _, h := range b.in.Want.ControlPlane {
		names := d.Renewals[h.ID]
		switch {
		case names == nil:
			continue
		case b.hasStep(b.stepID(step.Regenerate, h)):
			b.plan.Again = "certificates of " + b.displayName(h) +
				" expire soon, and are renewed once it is repaired"
			return false
		}
		previous = []string{b.renewOn(h, "less than 90 days are left of "+problem.List(names), previous)}
	}
	b.barrier = set.Union(b.barrier, previous)
	return true
}

// renewOn plans the renewal of everything that kubeadm has made on a healthy control-plane host.
func (b *builder) renewOn(h desired.Host, reason string, needs []string) string {
	changes := []string{
		"certificates in /etc/kubernetes/pki, except the CAs",
		"admin.conf, controller-manager.conf, scheduler.conf",
		"API server, controller manager and scheduler, which start again",
	}
	if len(b.in.Want.ControlPlane) == 1 {
		changes = append(changes, "outage: the API does not answer during this time")
	}
	return b.onHost(h, Step{
		Intent: step.With(step.RegenerateParams{Parts: []string{condition.PartCertificates}}),
		Action: Change, Risk: Restarts, Title: "renew the control plane certificates", Reason: reason, Needs: needs,
		Changes: changes,
	})
}

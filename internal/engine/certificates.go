package engine

import (
	"kubeone/internal/decide"
	"kubeone/internal/plan"
)

// RenewCertificates renews the certificates and kubeconfigs of the control plane, one host at a time.
type RenewCertificates struct {
	All bool // including certificates renewed within the last hour
}

func (r RenewCertificates) plan(in planInput) (plan.Plan, []decide.Decision, error) {
	p, err := plan.RenewCertificates(in.Decide, r.All)
	return completePlan(p, in, err)
}

// whyRefused returns why certificates must not be renewed, or nil if they can be.
func (RenewCertificates) whyRefused(p Proposal) error {
	if p.Plan.Blocked != "" {
		return &BlockedError{p.Decision().Route, p.Plan.Blocked}
	}
	return nil
}

// RotateCA rotates the keys of some of observed.Authorities() without an outage. Each host trusts the new key before
// any host signs with it, and trusts the old key until nothing signed with it is in use.
type RotateCA struct {
	Authorities []string // empty: all but the cluster CA, which is included only if its rotation has started
	// Anew starts a rotation if none is in progress. A rotation in progress is always completed.
	Anew bool
}

func (r RotateCA) plan(in planInput) (plan.Plan, []decide.Decision, error) {
	authorities, err := plan.RotationGoals(r.Authorities, in.Decide)
	if err != nil {
		return plan.Plan{}, nil, &ConfigError{err}
	}
	p, err := plan.RotateCA(in.Decide, authorities, r.Anew)
	return completePlan(blockIfUnread(p, in.unread), in, err)
}

// blockIfUnread blocks a plan that would report that no rotation is in progress, if the CAs that extension API servers
// trust could not be read.
func blockIfUnread(p plan.Plan, unread error) plan.Plan {
	if unread != nil && len(p.Steps) == 0 && p.Blocked == "" {
		p.Blocked = "the CAs that extension API servers trust could not be read, so it is unknown whether a rotation has " +
			"ended: " + unread.Error()
	}
	return p
}

// whyRefused returns why keys must not be rotated or the rotation cannot be completed, or nil if there is no reason.
func (RotateCA) whyRefused(p Proposal) error {
	if p.Plan.Blocked == "" && len(p.Plan.Steps) == 0 && p.Plan.Again != "" {
		return &BlockedError{p.Decision().Route, p.Plan.Again}
	}
	return RenewCertificates{}.whyRefused(p)
}

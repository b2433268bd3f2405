package engine

import (
	"kubeone/internal/decide"
	"kubeone/internal/plan"
)

// RenewCertificates renews the certificates and kubeconfigs of the control plane, one host after the other.
type RenewCertificates struct {
	All bool // also those that were renewed within the last hour
}

func (r RenewCertificates) plan(in planInput) (plan.Plan, []decide.Decision, error) {
	p, err := plan.RenewCertificates(in.Decide, r.All)
	return completePlan(p, in, err)
}

// whyRefused is why no certificate may be renewed; nil if nothing is in the way.
func (RenewCertificates) whyRefused(p Proposal) error {
	if p.Plan.Blocked != "" {
		return &BlockedError{p.Decision().Route, p.Plan.Blocked}
	}
	return nil
}

// RotateCA rotates the keys of authorities, of observed.Authorities(), without an outage: each host trusts the new key
// before anybody signs with it, and the former one until nobody shows anything that it has signed.
type RotateCA struct {
	Authorities []string // empty is all but the CA of the cluster, unless its rotation has begun
	// Anew begins a rotation where none has begun; otherwise what has begun is ended.
	Anew bool
}

func (r RotateCA) plan(in planInput) (plan.Plan, []decide.Decision, error) {
	authorities, err := plan.RotationGoals(r.Authorities, in.Decide)
	if err != nil {
		return plan.Plan{}, nil, &ConfigError{err}
	}
	p, err := plan.RotateCA(in.Decide, authorities, r.Anew)
	return completePlan(endUnknown(p, in.unread), in, err)
}

// endUnknown blocks a plan that would say that no rotation has begun, where whom extension API servers trust could not
// be read.
func endUnknown(p plan.Plan, unread error) plan.Plan {
	if unread != nil && len(p.Steps) == 0 && p.Blocked == "" {
		p.Blocked = "whom extension API servers trust could not be read, so that nobody knows whether a rotation has " +
			"ended: " + unread.Error()
	}
	return p
}

// whyRefused is why no key may be rotated, or the rotation not be ended; nil if nothing is in the way.
func (RotateCA) whyRefused(p Proposal) error {
	if p.Plan.Blocked == "" && len(p.Plan.Steps) == 0 && p.Plan.Again != "" {
		return &BlockedError{p.Decision().Route, p.Plan.Again}
	}
	return RenewCertificates{}.whyRefused(p)
}

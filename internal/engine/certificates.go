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
	return planned(p, in, err)
}

// refusal is why no certificate may be renewed; nil if nothing is in the way.
func (RenewCertificates) refusal(p Proposal) error {
	if p.Plan.Blocked != "" {
		return &BlockedError{p.Decision().Route, p.Plan.Blocked}
	}
	return nil
}

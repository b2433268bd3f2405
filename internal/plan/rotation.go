package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/rotation"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
)

// RotateCA plans the rotation of these authorities, of observed.Authorities(), in phases, each on all control-plane
// hosts before the next. It continues rotations that have begun. With newKeys, it makes new keys for the other
// authorities. It plans nothing while a control-plane host is unhealthy, or one serves that is not in the manifest.
func RotateCA(in decide.Input, authorities []string, newKeys bool) (Plan, error) {
	if err := contradictionErrors(in); err != nil {
		return Plan{}, err
	}
	b := newBuilder(in, "certificates-rotate-ca")
	d := decide.Decide(in)
	if why := b.whyNotRotatable(d, authorities); why != "" {
		b.addBlocked(why)
		return b.plan, nil
	}
	var previous []string
	next := b.rotationPhase(authorities, newKeys)
	for ; next.Phase != rotation.Settled && len(b.refused) == 0; next = b.rotationPhase(authorities, false) {
		var held string
		if previous, held = b.beforePhase(next, d, previous); held != "" {
			authorities = slices.DeleteFunc(slices.Clone(authorities), func(name string) bool { return name == held })
			continue
		}
		for _, id := range next.Hosts {
			previous = []string{b.rotateOn(b.hostByID(id), next, previous)}
		}
		if next.Phase == rotation.Forget {
			b.trimExtensionCAs(next.Authorities, previous)
		}
	}
	b.trimExtensionCAs(slices.DeleteFunc(b.leftInExtensions(), func(name string) bool {
		return newKeys && !slices.Contains(authorities, name)
	}), previous)
	if err := errors.Join(b.refused...); err != nil {
		return Plan{}, err
	}
	b.finishPlan(d)
	return b.plan, nil
}

// beforePhase plans what a phase needs, and returns the authority that must not continue yet; the plan says why.
func (b *builder) beforePhase(next rotation.Decision, d decide.Decision, needs []string) (after []string, held string) {
	in := func(p rotation.Phase, name string) bool {
		return next.Phase == p && slices.Contains(next.Authorities, name)
	}
	if in(rotation.Use, observed.ClusterCA) {
		if needs, held = b.learnCA(d, needs); held != "" {
			return needs, held
		}
	}
	unseen := b.unseenNodes(d)
	if in(rotation.Forget, observed.ServiceAccounts) {
		if unseen != "" {
			b.addRerunReason("the former key of service accounts is trusted until no token that it has signed is " +
				"in use, which is unknown for " + unseen)
			return needs, observed.ServiceAccounts
		}
		needs = b.renewTokens(needs)
	}
	if in(rotation.Forget, observed.ClusterCA) {
		if b.plansPhase(step.RotateUse, observed.ClusterCA) {
			// Users' certificates are of the former CA, and so is this run's.
			b.addRerunReason("the former cluster CA is dropped once no certificate that it has signed is in " +
				"use: give users new kubeconfigs again (kubeone kubeconfig), and then run " +
				"kubeone certificates rotate-ca --resume")
			return needs, observed.ClusterCA
		}
		if unseen != "" {
			b.addRerunReason("the former cluster CA is trusted until no certificate that it has signed is in " +
				"use, which is unknown for " + unseen)
			return needs, observed.ClusterCA
		}
		needs = b.forgetCA(needs)
	}
	return needs, ""
}

// addRerunReason adds a reason for another run.
func (b *builder) addRerunReason(why string) {
	if b.plan.Again != "" {
		why = b.plan.Again + "; " + why
	}
	b.plan.Again = why
}

// plansPhase reports whether an authority is in a phase of that kind on some host in this plan.
func (b *builder) plansPhase(kind step.Kind, authority string) bool {
	return slices.ContainsFunc(b.in.Want.ControlPlane, func(h desired.Host) bool {
		s, ok := b.plan.Step(b.stepID(kind, h))
		return ok && slices.Contains(step.ParamsOf[step.RotateParams](s.Intent).Authorities, authority)
	})
}

// rotationPhase returns the next phase in the predicted world.
func (b *builder) rotationPhase(authorities []string, newKeys bool) rotation.Decision {
	return rotation.Decide(rotation.HostsOf(b.in.Want.ControlPlane, b.world.Is.Hosts), authorities, newKeys)
}

// whyNotRotatable returns why no key may be rotated now; "" if nothing is in the way.
func (b *builder) whyNotRotatable(d decide.Decision, authorities []string) string {
	if why := b.whyNotRenewable(d); why != "" {
		return why
	}
	if name := decide.ServerElsewhere(b.in); name != "" {
		return "control-plane host " + name + " is not in the manifest: it would not get the new key, and would " +
			"trust nothing signed with it; add it to the manifest, or remove it from the cluster"
	}
	hosts := rotation.HostsOf(b.in.Want.ControlPlane, b.in.Is.Hosts)
	if slices.Contains(authorities, observed.ClusterCA) && !slices.Contains(rotation.Begun(hosts), observed.ClusterCA) {
		if others := b.nodesElsewhere(); len(others) > 0 {
			return "the cluster CA is not rotated while the cluster has Nodes that are not in the manifest, because they " +
				"would not get the next CA: " + problem.List(others) + " (--authority names other keys)"
		}
	}
	if unknown := rotation.Unknown(hosts, authorities); len(unknown) > 0 {
		return "a control-plane host does not report what it trusts for " + problem.List(unknown) +
			": its file of certificates or public keys in /etc/kubernetes/pki is missing or unreadable"
	}
	return ""
}

// rotateOn plans a phase on one host.
func (b *builder) rotateOn(h desired.Host, d rotation.Decision, needs []string) string {
	var news []string
	if d.Phase == rotation.Learn {
		news = d.New
	}
	return b.onHost(h, Step{
		Intent: step.With(step.RotateParams{Phase: d.Phase, Authorities: d.Authorities, NewKeys: news}),
		Action: Change, Risk: Restarts, Title: rotationTitle(d), Reason: rotationReason(d.Phase),
		Changes: b.rotationChanges(d), Needs: slices.Clone(needs),
	})
}

// authorityTitle returns an authority as part of a sentence.
func authorityTitle(name string) string {
	switch name {
	case observed.ClusterCA:
		return "the cluster CA"
	case observed.EtcdCA:
		return "the etcd CA"
	case observed.FrontProxyCA:
		return "the front proxy CA"
	}
	return "the key of service accounts"
}

func rotationTitle(d rotation.Decision) string {
	var of []string
	for _, name := range d.Authorities {
		of = append(of, authorityTitle(name))
	}
	names := problem.List(of)
	switch d.Phase {
	case rotation.Learn:
		return "trust a new key in addition to the present one: " + names
	case rotation.Use:
		return "sign with the new key: " + names
	case rotation.Forget, rotation.Settled:
	}
	return "trust only the new key: " + names
}

func rotationReason(p rotation.Phase) string {
	switch p {
	case rotation.Learn:
		return "it must trust the new key before another host uses it"
	case rotation.Use:
		return "all control-plane hosts trust it"
	case rotation.Forget, rotation.Settled:
	}
	return "nothing signed by another key is still in use"
}

func (b *builder) rotationChanges(d rotation.Decision) []string {
	has := func(name string) bool { return slices.Contains(d.Authorities, name) }
	starts := []string{"API server"}
	if has(observed.EtcdCA) {
		starts = []string{"etcd", "API server"}
	}
	if has(observed.ServiceAccounts) || has(observed.ClusterCA) {
		starts = append(starts, "controller manager")
	}
	if has(observed.ClusterCA) {
		starts = append(starts, "scheduler", "kubelet")
	}
	verb := " restart"
	if len(starts) == 1 {
		verb = " restarts"
	}
	out := []string{problem.List(starts) + verb}
	if d.Phase == rotation.Use {
		if has(observed.ClusterCA) {
			out = append(out, "API server certificates and control plane kubeconfigs, signed again",
				"from then on, clients that trust only the former CA reject the API server")
		}
		if has(observed.EtcdCA) {
			out = append(out, "certificates of etcd and its clients, signed again")
		}
		if has(observed.FrontProxyCA) {
			out = append(out, "front proxy client certificate, signed again")
		}
	}
	if d.Phase == rotation.Forget && has(observed.ClusterCA) {
		out = append(out, "from then on, kubeconfigs and other certificates signed by the former CA are refused")
	}
	if len(b.in.Want.ControlPlane) == 1 {
		out = append(out, "outage: the API does not answer during this time")
	}
	return out
}

// renewTokens plans that all pods and Secrets get tokens signed with the new key: on one control-plane host after the
// other, because a controller manager restarts there, and on workers at the same time.
func (b *builder) renewTokens(needs []string) []string {
	if b.hasStep(string(step.RenewTokenSecrets)) {
		return needs
	}
	secrets := []string{b.onCluster(string(step.RenewTokenSecrets), Step{
		Intent: plainIntent(step.RenewTokenSecrets), Action: Change, Needs: slices.Clone(needs),
		Title:  "renew the tokens in Secrets",
		Reason: "the API servers are about to trust no other key",
		Changes: []string{
			"Secrets of type kubernetes.io/service-account-token: a client with a copy needs the new one",
		},
	})}
	previous, workers := needs, []string(nil)
	for _, h := range b.joinedHosts() {
		s := Step{
			Intent: plainIntent(step.RenewTokens), Action: Change, Risk: Restarts, Needs: slices.Clone(needs),
			Title: "renew the tokens of its pods", Reason: "the API servers are about to trust no other key",
			Changes: []string{"kubelet restarts; pods keep running, and get new tokens"},
		}
		if h.Role == desired.ControlPlane {
			s.Changes[0] = "kubelet and controller manager restart; pods keep running, and get new tokens"
			s.Needs = slices.Clone(previous)
			previous = []string{b.onHost(h, s)}
			continue
		}
		workers = append(workers, b.onHost(h, s))
	}
	return slices.Concat(secrets, previous, workers)
}

// RotationGoals returns the authorities with the given names, as an operator writes them. Without names it returns all
// but the cluster CA, whose rotation needs the operator's help; if that has begun, it is included. An unknown name is
// an error.
func RotationGoals(names []string, in decide.Input) ([]string, error) {
	all := observed.Authorities()
	if len(names) == 0 {
		begun := rotation.Begun(rotation.HostsOf(in.Want.ControlPlane, in.Is.Hosts))
		return slices.DeleteFunc(all, func(name string) bool {
			return name == observed.ClusterCA && !slices.Contains(begun, name)
		}), nil
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("the key of authority %q cannot be rotated; choose from %s", name,
				strings.Join(all, ", "))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

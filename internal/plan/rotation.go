package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/rotation"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
	"kubeone/internal/problem"
	"kubeone/internal/step"
)

// RotateCA plans the rotation of those authorities, of observed.Authorities(), in its phases, each on all control-plane
// hosts before the next. What has begun goes on; where nothing has, and anew is true, new keys are made. Nothing is
// planned while a control-plane host is not well, or one serves that the manifest does not have.
func RotateCA(in decide.Input, authorities []string, anew bool) (Plan, error) {
	if err := contradictions(in); err != nil {
		return Plan{}, err
	}
	b := newBuilder(in, "certificates-rotate-ca")
	d := decide.Decide(in)
	if why := b.unrotatable(d, authorities); why != "" {
		b.block(why)
		return b.plan, nil
	}
	var previous []string
	next := b.rotation(authorities, anew)
	for ; next.Phase != rotation.Settled && len(b.refused) == 0; next = b.rotation(authorities, false) {
		if next.Phase == rotation.Forget && slices.Contains(next.Authorities, observed.ServiceAccounts) {
			unseen := b.unseenTokens(d)
			if unseen != "" {
				b.plan.Again = "the former key of service accounts is trusted until nobody shows tokens that it has " +
					"signed, which is not known of " + unseen
				authorities = slices.DeleteFunc(slices.Clone(authorities), func(name string) bool {
					return name == observed.ServiceAccounts
				})
				continue
			}
			previous = b.renewTokens(previous)
		}
		for _, id := range next.Hosts {
			previous = []string{b.rotateOn(b.host(id), next, previous)}
		}
		if next.Phase == rotation.Forget && slices.Contains(next.Authorities, observed.FrontProxyCA) {
			b.trimFrontProxy(previous)
		}
	}
	if err := errors.Join(b.refused...); err != nil {
		return Plan{}, err
	}
	b.finish(d)
	return b.plan, nil
}

// rotation is the next phase in the world as it is predicted by now.
func (b *builder) rotation(authorities []string, anew bool) rotation.Decision {
	return rotation.Decide(rotation.HostsOf(b.in.Want.ControlPlane, b.world.Is.Hosts), authorities, anew)
}

// unrotatable is why no key may be rotated now; "" where nothing is in the way.
func (b *builder) unrotatable(d decide.Decision, authorities []string) string {
	if why := b.unrenewable(d); why != "" {
		return why
	}
	if name := decide.ServerElsewhere(b.in); name != "" {
		return "control-plane host " + name + " is not in the manifest: nobody would tell it of a new key, and it " +
			"would trust no one who has it; put it into the manifest, or remove it from the cluster"
	}
	hosts := rotation.HostsOf(b.in.Want.ControlPlane, b.in.Is.Hosts)
	if unknown := rotation.Unknown(hosts, authorities); len(unknown) > 0 {
		return "some control-plane host does not say whom it trusts for " + problem.List(unknown) +
			": its file of certificates or public keys in /etc/kubernetes/pki is gone, or cannot be read"
	}
	return ""
}

// unseenTokens are the Nodes of which nobody would know whether their pods have new tokens; "" where there are none.
func (b *builder) unseenTokens(d decide.Decision) string {
	var out []string
	for _, h := range b.in.Want.Hosts() {
		if a := d.Hosts[h.ID]; a.Condition != condition.Healthy && !a.Condition.Installable() {
			out = append(out, b.node(h)+" ("+string(a.Condition)+")")
		}
	}
	for i := range b.in.Is.API.Nodes {
		n := &b.in.Is.API.Nodes[i]
		known := func(h desired.Host) bool { return b.node(h) == n.Name }
		if !slices.ContainsFunc(b.in.Want.Hosts(), known) {
			out = append(out, n.Name+" (not of the manifest)")
		}
	}
	return problem.List(out)
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

// authorityTitle is an authority in a sentence.
func authorityTitle(name string) string {
	switch name {
	case observed.EtcdCA:
		return "etcd's CA"
	case observed.FrontProxyCA:
		return "the front proxy's CA"
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
		return "trust a new key beside the present one: " + names
	case rotation.Use:
		return "sign with the new key: " + names
	case rotation.Forget, rotation.Settled:
	}
	return "trust the new key alone: " + names
}

func rotationReason(p rotation.Phase) string {
	switch p {
	case rotation.Learn:
		return "it must trust what others will show, before they do"
	case rotation.Use:
		return "all control-plane hosts trust it"
	case rotation.Forget, rotation.Settled:
	}
	return "nobody shows anything any more that another key has signed"
}

func (b *builder) rotationChanges(d rotation.Decision) []string {
	var out []string
	etcd := slices.Contains(d.Authorities, observed.EtcdCA)
	tokens := slices.Contains(d.Authorities, observed.ServiceAccounts)
	switch {
	case etcd && tokens:
		out = append(out, "etcd, API server and controller manager, which start anew")
	case etcd:
		out = append(out, "etcd and API server, which start anew")
	case tokens:
		out = append(out, "API server and controller manager, which start anew")
	default:
		out = append(out, "API server, which starts anew")
	}
	if d.Phase == rotation.Use {
		if etcd {
			out = append(out, "certificates of etcd and of its clients, signed anew")
		}
		if slices.Contains(d.Authorities, observed.FrontProxyCA) {
			out = append(out, "certificate of the front proxy's client, signed anew")
		}
	}
	if len(b.in.Want.ControlPlane) == 1 {
		out = append(out, "outage: the API does not answer meanwhile")
	}
	return out
}

// renewTokens plans that all pods have tokens which the new key has signed, and Secrets too: on one control-plane host
// after the other, as a controller manager starts anew there, and on workers at the same time.
func (b *builder) renewTokens(needs []string) []string {
	if b.has(string(step.RenewTokenSecrets)) {
		return needs
	}
	secrets := []string{b.onCluster(string(step.RenewTokenSecrets), Step{
		Intent: only(step.RenewTokenSecrets), Action: Change, Needs: slices.Clone(needs),
		Title:  "make the tokens anew that stand in Secrets",
		Reason: "the API servers are about to trust no other key",
		Changes: []string{
			"Secrets of type kubernetes.io/service-account-token: who has a copy of one needs the new one",
		},
	})}
	previous, workers := needs, []string(nil)
	for _, h := range b.in.Want.Hosts() {
		if seen := b.world.Is.Hosts[h.ID]; seen.Marker == nil || !seen.Marker.Complete {
			continue
		}
		s := Step{
			Intent: only(step.RenewTokens), Action: Change, Risk: Restarts, Needs: slices.Clone(needs),
			Title: "make the tokens of its pods anew", Reason: "the API servers are about to trust no other key",
			Changes: []string{"kubelet: starts anew; pods go on, and find new tokens"},
		}
		if h.Role == desired.ControlPlane {
			s.Changes[0] = "kubelet and controller manager: start anew; pods go on, and find new tokens"
			s.Needs = slices.Clone(previous)
			previous = []string{b.onHost(h, s)}
			continue
		}
		workers = append(workers, b.onHost(h, s))
	}
	return slices.Concat(secrets, previous, workers)
}

// trimFrontProxy plans that extension API servers do not trust the former CA any more.
func (b *builder) trimFrontProxy(needs []string) {
	if id := string(step.TrimFrontProxyCA); !b.has(id) {
		b.onCluster(id, Step{
			Intent: only(step.TrimFrontProxyCA), Action: Change, Needs: slices.Clone(needs),
			Title:   "have extension API servers trust the new CA of the front proxy alone",
			Reason:  "API servers add to what is there, and take nothing out",
			Changes: []string{"ConfigMap kube-system/extension-apiserver-authentication"},
		})
	}
}

// RotationGoals are the authorities that a caller may ask for, from names as people write them: none is all. A name
// that is none is an error.
func RotationGoals(names []string) ([]string, error) {
	all := observed.Authorities()
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("%q is no authority whose key can be rotated; those are %s", name,
				strings.Join(all, ", "))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

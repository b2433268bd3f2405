package plan

import (
	"maps"
	"slices"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/rotation"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
	"kubeone/internal/text/set"
)

// learnCA plans that joining hosts, new pods and workers trust the next CA before it signs. Running pods have read the
// CAs at their start, and users have them in kubeconfigs. So if a host learns of the CA only in this plan, the rotation
// is held after this.
func (b *builder) learnCA(d decide.Decision, needs []string) (after []string, held string) {
	published := []string{b.onCluster(string(step.PublishCA), Step{
		Intent: step.With(step.PublishCAParams{}), Action: Change, Needs: slices.Clone(needs),
		Title:  "publish the next cluster CA in addition to the present one",
		Reason: "joining hosts and new pods must trust the future API server certificates",
		Changes: []string{
			"ConfigMap kube-public/cluster-info",
			"ConfigMap kube-root-ca.crt of each namespace, by the controller manager",
		},
	})}
	has := rotation.HostsOf(b.in.Want.ControlPlane, b.world.Is.Hosts)
	trusted := rotation.Trusted(has, observed.ClusterCA)
	workers := b.trustOnWorkers(step.LearnCA, published, func(a observed.Authority) bool {
		return len(desired.Missing(trusted, a.Trusted)) == 0
	})
	needs = slices.Concat(published, workers)
	if unseen := b.unseenNodes(d); unseen != "" {
		b.addRerunReason("the next cluster CA does not sign until all Nodes trust it, which is unknown for " + unseen)
		return needs, observed.ClusterCA
	}
	if len(workers) > 0 || b.plansPhase(step.RotateLearn, observed.ClusterCA) {
		b.addRerunReason("the next cluster CA signs once no client trusts only the present one: restart pods, " +
			"give users new kubeconfigs (kubeone kubeconfig), and then run kubeone certificates rotate-ca --resume")
		return needs, observed.ClusterCA
	}
	if rotation.Signs(has, observed.ClusterCA) {
		return needs, "" // a host signs already: a check of pods comes too late
	}
	return []string{b.onCluster(string(step.PodsTrustCA), Step{
		Intent: plainIntent(step.PodsTrustCA), Action: Change, Needs: needs,
		Title: "check that all pods know the next cluster CA", Reason: "pods read CAs only when they start",
	})}, ""
}

// forgetCA plans that all kubelets get certificates of the new CA, and that workers and joining hosts trust it alone. A
// kubelet has no serving certificate until its request is approved, which only a run does. So at most as many workers
// ask at a time as may be unavailable, and if one gets no answer, no other asks.
func (b *builder) forgetCA(needs []string) []string {
	parts := []string{condition.PartKubelet, condition.PartServing}
	const reason = "the API servers are about to trust no other CA"
	previous, workers := needs, []desired.Host(nil)
	for _, h := range b.joinedHosts() {
		if h.Role == desired.ControlPlane {
			previous = []string{b.regenerateParts(h, parts, reason, previous)}
			continue
		}
		workers = append(workers, h)
	}
	asked, wide := make([]string, 0, len(workers)), b.in.Want.Upgrade.AtOnce(len(workers))
	for n, h := range workers {
		after := needs
		if n >= wide {
			after = set.Union(needs, asked[n-wide:n-wide+1])
		}
		asked = append(asked, b.regenerateParts(h, parts, reason, after))
	}
	renewed := []string{b.onCluster(string(step.PublishCA)+"-alone", Step{
		Intent: step.With(step.PublishCAParams{Alone: true}), Action: Change, Needs: slices.Concat(previous, asked),
		Title: "publish only the new cluster CA", Reason: reason,
		Changes: []string{"ConfigMap kube-public/cluster-info"},
	})}
	none := func(observed.Authority) bool { return false }
	return slices.Concat(renewed, b.trustOnWorkers(step.ForgetCA, renewed, none))
}

// trustOnWorkers plans a step of that kind on the joined workers that do not have the trust yet.
func (b *builder) trustOnWorkers(kind step.Kind, needs []string, done func(observed.Authority) bool) []string {
	title := "trust the next cluster CA in addition to the present one"
	reason := "API servers will present certificates that it signs"
	if kind == step.ForgetCA {
		title = "trust only the new cluster CA"
		reason = "certificates of the former CA are no longer in use"
	}
	var out []string
	for _, h := range b.joinedHosts() {
		if h.Role == desired.Worker && !done(b.world.Is.Hosts[h.ID].Authorities[observed.ClusterCA]) {
			out = append(out, b.onHost(h, Step{
				Intent: plainIntent(kind), Action: Change, Risk: Restarts, Title: title, Reason: reason,
				Needs: slices.Clone(needs), Changes: []string{"kubelet restarts; pods keep running"},
			}))
		}
	}
	return out
}

// leftInExtensions returns the authorities with keys that extension API servers trust and no control-plane host trusts.
// They remain if a run is interrupted after all hosts have dropped the key.
func (b *builder) leftInExtensions() []string {
	hosts := rotation.HostsOf(b.in.Want.ControlPlane, b.world.Is.Hosts)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(b.in.Is.API.ExtensionCAs)) {
		if len(desired.Missing(b.in.Is.API.ExtensionCAs[name], rotation.Trusted(hosts, name))) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// joinedHosts returns the hosts in the manifest that are members of the cluster.
func (b *builder) joinedHosts() []desired.Host {
	return slices.DeleteFunc(b.in.Want.Hosts(), func(h desired.Host) bool {
		seen := b.world.Is.Hosts[h.ID]
		return seen.Marker == nil || !seen.Marker.Complete
	})
}

// unseenNodes returns the Nodes whose certificates and trusted CAs are unknown; "" if there are none.
func (b *builder) unseenNodes(d decide.Decision) string {
	var out []string
	for _, h := range b.in.Want.Hosts() {
		switch a := d.Hosts[h.ID]; {
		case a.Condition == condition.Healthy, a.Condition == condition.Empty:
		case a.Condition.Silent():
			out = append(out, b.displayName(h)+" ("+string(a.Condition)+")")
		default:
			out = append(out, b.displayName(h)+" ("+string(a.Condition)+": kubeone plan says what to do)")
		}
	}
	for _, name := range b.nodesElsewhere() {
		out = append(out, name+" (not in the manifest)")
	}
	return problem.List(out)
}

// nodesElsewhere returns the names of Nodes that do not belong to a host in the manifest.
func (b *builder) nodesElsewhere() []string {
	var out []string
	for i := range b.in.Is.API.Nodes {
		name := b.in.Is.API.Nodes[i].Name
		if !slices.ContainsFunc(b.in.Want.Hosts(), func(h desired.Host) bool { return b.nodeName(h) == name }) {
			out = append(out, name)
		}
	}
	return out
}

// trimExtensionCAs plans that extension API servers stop trusting the former CAs of these authorities.
func (b *builder) trimExtensionCAs(authorities, needs []string) {
	trim := func(kind step.Kind, name string) {
		if slices.Contains(authorities, name) && !b.hasStep(string(kind)) {
			b.onCluster(string(kind), Step{
				Intent: plainIntent(kind), Action: Change, Needs: slices.Clone(needs),
				Title:   "make extension API servers trust only the new key: " + authorityTitle(name),
				Reason:  "API servers only add keys there and never remove any",
				Changes: []string{"ConfigMap kube-system/extension-apiserver-authentication"},
			})
		}
	}
	trim(step.TrimClientCA, observed.ClusterCA)
	trim(step.TrimFrontProxyCA, observed.FrontProxyCA)
}

package plan

import (
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
	"kubeone/internal/text/set"
)

// moveEndpoint plans how all clients move to the desired endpoint. First, API server certificates get its names, one
// host at a time. Then kubeconfigs change, those of the control plane first; each host checks that the API answers
// there. Last, the objects in the cluster change that kube-proxy and joining hosts read. Later steps wait for that. A
// worker that does not reach the new endpoint delays only the objects, and the steps that let pods use the endpoint.
func (b *builder) moveEndpoint(d decide.Decision) {
	var last []string
	for _, h := range b.in.Want.ControlPlane {
		if n, ok := d.Names[h.ID]; ok {
			last = []string{b.apiNames(h, n, last)}
		}
	}
	b.barrier = set.Union(b.barrier, last)
	var dialled []string
	for _, id := range d.Diallers {
		h := b.hostByID(id)
		id := b.addDialStep(h)
		dialled = append(dialled, id)
		if h.Role == desired.ControlPlane {
			b.barrier = set.Union(b.barrier, []string{id})
		}
	}
	if d.Publish {
		reason := "the cluster has " + b.world.Is.API.Endpoint
		if b.in.Want.Endpoint.Is(b.world.Is.API.Endpoint) {
			reason = "the names in the API server certificates have changed"
		}
		b.published = b.onCluster(string(step.PublishEndpoint), Step{
			Intent: step.With(step.PublishEndpointParams{
				Endpoint: b.in.Want.Endpoint.String(), Former: b.in.Want.Endpoint.Former,
			}), Action: Change,
			Title:  "publish the endpoint " + b.in.Want.Endpoint.String() + " in the cluster",
			Reason: reason,
			Needs:  dialled,
			Changes: []string{
				"ConfigMap kube-public/cluster-info", "ConfigMap kube-system/kubeadm-config", "the cluster record",
			},
		})
	}
}

// afterPublishing makes a step wait until the cluster's objects name the endpoint, or until that has failed. A step
// that leads pods on every host to the endpoint waits until all hosts have found it.
func (b *builder) afterPublishing(s *Step) {
	switch {
	case b.published == "":
	case s.Intent.Kind == step.ApplyAddon || s.Intent.Kind == step.SystemAddons || s.Intent.Kind == step.SetSystem:
		s.Needs = set.Union(s.Needs, []string{b.published})
	default:
		s.After = set.Union(s.After, []string{b.published})
	}
}

func (b *builder) apiNames(h desired.Host, n decide.Names, after []string) string {
	title, reason := "add "+problem.List(n.Add)+" to the API server certificate", "API clients will use it"
	if len(n.Drop) > 0 {
		title = "remove " + problem.List(n.Drop) + " from the API server certificate"
		reason = "nothing in the cluster uses it now"
	}
	changes := append(prefixed("+ ", n.Add), prefixed("- ", n.Drop)...)
	return b.onHost(h, Step{
		Intent: step.With(step.APINamesParams{Add: n.Add, Keep: n.Keep, Drop: n.Drop}), Action: Change,
		Title: title, Reason: reason, Needs: after, Changes: changes,
	})
}

func prefixed(prefix string, names []string) []string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, prefix+name)
	}
	return out
}

// addDialStep plans that a host's kubeconfigs name the desired endpoint.
func (b *builder) addDialStep(h desired.Host) string {
	seen, want := b.world.Is.Hosts[h.ID], b.in.Want.Endpoint
	var changes []string
	former, risk := seen.AdminEndpoint, NoRisk
	if h.Role == desired.ControlPlane && !want.IsURL(seen.AdminEndpoint) {
		changes = append(changes, "/etc/kubernetes/admin.conf")
	}
	if !want.IsURL(seen.Endpoint) && (h.Role == desired.Worker || !h.Dials(seen.Endpoint)) {
		former, risk = seen.Endpoint, Restarts
		changes = append(changes, "/etc/kubernetes/kubelet.conf", "kubelet restarted")
	}
	return b.onHost(h, Step{
		Intent: step.With(step.DialParams{Endpoint: want.String()}), Action: Change, Risk: risk,
		Title:   "dial " + want.String(),
		Reason:  "it connects to " + strings.TrimPrefix(former, "https://"),
		Changes: changes,
	})
}

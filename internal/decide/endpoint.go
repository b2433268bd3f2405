package decide

import (
	"cmp"
	"slices"
	"strings"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// Names holds the changes to the names in an API server certificate. Names that are no longer desired are kept until
// the operator drops them, so that clients that still dial them trust the server.
type Names struct {
	Add  []string `json:"add,omitempty"`
	Keep []string `json:"keep,omitempty"` // that neither the manifest nor kubeadm gives it
	Drop []string `json:"drop,omitempty"`
}

// The endpoint moves in an order in which every client can find the API at any moment. All API servers get the new
// names before any client dials them. All hosts dial the new endpoint before the cluster's objects name it. The old
// names stay until the operator drops them.

// askEndpoint considers hosts inside the limit. What belongs to the whole cluster changes only without a limit.
func (v *view) askEndpoint() (fsm.Event, string) {
	var wrong []string
	if names := v.nameChanges(); len(names) > 0 {
		certified := namesOf(v.hosts, func(s *hostState) bool { _, ok := names[s.ID]; return ok })
		wrong = append(wrong, "names in the API server certificates on "+problem.List(certified)+" must change")
	}
	if diallers := v.hostsToRedirect(); len(diallers) > 0 {
		dial := namesOf(v.hosts, func(s *hostState) bool { return slices.Contains(diallers, s.ID) })
		wrong = append(wrong, problem.List(dial)+" connect to another endpoint")
	}
	switch {
	case !v.isPublished():
		wrong = append(wrong, "the cluster has the endpoint "+v.in.Is.API.Endpoint)
	case v.in.Is.API.Record.IsUnreadable(observed.RecordFormerEndpoints) && !v.objectsNameEndpoint():
		wrong = append(wrong, "the record of former names in the cluster cannot be read")
	case !v.objectsNameEndpoint():
		wrong = append(wrong, "the cluster still keeps the names "+problem.List(v.in.Is.API.Record.FormerEndpoints))
	}
	if len(wrong) == 0 {
		return fsm.OnSame, "the API is at the manifest's endpoint"
	}
	return fsm.OnDiffers, strings.Join(wrong, "; ")
}

// Settle returns the input with the endpoint to use: the manifest's if the cluster has it or can move there now, else
// the cluster's own. API server certificates keep the names that the cluster has noted and the current endpoint's name;
// none if they are to be dropped. If a move to the manifest's endpoint has begun, its name is kept too, because hosts
// that do not answer now may dial it. Limited says that the request is not about the whole cluster, which the endpoint
// concerns.
func Settle(in Input, limited bool) Input {
	in.Want.Endpoint.Former, in.Want.Endpoint.Later, in.Want.Endpoint.LaterWhy = keptNames(in), "", ""
	manifest := in.Want.Endpoint
	if in.Is.API.Reached == observed.Yes && (in.Is.API.Endpoint == "" || manifest.Is(in.Is.API.Endpoint)) {
		if !in.DropNames {
			in.Want.Endpoint.Former = append(in.Want.Endpoint.Former, sharedNames(&in)...)
		}
		return in
	}
	v := newView(in)
	if in.Is.API.Reached != observed.Yes && !in.DropNames {
		manifest.Former = v.strayNames()
		in.Want.Endpoint = manifest
	}
	has := v.formerEndpoint()
	why := v.cannotMoveYet()
	if limited {
		why = "an endpoint change affects every host, but this run is limited to some hosts"
	}
	if has == "" || why == "" || v.mustNotMove() != "" {
		return in
	}
	in.Want.Endpoint = manifest.At(has)
	former := keptNames(in)
	if in.Is.API.Reached != observed.Yes {
		former = manifest.Former
	}
	if v.isCertified(manifest.Host) && !in.DropNames { // some may dial it already
		former = append(former, manifest.Host)
	}
	in.Want.Endpoint.Former = desired.Missing(former, []string{in.Want.Endpoint.Host})
	in.Want.Endpoint.Later, in.Want.Endpoint.LaterWhy = manifest.String(), why
	return in
}

// strayNames returns undesired names in the certificates of the control plane's members, including unfinished joins, if
// the cluster record of such names cannot be read. Clients may dial these names, and must trust hosts that join, too.
func (v *view) strayNames() []string {
	var out []string
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if (s.hasJoined() || s.Condition == condition.Partial) && s.is.FirstContact == "" {
			former := v.in.Want.FormerNames(*s.Host, s.nodeName(), s.is.APINames)
			out = append(out, desired.Missing(former, out)...)
		}
	}
	return out
}

// sharedNames returns the undesired names that every known certificate of the control plane's members has. A move to
// them has then got so far that clients may dial them, whatever the operator's manifest says. Clients must trust hosts
// that join, too.
func sharedNames(in *Input) []string {
	var shared []string
	approved := false // whether a host with an approved key says so
	for i, first := 0, true; i < len(in.Want.ControlPlane); i++ {
		h := in.Want.ControlPlane[i]
		seen := in.Is.Hosts[h.ID]
		m := seen.Marker
		if m == nil || !m.Complete || m.Cluster != in.Want.Name || seen.APINames == nil {
			continue
		}
		approved = approved || seen.FirstContact == ""
		former := in.Want.FormerNames(h, cmp.Or(m.Node, h.Hostname, seen.Hostname), seen.APINames)
		if !first {
			former = desired.Missing(shared, desired.Missing(shared, former))
		}
		shared, first = former, false
	}
	if !approved {
		return nil
	}
	return shared
}

// isCertified reports whether the certificate of some control-plane member's API server has the name.
func (v *view) isCertified(name string) bool {
	return slices.ContainsFunc(v.controlPlane(), func(s hostState) bool {
		return s.hasJoined() && len(desired.Missing([]string{name}, s.is.APINames)) == 0
	})
}

// keptNames returns the names that certificates keep. If their record cannot be read, it returns those that all
// certificates have.
func keptNames(in Input) []string {
	if in.DropNames {
		return nil
	}
	var former []string
	if r := in.Is.API.Record; r != nil {
		former = append(former, r.FormerEndpoints...)
		if r.IsUnreadable(observed.RecordFormerEndpoints) {
			former = append(former, sharedNames(&in)...)
		}
	}
	if has := in.Is.API.Endpoint; has != "" {
		former = append(former, in.Want.Endpoint.At(has).Host)
	}
	bare := in.Want.Endpoint
	bare.Former = nil
	return desired.Missing(former, bare.Required())
}

// objectsNameEndpoint reports whether the cluster's objects name the endpoint as desired.
func (v *view) objectsNameEndpoint() bool {
	r := v.in.Is.API.Record
	return v.isPublished() && (!v.in.DropNames || r == nil ||
		len(r.FormerEndpoints) == 0 && !r.IsUnreadable(observed.RecordFormerEndpoints))
}

// isPublished reports whether the cluster's own objects name the desired endpoint, or are not known.
func (v *view) isPublished() bool {
	has := v.in.Is.API.Endpoint
	return v.in.Is.API.Reached != observed.Yes || has == "" || v.in.Want.Endpoint.Is(has)
}

// nameChanges returns the changes to the names in API server certificates, by host.
func (v *view) nameChanges() map[string]Names {
	var out map[string]Names
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if !s.inLimit || !s.hasJoined() || s.midUpgrade || s.is.APINames == nil {
			continue
		}
		former := v.in.Want.FormerNames(*s.Host, s.nodeName(), s.is.APINames)
		n := Names{Add: desired.Missing(v.in.Want.Endpoint.Required(), s.is.APINames), Keep: former}
		if v.in.DropNames {
			n.Keep, n.Drop = nil, former
		}
		if len(n.Add)+len(n.Drop) == 0 {
			continue
		}
		if out == nil {
			out = map[string]Names{}
		}
		out[s.ID] = n
	}
	return out
}

// nodeName returns the name of the host's Node, as far as it is known.
func (s *hostState) nodeName() string {
	if s.node != nil {
		return s.node.Name
	}
	return s.Node
}

// hostsToRedirect returns the hosts whose kubeconfigs do not name the desired endpoint. A control-plane host's kubelet
// uses its local API server. There are none while an API server outside the limit lacks the endpoint's name.
func (v *view) hostsToRedirect() []string {
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if s.hasJoined() && !s.inLimit && s.is.APINames != nil &&
			len(desired.Missing([]string{v.in.Want.Endpoint.Host}, s.is.APINames)) > 0 {
			return nil
		}
	}
	return idsWhere(v.hosts, v.dialsElsewhere)
}

func (v *view) dialsElsewhere(s *hostState) bool {
	if !s.inLimit || !s.hasJoined() {
		return false
	}
	want := v.in.Want.Endpoint
	kubelet := s.is.Endpoint != "" && !want.AcceptsURL(s.is.Endpoint)
	if !s.controlPlane() {
		return kubelet
	}
	admin := s.is.AdminEndpoint != "" && !want.AcceptsURL(s.is.AdminEndpoint)
	return admin || kubelet && !s.Dials(s.is.Endpoint)
}

// otherEndpoint returns why the API's endpoint must not become the manifest's, and why names in certificates cannot be
// dropped. Hosts that join would dial the new endpoint, so nothing at all is done.
func (v *view) otherEndpoint() []problem.Problem {
	var out []problem.Problem
	if has := v.formerEndpoint(); has != "" {
		why := v.mustNotMove()
		if why == "" {
			why = v.cannotMoveYet()
		}
		if why != "" {
			out = append(out, endpointChanged(has, v.in.Want.Endpoint.String(), why))
		}
	}
	return append(out, v.namesInUse()...)
}

func endpointChanged(has, wanted, why string) problem.Problem {
	return problem.Problem{Code: problem.EndpointChanged, Parameters: problem.Parameters{
		"endpoint": has, "wanted": wanted, "problem": why,
	}}
}

// formerEndpoint returns the cluster's endpoint if it is not the desired one; "" if it is, or is not known. If the API
// does not say it, the administrator's kubeconfigs on the control plane do: they dial the new endpoint only after all
// API servers have its names.
func (v *view) formerEndpoint() string {
	if v.in.Is.API.Reached == observed.Yes {
		if v.isPublished() {
			return ""
		}
		return v.in.Is.API.Endpoint
	}
	former := ""
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		switch {
		case !s.hasJoined() || s.is.AdminEndpoint == "" || s.is.FirstContact != "": // not trusted
		case v.in.Want.Endpoint.IsURL(s.is.AdminEndpoint):
			return ""
		case former == "" && !desired.IsLoopback(s.is.AdminEndpoint):
			former = strings.TrimPrefix(s.is.AdminEndpoint, "https://")
		}
	}
	return former
}

// mustNotMove returns why the endpoint must not be the manifest's; "" if it may.
func (v *view) mustNotMove() string {
	if v.cps > 1 && slices.ContainsFunc(v.in.Want.ControlPlane, v.in.Want.IsEndpoint) {
		return "the new endpoint is only one of several control-plane hosts and would fail with that host"
	}
	return ""
}

// cannotMoveYet returns why the endpoint must stay where it is for now; "" if it may move. Every API server must get
// the new names, including those of members outside the manifest.
func (v *view) cannotMoveYet() string {
	if v.in.Limit != nil || v.in.About != nil {
		return "an endpoint change affects every host, but this run is limited to some hosts"
	}
	if faults := v.controlPlaneFaults(); len(faults) > 0 {
		return "the endpoint can move only while the control plane is healthy, but " + strings.Join(faults, "; ")
	}
	for _, s := range v.etcd.orphans {
		if s.isLiving() {
			return s.asProblem().Text()
		}
	}
	for i := range v.hosts {
		switch s := &v.hosts[i]; {
		case s.controlPlane() && s.midUpgrade:
			return s.displayName() + " is being upgraded"
		case s.controlPlane() && s.hasJoined() && s.is.APINames == nil:
			return "the names in the API server certificate on " + s.displayName() + " are unknown"
		case s.isSilent() && s.node != nil && s.node.Ready == observed.Yes:
			return s.displayName() +
				" does not answer, and its Node is Ready: it would keep connecting to the former endpoint"
		}
	}
	return ""
}

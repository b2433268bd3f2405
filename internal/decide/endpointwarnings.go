package decide

import (
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// kubeProxy is what the cluster calls who leads its pods to the API.
const kubeProxy = "kube-proxy"

// namesInUse are the hosts of which it is not known that they dial the wanted endpoint, where names are to be dropped.
func (v *view) namesInUse() []problem.Problem {
	if !v.in.DropNames {
		return nil
	}
	var out []problem.Problem
	add := func(who, why string) {
		out = append(out, problem.Problem{
			Code: problem.NamesInUse, Parameters: problem.Parameters{"name": who, "problem": why},
		})
	}
	if !v.published() {
		add(v.in.Want.Name, "its objects name "+v.in.Is.API.Endpoint)
	}
	if e := v.in.Want.Endpoint; e.Later != "" {
		add(v.in.Want.Name, "its endpoint has not moved: "+e.LaterWhy)
	}
	if _, runs := v.in.System[kubeProxy]; runs {
		switch c, compared := v.in.Is.API.Compared[kubeProxy]; {
		case !compared || c.Problem != "":
			add(kubeProxy, "nobody knows what it dials")
		case len(c.Settings) > 0:
			add(kubeProxy, "its settings are not the manifest's")
		}
	}
	for i := range v.hosts {
		switch s := &v.hosts[i]; {
		case s.silent() || s.reported || !s.inLimit:
			add(s.name(), "it was not asked, or has not answered")
		case v.dialsElsewhere(s):
			add(s.name(), "it dials "+s.is.Endpoint)
		case s.joined() && s.is.Endpoint == "":
			add(s.name(), "it does not say what it dials")
		}
	}
	for i := range v.in.Is.API.Nodes {
		n := &v.in.Is.API.Nodes[i]
		if !slices.ContainsFunc(v.hosts, func(s hostState) bool { return s.node != nil && s.node.Name == n.Name }) {
			add(n.Name, "it is no host of the manifest")
		}
	}
	return out
}

// endpointWarnings are what is worth knowing about the endpoint: that nobody answers there, that it goes with a host,
// and that certificates have names which nobody wants.
func (v *view) endpointWarnings() []problem.Problem {
	out := v.endpointIsHost()
	if e := v.in.Want.Endpoint; e.Later != "" {
		out = append(out, endpointChanged(e.String(), e.Later, e.LaterWhy))
	}
	if api := v.in.Is.API; api.EndpointAnswers == observed.No && v.in.Want.Endpoint.Later == "" {
		out = append(out, problem.Problem{Code: problem.EndpointSilent, Parameters: problem.Parameters{
			"endpoint": v.in.Want.Endpoint.String(), "problem": api.EndpointProblem,
		}})
	}
	if v.in.About != nil || v.in.DropNames {
		return out
	}
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if !s.joined() || s.is.APINames == nil {
			continue
		}
		e := v.in.Want.Endpoint
		wanted := desired.Missing(e.Former, []string{e.At(e.Later).Host})
		former := desired.Missing(wanted, desired.Missing(wanted, s.is.APINames))
		former = append(former, v.in.Want.FormerNames(*s.Host, s.nodeName(), s.is.APINames)...)
		if len(former) > 0 && v.published() {
			out = append(out, problem.Problem{
				Code: problem.NamesFormer, Host: s.ID, Parameters: problem.Parameters{"names": former},
			})
		}
	}
	return out
}

// endpointIsHost warns before the cluster is made of an endpoint that goes with one of several control-plane hosts.
func (v *view) endpointIsHost() []problem.Problem {
	if v.begun() || v.cps < 2 {
		return nil
	}
	for _, h := range v.in.Want.ControlPlane {
		if v.in.Want.IsEndpoint(h) {
			return []problem.Problem{{
				Code: problem.EndpointIsHost, Host: h.ID,
				Parameters: problem.Parameters{"endpoint": v.in.Want.Endpoint.Host},
			}}
		}
	}
	return nil
}

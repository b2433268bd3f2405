// Package condition classifies the state of one host, from Empty to Healthy, with reasons. It is a pure function of
// what the host, the API and etcd say.
package condition

import (
	"slices"

	"kubeone/internal/decide/match"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// Condition is the state of a host in its cluster. Every host has exactly one.
type Condition string

// The conditions.
const (
	Unreachable Condition = "unreachable" // not asked, did not answer, or refused the login
	// It answered, but could not say whether it holds Kubernetes data; or it is a worker that cannot be locked.
	Unclear     Condition = "unclear"
	Empty       Condition = "empty"       // nothing of Kubernetes on it
	Partial     Condition = "partial"     // an unfinished installation for this cluster, which continues
	Foreign     Condition = "foreign"     // data of another cluster or of unknown origin: not touched
	Healthy     Condition = "healthy"     // a member of this cluster, and healthy
	Restartable Condition = "restartable" // a member whose containerd or kubelet does not run: start it again
	// A member that lacks configuration or valid certificates, and has what is needed to regenerate them.
	Regenerable Condition = "regenerable"
	// A member that reports the loss of its etcd data: it leaves etcd and joins again.
	Rejoinable Condition = "rejoinable"
	Unready    Condition = "unready" // a member that works, but is not known to be Ready
	Broken     Condition = "broken"  // a member with missing parts or failing components
)

// Assessment is the classification of one host.
type Assessment struct {
	Condition Condition         `json:"condition"`
	Reasons   []problem.Problem `json:"reasons,omitempty"` // most important first
	// Member says whether the host belongs to this cluster: by its own data, its Node object or its etcd member.
	Member observed.Tri `json:"member"`
	Resume bool         `json:"resume,omitempty"` // an unfinished installation continues here
	// Replaced says that an empty host stands where the API or etcd still knows a member with that name or address.
	Replaced bool     `json:"replaced,omitempty"`
	Units    []string `json:"units,omitempty"` // restartable: the systemd units to start again, in order
	Parts    []string `json:"parts,omitempty"` // regenerable: what to regenerate, in order
	// Node is the name of its Node: the manifest's hostname, else its own; may be empty.
	Node string `json:"node,omitempty"`
	Etcd string `json:"etcd,omitempty"` // the ID of its etcd member, if etcd was asked
}

// HostContext is what the classification of one host needs beyond the host: this cluster's CA, and what the API and
// etcd say about the host.
type HostContext struct {
	Cluster string
	Machine bool   // the host is a Machine's, not of the manifest
	CA      string // this cluster's CA hash; empty if not known
	Version string // the desired one
	API     observed.Tri
	Node    *observed.Node   // nil: none, or the API did not answer
	Etcd    observed.Tri     // whether the member list is known
	Member  *observed.Member // nil: none, or the list is not known
	NoCNI   bool             // kubeone deploys the network plugin and has not applied it yet: no Node can be Ready
	Epoch   int              // number of recoveries of the cluster
}

// Joined reports whether a host in the condition is a member that finished joining.
func (c Condition) Joined() bool {
	return c == Healthy || c == Restartable || c == Regenerable || c == Rejoinable || c == Unready || c == Broken
}

// Installable reports whether a host in the condition can be installed.
func (c Condition) Installable() bool { return c == Empty || c == Partial }

// Silent reports whether the host's state is unknown.
func (c Condition) Silent() bool { return c == Unreachable || c == Unclear }

// Classify returns the condition of one host. It is a pure function of what the host said and its context.
func Classify(want *desired.Host, is *observed.Host, cx HostContext) Assessment {
	a := assessOrigin(want.Role, is, cx)
	if is.Unwritable != "" && want.Role == desired.Worker && a.Condition != Unreachable && a.Condition != Foreign {
		a = assessmentFor(Unclear, problem.HostUnwritable, problem.Parameters{"error": is.Unwritable})
	}
	if m := is.Marker; want.Role == desired.Worker && a.Condition != Unreachable && a.Condition != Foreign &&
		m != nil && m.Machine != "" && !cx.Machine {
		a = assessmentFor(Unclear, problem.HostOfMachine, problem.Parameters{"machine": m.Machine})
	}
	if want.Role == desired.Worker && a.Condition != Unreachable && a.Condition != Foreign &&
		is.SaysControlPlane() {
		a = assessmentFor(Unclear, problem.ControlPlaneClaimed, nil)
	}
	a.Node = match.NodeName(want, is, cx.Node)
	if cx.Member != nil {
		a.Etcd = cx.Member.ID
	}
	if a.Condition == Healthy {
		a = assessHealth(want.Role, is, cx, a)
	}
	if m := is.Marker; m != nil && m.Fenced != "" && a.Condition.Installable() {
		a.Reasons = oneReason(problem.HostFenced, problem.Parameters{"run": m.Fenced})
	}
	if a.Condition == Partial {
		a.Resume = true
	}
	if a.Condition == Empty {
		a.Resume = is.Marker != nil
		a.Replaced = cx.Node != nil || cx.Member != nil
	}
	a.Member = isMember(a.Condition, cx)
	for i := range a.Reasons {
		a.Reasons[i].Host = want.ID
	}
	return a
}

// Reported classifies a host that was not probed: by its Node, and by its etcd member if these are known.
func Reported(want *desired.Host, cx HostContext) Assessment {
	a := assessmentFor(Unreachable, problem.HostNotAsked, nil)
	if cx.API == observed.Yes && cx.Node != nil {
		var failed, silent []problem.Problem
		if want.Role == desired.ControlPlane {
			failed, silent = etcdMember(cx)
		}
		if ready, why := nodeReadiness(cx); !ready {
			silent = append(silent, problem.Problem{Code: why})
		}
		a = Assessment{Condition: Healthy}
		if wrong := slices.Concat(failed, silent); len(wrong) > 0 {
			a = Assessment{Condition: Unready, Reasons: wrong}
		}
	}
	a.Node = match.NodeName(want, &observed.Host{}, cx.Node)
	if cx.Member != nil {
		a.Etcd = cx.Member.ID
	}
	a.Member = isMember(a.Condition, cx)
	for i := range a.Reasons {
		a.Reasons[i].Host = want.ID
	}
	return a
}

// isMember reports whether a host in that condition belongs to the cluster.
func isMember(c Condition, cx HostContext) observed.Tri {
	switch {
	case c == Empty, c == Partial, c == Foreign:
		return observed.No
	case c.Joined(), cx.Node != nil, cx.Member != nil:
		return observed.Yes
	case cx.API == observed.Yes && cx.Etcd == observed.Yes:
		return observed.No
	}
	return observed.Unknown
}

// assessOrigin reports where the host belongs: Unreachable, Unclear, Empty, Partial, Foreign, Broken for a member that
// lost its data, or Healthy for a member whose health is still to be assessed.
func assessOrigin(role desired.Role, is *observed.Host, cx HostContext) Assessment {
	if is.Reach != observed.Reached {
		return assessUnreachable(is)
	}
	if m := is.Marker; m != nil && m.Cluster != cx.Cluster {
		return assessmentFor(Foreign, problem.ForeignCluster,
			problem.Parameters{"cluster": m.Cluster, "wanted": cx.Cluster})
	}
	if m := is.Marker; m != nil && m.Machine != "" && !cx.Machine && role == desired.ControlPlane {
		return assessmentFor(Foreign, problem.HostOfMachine, problem.Parameters{"machine": m.Machine})
	}
	data, unknown := kubernetesData(is)
	switch {
	case len(unknown) > 0:
		return assessmentFor(Unclear, problem.HostUnclear, problem.Parameters{"items": unknown})
	case len(data) == 0 && is.Marker != nil && is.Marker.Complete && is.Marker.Role == string(desired.Worker):
		return Assessment{Condition: Healthy} // missing parts are a matter of its health
	case len(data) == 0:
		return assessVacant(is)
	}
	return assessOwned(is, cx, data)
}

// assessVacant assesses a host without any Kubernetes data.
func assessVacant(is *observed.Host) Assessment {
	switch {
	case is.Marker == nil:
		return assessmentFor(Empty, problem.HostEmpty, nil)
	case is.Marker.Complete:
		return assessmentFor(Broken, problem.MemberDataMissing, nil)
	}
	return assessmentFor(Empty, problem.InstallationBegun, nil)
}

// assessOwned assesses a host that holds the given data.
func assessOwned(is *observed.Host, cx HostContext, data []string) Assessment {
	items := problem.Parameters{"items": data}
	switch {
	case cx.CA != "" && is.CAHash != "" && is.CAHash != cx.CA:
		code := problem.ForeignCA
		if is.Marker == nil {
			code = problem.ForeignCAWithoutMarker
		}
		return assessmentFor(Foreign, code, problem.Parameters{
			"items":   data,
			"ca":      is.CAHash,
			"cluster": cx.Cluster,
			"wanted":  cx.CA,
		})
	case is.Marker != nil && !is.Marker.Complete:
		return assessmentFor(Partial, problem.InstallationIncomplete, items)
	case is.Marker == nil && (cx.CA == "" || is.CAHash != cx.CA):
		return assessmentFor(Foreign, problem.ForeignData, items)
	case is.KubeletConf == observed.Yes && cx.Member != nil && cx.Member.Learner:
		return assessmentFor(Partial, problem.JoinIncomplete, nil)
	case is.Marker == nil && is.KubeletConf == observed.No:
		return assessmentFor(Partial, problem.NeverJoined, items)
	}
	return Assessment{Condition: Healthy}
}

// kubernetesData lists the Kubernetes data that the host has, and what it could not report.
func kubernetesData(is *observed.Host) (data, unknown []string) {
	for _, f := range [...]struct {
		name string
		has  observed.Tri
	}{
		{"kubelet.conf", is.KubeletConf}, {"admin.conf", is.AdminConf}, {"PKI", is.PKI}, {"etcd data", is.EtcdData},
	} {
		switch f.has {
		case observed.Yes:
			data = append(data, f.name)
		case observed.Unknown:
			unknown = append(unknown, f.name)
		case observed.No:
		}
	}
	if len(is.Manifests) > 0 {
		data = append(data, "static pods")
	}
	if len(data) == 0 && is.CAHash != "" {
		data = append(data, "a CA certificate")
	}
	return data, unknown
}

func assessmentFor(c Condition, code problem.Code, parameters problem.Parameters) Assessment {
	return Assessment{Condition: c, Reasons: oneReason(code, parameters)}
}

func oneReason(code problem.Code, parameters problem.Parameters) []problem.Problem {
	return []problem.Problem{{Code: code, Parameters: parameters}}
}

// classHostKey is the probe's class for a host key that was not accepted.
const classHostKey = "hostkey"

// OtherKeys returns a problem for each key of a host, or of its bastions, that differs from the known one.
func OtherKeys(id string, is *observed.Host, code problem.Code) []problem.Problem {
	var out []problem.Problem
	for _, k := range is.OtherKeys {
		out = append(out, problem.Problem{Code: code, Host: id, Parameters: problem.Parameters{
			"name": k.Name, "known": k.Known, "offered": k.Offered,
		}})
	}
	return out
}

// assessUnreachable assesses a host that did not answer, or refused the login.
func assessUnreachable(is *observed.Host) Assessment {
	if is.Reach == observed.NotAsked {
		return assessmentFor(Unreachable, problem.HostNotAsked, nil)
	}
	if is.Class == classHostKey && len(is.OtherKeys) > 0 {
		return Assessment{Condition: Unreachable, Reasons: OtherKeys("", is, problem.HostKeyChanged)}
	}
	code, text := problem.HostUnreachable, is.Problem
	switch {
	case is.Reach == observed.Denied && is.Class == classHostKey:
		code = problem.HostKeyRefused
	case is.Reach == observed.Denied:
		code = problem.HostLoginRefused
	}
	if text == "" {
		text = "does not answer (" + string(is.Reach) + ")"
	}
	return assessmentFor(Unreachable, code, problem.Parameters{"error": text})
}

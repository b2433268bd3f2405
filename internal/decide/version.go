package decide

import (
	"slices"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/skew"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
	"kubeone/internal/problem"

	"k8s.io/apimachinery/pkg/util/version"
)

// versions is what the cluster runs, as far as its members said it.
type versions struct {
	api     []string // each distinct version of API servers of members, in the hosts' order
	kubelet []string // each distinct version of kubelets of members
	silent  []string // names of members of which a version is not known
	apiGap  bool     // some member's API server's version is not known
}

// versions collects what members run. A host that joined says it itself; for one that is silent its Node object speaks.
func (v *view) versions() versions {
	var out versions
	for i := range v.hosts {
		s := &v.hosts[i]
		if !s.Condition.Joined() && !v.mayRun(s) {
			continue
		}
		known := add(&out.kubelet, s.kubelet())
		if s.node != nil {
			add(&out.kubelet, s.node.KubeletVersion) // of the one that runs, which may not be the one that is installed
		}
		if s.Role == desired.ControlPlane && !add(&out.api, v.apiServer(s)) {
			out.apiGap, known = true, s.halfway // whatever it was, the rest of its turn writes the wanted one
		}
		if !known {
			out.silent = append(out.silent, s.name())
		}
	}
	return out
}

// add puts a known version into the set and reports whether it is known.
func add(set *[]string, v string) bool {
	if v != "" && !slices.Contains(*set, v) {
		*set = append(*set, v)
	}
	return v != ""
}

// kubelet is the version of the host's kubelet, empty when not known.
func (s *seen) kubelet() string {
	if s.is.Kubelet.Version != "" || s.node == nil {
		return s.is.Kubelet.Version
	}
	return s.node.KubeletVersion
}

// mayRun reports whether a host of which nothing is known may run a part of the cluster: it is a member, or nobody
// could say that it is not.
func (v *view) mayRun(s *seen) bool {
	return s.Condition.Silent() && (s.node != nil || v.in.Is.API.Reached != observed.Yes)
}

// apiServer is the version of the host's API server, empty when not known. Where the host did not say it, its kubelet's
// version stands for it: an upgrade reaches the API server first, so that it is not older.
func (v *view) apiServer(s *seen) string {
	switch {
	case s.is.APIServerVersion != "":
		return s.is.APIServerVersion
	case v.in.Is.API.Reached == observed.Yes && v.in.Is.API.Via == s.ID:
		return v.in.Is.API.Version
	case s.Condition.Silent():
		return s.kubelet()
	}
	return ""
}

// joinable reports whether hosts may join at the wanted version: every API server is known to run it. Kubelets of other
// members do not matter to a new one.
func (v *view) joinable() bool {
	return !v.running.apiGap && len(v.running.api) == 1 && v.running.api[0] == v.in.Want.KubernetesVersion
}

// relation compares the wanted version with the running ones, and names what decided.
func (v *view) relation() (fsm.Event, string) {
	want := v.in.Want.KubernetesVersion
	all := append(slices.Clone(v.running.api), v.running.kubelet...)
	slices.Sort(all)
	all = slices.Compact(all)
	switch {
	case len(v.running.silent) > 0:
		return fsm.OnNotKnown, "the version of " + problem.List(v.running.silent) + " is not known"
	case len(v.running.api) == 0:
		return fsm.OnNotKnown, "no API server said its version"
	case len(all) == 1 && all[0] == want:
		return fsm.OnSame, "everything runs " + want
	}
	event, why := compare(want, all, v.running.api)
	if ahead := v.newer(); event == fsm.OnLower && ahead != "" {
		why += ": " + ahead
	}
	if event != fsm.OnHigher {
		return event, why
	}
	if problem := v.skew(); problem != "" {
		return fsm.OnSkew, problem
	}
	if len(having(v.hosts, v.upgradable)) == 0 {
		return fsm.OnSame, "every host inside the limit runs " + want
	}
	return event, why
}

// newer says on which members something newer than the wanted version runs; nothing where that is so on all.
func (v *view) newer() string {
	higher := func(have string) bool {
		h, err := version.ParseSemantic(have)
		return err == nil && h.GreaterThan(version.MustParseSemantic(v.in.Want.KubernetesVersion))
	}
	var out []string
	for i := range v.hosts {
		s := &v.hosts[i]
		switch node := s.node; {
		case s.Role == desired.ControlPlane && higher(v.apiServer(s)):
			out = append(out, "API server of "+s.name()+" "+v.apiServer(s))
		case higher(s.kubelet()):
			out = append(out, "kubelet of "+s.name()+" "+s.kubelet())
		case node != nil && higher(node.KubeletVersion):
			out = append(out, "kubelet of "+s.name()+" "+node.KubeletVersion)
		}
	}
	if len(out) == len(having(v.hosts, (*seen).joined)) {
		return ""
	}
	return problem.List(out)
}

// ahead names the members that run something newer than the wanted version, if no API server does: they have strayed.
func (v *view) ahead() string {
	if event, _ := compare(v.in.Want.KubernetesVersion, v.running.api, v.running.api); event == fsm.OnLower {
		return ""
	}
	return names(v.hosts, func(s *seen) bool {
		event, _ := compare(v.in.Want.KubernetesVersion, []string{s.kubelet()}, nil)
		return event == fsm.OnLower
	})
}

// compare says how the wanted version relates to versions that are not all the same as it.
func compare(want string, all, api []string) (fsm.Event, string) {
	w, err := version.ParseSemantic(want)
	if err != nil {
		return fsm.OnNotKnown, "the wanted version " + problem.Quoted(want) + " is not one"
	}
	for _, have := range all {
		h, err := version.ParseSemantic(have)
		switch {
		case err != nil:
			return fsm.OnNotKnown, "the running version " + problem.Quoted(have) + " is not one"
		case w.LessThan(h):
			return fsm.OnLower, want + " is wanted and " + have + " runs: Kubernetes cannot be downgraded"
		}
	}
	for _, have := range api {
		path, err := skew.UpgradePath(have, want)
		switch {
		case err != nil:
			return fsm.OnNotKnown, err.Error()
		case len(path) > 1:
			return fsm.OnSkipsMinor, want + " is wanted and API servers run " + have + ": no minor may be skipped, go to " + path[0] + " first"
		}
	}
	return fsm.OnHigher, want + " is wanted and " + problem.List(all) + " runs"
}

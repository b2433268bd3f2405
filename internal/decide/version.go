package decide

import (
	"slices"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/skew"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"

	"k8s.io/apimachinery/pkg/util/version"
)

// versions holds what the cluster runs, as far as its members said it.
type versions struct {
	api     []string // each distinct version of API servers of members, in the hosts' order
	kubelet []string // each distinct version of kubelets of members without a version of their own in the manifest
	control []string // each distinct version of controller managers and schedulers of members
	silent  []string // names of members with an unknown version
	apiGap  bool     // the version of some member's API server is unknown
}

// collectVersions collects the versions that members run. The Node object speaks for a host that joined and is silent.
func (v *view) collectVersions() versions {
	var out versions
	for i := range v.hosts {
		s := &v.hosts[i]
		if !s.Condition.Joined() && !v.mayRun(s) || v.strangeVersion(s) != nil {
			continue
		}
		known := s.kubeletVersion() != ""
		if s.Versions.Kubernetes == "" {
			addVersion(&out.kubelet, s.kubeletVersion())
			if s.node != nil {
				// The running version may differ from the installed one.
				addVersion(&out.kubelet, s.node.KubeletVersion)
			}
		}
		if s.Role == desired.ControlPlane {
			for _, have := range s.controllerVersions() {
				addVersion(&out.control, have)
			}
		}
		if s.Role == desired.ControlPlane && !addVersion(&out.api, v.apiServer(s)) {
			out.apiGap, known = true, s.midUpgrade // the rest of its upgrade writes the desired version
		}
		if !known {
			out.silent = append(out.silent, s.displayName())
		}
	}
	return out
}

// strangeVersion returns what is wrong with the version that a worker's kubelet claims: it is invalid, works with no
// API server, or is newer than all versions without being desired. It is nil for all other hosts. A worker's claim does
// not stop the other hosts.
func (v *view) strangeVersion(s *hostState) *problem.Problem {
	if s.Role != desired.Worker || !v.hasBegun() {
		return nil
	}
	said := []string{s.kubeletVersion()}
	if s.node != nil {
		said = append(said, s.node.KubeletVersion)
	}
	for _, have := range said {
		if p := v.versionProblem(s, have); have != "" && p != nil {
			return p
		}
	}
	return nil
}

// versionProblem returns what is wrong with that version of a worker's kubelet.
func (v *view) versionProblem(s *hostState, have string) *problem.Problem {
	if _, err := version.ParseSemantic(have); err != nil {
		return &problem.Problem{
			Code: problem.RunningVersionInvalid, Host: s.ID, Parameters: problem.Parameters{"version": have},
		}
	}
	want := v.in.Want.KubernetesVersion
	ahead, apart, known := skew.Newer(have, want) && s.Versions.Kubernetes == "", true, false
	for i := range v.controlPlane() {
		if api := v.apiServer(&v.hosts[i]); api != "" {
			known = true
			ahead, apart = ahead && skew.Newer(have, api), apart && skew.Check(api, have) != nil
		}
	}
	switch {
	case known && ahead:
		return &problem.Problem{Code: problem.KubeletAhead, Host: s.ID, Parameters: problem.Parameters{
			"wanted": want, "running": have, "hosts": []string{s.displayName()},
			"newer": []string{"kubelet of " + s.displayName() + " " + have},
		}}
	case known && apart:
		return &problem.Problem{Code: problem.KubeletSkew, Host: s.ID, Parameters: problem.Parameters{
			"node": s.nodeArg(), "kubelet": have, "apiServer": want,
		}}
	}
	return nil
}

// isStrange reports whether the Node belongs to a worker whose kubelet has a strange version.
func (v *view) isStrange(node string) bool {
	for i := range v.workers() {
		if s := &v.workers()[i]; s.node != nil && s.node.Name == node {
			return v.strangeVersion(s) != nil
		}
	}
	return false
}

// controllerVersions returns the distinct known versions of the host's controller manager and scheduler: a manual
// upgrade may have ended between the API server and them. An image whose tag is no version is a custom one.
func (s *hostState) controllerVersions() []string {
	var out []string
	for _, have := range []string{s.is.ControllerManagerVersion, s.is.SchedulerVersion} {
		if _, err := version.ParseSemantic(have); err == nil {
			addVersion(&out, have)
		}
	}
	return out
}

// addVersion adds a known version to the set and reports whether it is known.
func addVersion(set *[]string, v string) bool {
	if v != "" && !slices.Contains(*set, v) {
		*set = append(*set, v)
	}
	return v != ""
}

// kubeletVersion returns the version of the host's kubelet, empty if not known.
func (s *hostState) kubeletVersion() string {
	if s.is.Kubelet.Version != "" || s.node == nil {
		return s.is.Kubelet.Version
	}
	return s.node.KubeletVersion
}

// mayRun reports whether an unresponsive host may run a part of the cluster: it has a Node, or the API could not be
// asked.
func (v *view) mayRun(s *hostState) bool {
	return s.Condition.Silent() && (s.node != nil || v.in.Is.API.Reached != observed.Yes)
}

// apiServer returns the version of the host's API server, empty if not known. If the host did not say it, its kubelet's
// version stands for it: an upgrade reaches the API server first, so the API server is not older.
func (v *view) apiServer(s *hostState) string {
	switch {
	case s.is.APIServerVersion != "":
		return s.is.APIServerVersion
	case v.in.Is.API.Reached == observed.Yes && v.in.Is.API.Via == s.ID:
		return v.in.Is.API.Version
	case s.Condition.Silent(), s.reported:
		return s.kubeletVersion()
	}
	return ""
}

// canJoin reports whether hosts may join at the desired version: every API server of the manifest is known to run it,
// and no other is too old. Kubelets of other members do not matter.
func (v *view) canJoin() bool {
	return !v.running.apiGap && len(v.running.api) == 1 && v.running.api[0] == v.in.Want.KubernetesVersion &&
		v.oldElsewhere() == nil
}

// versionRelation compares the versions and returns the resulting event and the reason for it. If a problem prevents
// the upgrade, such as manual edits of static pods, it also returns the problem; otherwise nil.
func (v *view) versionRelation() (fsm.Event, string, *problem.Problem) {
	event, why, p := v.compareVersions()
	if event == fsm.OnSame && v.in.ForceUpgrade {
		event, why = fsm.OnForced, why+", but a rollout is forced"
	}
	if event == fsm.OnHigher || event == fsm.OnDiffers || event == fsm.OnForced {
		if edits := v.blockingPodEdits(); edits != nil {
			return fsm.OnEdited, edits.Text(), edits
		}
	}
	return event, why, p
}

// compareVersions compares the desired version with the running ones.
func (v *view) compareVersions() (fsm.Event, string, *problem.Problem) {
	want := v.in.Want.KubernetesVersion
	all := slices.Concat(v.running.api, v.running.control, v.running.kubelet)
	slices.Sort(all)
	all = slices.Compact(all)
	switch {
	case len(v.running.silent) > 0:
		return answerProblem(fsm.OnNotKnown, problem.VersionsUnknown, problem.Parameters{"hosts": v.running.silent})
	case len(v.running.api) == 0:
		return answerProblem(fsm.OnNotKnown, problem.APIServerVersionUnknown, nil)
	case len(all) == 1 && all[0] == want && len(v.unfinishedUpgrades()) == 0 &&
		len(idsWhere(v.hosts, v.wrongVersion)) == 0 &&
		(v.oldElsewhere() == nil || v.keepsVersions()):
		return fsm.OnSame, "everything runs " + want, nil
	}
	event, p := compareVersions(want, all, v.running.api)
	switch {
	case event == fsm.OnLower:
		p = v.newerThanDesired(p)
		return event, p.Text(), p
	case p != nil:
		return event, p.Text(), p
	}
	if p := v.skewProblem(); p != nil {
		return fsm.OnSkew, p.Text(), p
	}
	if len(idsWhere(v.hosts, v.canUpgrade)) == 0 {
		return fsm.OnSame, "every host inside the limit runs " + want, nil
	}
	if begun := v.unfinishedUpgrades(); event == fsm.OnSame && len(begun) > 0 {
		return fsm.OnDiffers, "the upgrade of " + problem.List(begun) + " has started but not ended", nil
	}
	if event == fsm.OnSame {
		wrong := namesOf(v.hosts, func(s *hostState) bool { return s.inLimit && v.wrongVersion(s) })
		return fsm.OnDiffers, problem.List(wrong) + " does not run the versions set for it", nil
	}
	return event, want + " is desired and " + problem.List(all) + " runs", nil
}

// keepsVersions reports whether no host joins or is upgraded whose version matters to other API servers.
func (v *view) keepsVersions() bool {
	return !v.in.ForceUpgrade && len(idsWhere(v.hosts, (*hostState).isMissing)) == 0 &&
		(v.in.About != nil || v.systemHost() == "" || len(v.oldSystem()) == 0)
}

// unfinishedUpgrades lists the hosts inside the limit whose upgrade has begun and not ended.
func (v *view) unfinishedUpgrades() []string {
	return namesOf(v.hosts, func(s *hostState) bool { return s.inLimit && s.hasJoined() && s.upgradeBegun() })
}

// wrongVersion reports whether the member does not run the versions that the manifest gives for this host.
func (v *view) wrongVersion(s *hostState) bool {
	return s.hasJoined() && s.Versions != (desired.Versions{}) && v.isOutdated(s)
}

func answerProblem(event fsm.Event, code problem.Code, parameters problem.Parameters) (fsm.Event, string,
	*problem.Problem) {
	p := &problem.Problem{Code: code, Parameters: parameters}
	return event, p.Text(), p
}

// newerThanDesired adds the members that are newer than the desired version, unless all are.
func (v *view) newerThanDesired(p *problem.Problem) *problem.Problem {
	newer := v.newerMembers()
	if newer == nil {
		return p
	}
	p.Code, p.Parameters["newer"] = problem.DowngradeOfSome, newer
	if ahead := v.membersAhead(); ahead != nil {
		p.Code, p.Parameters["hosts"] = problem.KubeletAhead, ahead
	}
	return p
}

// newerMembers lists the members that run something newer than the desired version; none if all do.
func (v *view) newerMembers() []string {
	higher := func(have string) bool {
		h, err := version.ParseSemantic(have)
		return err == nil && h.GreaterThan(version.MustParseSemantic(v.in.Want.KubernetesVersion))
	}
	var out []string
	for i := range v.hosts {
		s := &v.hosts[i]
		switch node := s.node; {
		case s.Role == desired.ControlPlane && higher(v.apiServer(s)):
			out = append(out, "API server of "+s.displayName()+" "+v.apiServer(s))
		case s.Versions.Kubernetes != "": // it may be downgraded
		case higher(s.kubeletVersion()):
			out = append(out, "kubelet of "+s.displayName()+" "+s.kubeletVersion())
		case node != nil && higher(node.KubeletVersion):
			out = append(out, "kubelet of "+s.displayName()+" "+node.KubeletVersion)
		}
	}
	if len(out) == len(idsWhere(v.hosts, (*hostState).hasJoined)) {
		return nil
	}
	return out
}

// membersAhead lists the members that run something newer than the desired version, if no API server does.
func (v *view) membersAhead() []string {
	want := v.in.Want.KubernetesVersion
	if event, _ := compareVersions(want, v.running.api, v.running.api); event == fsm.OnLower {
		return nil
	}
	var out []string
	for i := range v.hosts {
		s := &v.hosts[i]
		if event, _ := compareVersions(want, []string{s.kubeletVersion()}, nil); event == fsm.OnLower &&
			s.Versions.Kubernetes == "" {
			out = append(out, s.displayName())
		}
	}
	return out
}

// compareVersions reports how the desired version relates to the given ones. The problem is nil if the desired version
// equals all of them, or is an allowed upgrade.
func compareVersions(want string, all, api []string) (fsm.Event, *problem.Problem) {
	w, err := version.ParseSemantic(want)
	if err != nil {
		p := invalidVersion(want)
		return fsm.OnNotKnown, &p
	}
	for _, have := range all {
		h, err := version.ParseSemantic(have)
		switch {
		case err != nil:
			return fsm.OnNotKnown, &problem.Problem{
				Code:       problem.RunningVersionInvalid,
				Parameters: problem.Parameters{"version": have},
			}
		case w.LessThan(h):
			return fsm.OnLower, &problem.Problem{
				Code:       problem.Downgrade,
				Parameters: problem.Parameters{"wanted": want, "running": have},
			}
		}
	}
	for _, have := range api {
		path, err := skew.UpgradePath(have, want)
		parameters := problem.Parameters{"wanted": want, "running": have}
		switch {
		case err != nil:
			return fsm.OnNotKnown, &problem.Problem{Code: problem.MajorVersionChange, Parameters: parameters}
		case len(path) > 1:
			parameters["next"] = path[0]
			return fsm.OnSkipsMinor, &problem.Problem{Code: problem.MinorSkipped, Parameters: parameters}
		}
	}
	if !slices.ContainsFunc(all, func(have string) bool { return have != want }) {
		return fsm.OnSame, nil
	}
	return fsm.OnHigher, nil
}

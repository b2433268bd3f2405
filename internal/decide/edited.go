package decide

import (
	"slices"
	"strings"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// Files of hosts are what a stage wrote, or somebody has changed them since. Those of kubelet, container runtime and
// kernel become again what they were: in the version and with the settings that the host has, whatever else is wanted
// of it. Static pods stay as they are.

// restorable are the host's files that can be restored. In the middle of an upgrade there are none: it writes them. One
// of a control-plane host to another version than is wanted by now is over.
func (v *view) restorable(s *hostState) []string {
	if s.is.Upgrading != "" && v.outdated(s) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.is.Restorable), func(path string) bool {
		return !condition.IsRestored(path)
	})
}

// exposed are the host's files with keys that others may read, and that can be closed to them: whenever its files can
// be restored, and without a restart.
func (s *hostState) exposed() []string {
	var out []string
	for _, file := range s.is.Exposed {
		if !slices.Contains(s.is.Restorable, file.Path) { // which is restored with its mode
			out = append(out, file.Path)
		}
	}
	return out
}

// canRestore reports whether files of the host can be restored now. Containers go on meanwhile; but what a kubelet or a
// container runtime did by files of somebody else's is not known, and so etcd must allow that the host stops.
func (v *view) canRestore(s *hostState) bool {
	files := v.restorable(s)
	switch s.Condition {
	case condition.Healthy, condition.Restartable, condition.Unready:
	default:
		return false
	}
	if !s.inLimit || s.midUpgrade || len(files)+len(s.is.Exposed) == 0 {
		return false
	}
	starts := slices.ContainsFunc(files, func(path string) bool { return condition.UnitOf(path) != "" })
	return !starts || v.vote(s) != observed.Yes || !v.etcd.tally.Holds() ||
		quorum.SafeToStop(v.in.Is.Etcd.Members, s.Etcd).Safe
}

// brokenByEdits reports whether the host is not well, and files can be restored that may be why.
func (v *view) brokenByEdits(s *hostState) bool {
	return s.Condition != condition.Healthy && len(v.restorable(s)) > 0 && v.canRestore(s)
}

// restores are the files to restore or to close, by host: of hosts that are not well, or of all.
func (v *view) restores(all bool) map[string][]string {
	var out map[string][]string
	for i := range v.hosts {
		s := &v.hosts[i]
		if !v.canRestore(s) || !all && !v.brokenByEdits(s) {
			continue
		}
		if out == nil {
			out = map[string][]string{}
		}
		out[s.ID] = append(v.restorable(s), s.exposed()...)
	}
	return out
}

// edits warns of files that others may read, and of files that somebody has changed on a host that is well. Elsewhere
// the latter are part of what is wrong.
func (s *hostState) edits() []problem.Problem {
	var out []problem.Problem
	if len(s.is.Exposed) > 0 && s.joined() {
		var files []string
		for _, file := range s.is.Exposed {
			files = append(files, file.String())
		}
		out = append(out, problem.Problem{
			Code: problem.FilesExposed, Host: s.ID, Parameters: problem.Parameters{"files": files},
		})
	}
	if s.Condition != condition.Healthy {
		return out
	}
	var others []string
	for _, path := range s.is.Edited {
		if !condition.IsStaticPod(path) {
			others = append(others, path)
		}
	}
	pods := EditedPods(&s.is)
	if len(others) > 0 {
		out = append(out, problem.Problem{
			Code: problem.FilesEdited, Host: s.ID, Parameters: problem.Parameters{"files": others},
		})
	}
	if len(pods) > 0 {
		out = append(out, problem.Problem{
			Code: problem.StaticPodsEdited, Host: s.ID, Parameters: problem.Parameters{"files": pods},
		})
	}
	return out
}

// EditedPods are the host's static pods that somebody has changed: their files, each with what is other there.
func EditedPods(is *observed.Host) []string {
	var out []string
	for _, path := range is.Edited {
		if !condition.IsStaticPod(path) {
			continue
		}
		if other := is.PodEdits[path]; len(other) > 0 {
			path += " (" + strings.Join(other, ", ") + ")"
		}
		out = append(out, path)
	}
	return out
}

// podsInTheWay is the problem of an upgrade that would write static pods anew which somebody has changed: what they
// have added, the encryption of Secrets perhaps, would be lost. It is nil where nothing would, or the operator says so.
func (v *view) podsInTheWay() *problem.Problem {
	if v.in.DiscardEdits {
		return nil
	}
	upgrades := v.upgrades()
	var pods []string
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		if !slices.Contains(upgrades, s.ID) {
			continue
		}
		for _, pod := range EditedPods(&s.is) {
			pods = append(pods, s.name()+": "+pod)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return &problem.Problem{Code: problem.EditsInTheWay, Parameters: problem.Parameters{"files": pods}}
}

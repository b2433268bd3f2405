package decide

import (
	"strings"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
	"kubeone/internal/problem"
)

// instructions says what a person must do, in the order in which it is safe: control-plane hosts whose etcd member is
// dead, then other ill control-plane hosts, then members that nobody may remove yet, then workers. Each replacement is
// counted on the assumption that the one before has been finished.
func (v *view) instructions() []problem.Instruction {
	var out []problem.Instruction
	left := append([]observed.Member(nil), v.in.Is.Etcd.Members...)
	for _, dead := range []bool{true, false} {
		for i := range v.controlPlane() {
			s := &v.hosts[i]
			if v.ill(s) && dead == (v.vote(s) == observed.No) {
				out = append(out, v.instructControlPlane(s, left))
				left = replaced(left, s.Etcd)
			}
		}
	}
	out = append(out, v.instructEtcd()...)
	for i := range v.workers() {
		if s := &v.workers()[i]; v.ill(s) {
			out = append(out, v.instructWorker(s))
		}
	}
	return out
}

// ill reports whether the host is a member that is not healthy, or nothing is known of it. One that apply mends by itself
// is not.
func (v *view) ill(s *seen) bool {
	return s.silent() || s.joined() && s.Condition != condition.Healthy && !s.startable() && !s.halfway && !v.canRewrite(s)
}

// vote is how the host's etcd member is.
func (v *view) vote(s *seen) observed.Tri {
	for _, m := range v.in.Is.Etcd.Members {
		if s.Etcd != "" && m.ID == s.Etcd {
			return m.Healthy
		}
	}
	return observed.Unknown
}

// replaced is the list once a new healthy member stands in the place of the one with that ID.
func replaced(members []observed.Member, id string) []observed.Member {
	for i := range members {
		if members[i].ID == id {
			members[i].Healthy, members[i].Alarms = observed.Yes, nil
		}
	}
	return members
}

func (v *view) instructControlPlane(s *seen, members []observed.Member) problem.Instruction {
	return problem.Instruction{
		Host: s.ID, Reason: s.name() + ": " + strings.Join(s.Reasons, "; "),
		Steps: append(v.lookAt(s), v.replaceControlPlane(s, members)...),
	}
}

// lookAt says how to find out what a host has.
func (v *view) lookAt(s *seen) []string {
	login := "Log in to " + s.name() + " (" + s.ID + ")"
	switch {
	case s.Condition == condition.Unreachable:
		return []string{"Find out why " + s.name() + " (" + s.ID + ") does not answer: power, network, SSH. If it comes back, run kubeone apply again."}
	case s.Condition == condition.Unclear:
		return []string{login + " and see whether /etc/kubernetes and /var/lib can be read; a damaged disk is mounted read-only. Then run kubeone apply again."}
	case s.Condition == condition.Restartable:
		return []string{"Run kubeone apply without a limit, or with " + s.ID + " in it: it starts " + problem.List(s.Units) + " again."}
	case s.Condition == condition.Rewritable && !s.may:
		return []string{"Run kubeone apply without a limit, or with " + s.ID + " in it: it writes " + problem.List(s.Parts) + " again."}
	case s.Condition == condition.Rewritable:
		return []string{"Bring the other hosts back first; then kubeone apply writes " + problem.List(s.Parts) + " again on " + s.name() + "."}
	case s.Condition == condition.Rejoinable && !s.may:
		return []string{"Run kubeone apply without a limit, or with " + s.ID + " in it: it takes " + s.name() + " out of etcd and lets it join again."}
	case s.Condition == condition.Rejoinable:
		return []string{"Bring the other members of etcd back first; then kubeone apply takes " + s.name() + " out of etcd and lets it join again."}
	case s.Condition == condition.Unready:
		return []string{
			"Run kubectl describe node " + s.nodeArg() + " and read its conditions.",
			login + " and read journalctl -u kubelet -u containerd --since -15min. When it is healthy again, run kubeone apply.",
		}
	case s.is.KubeletConf == observed.No:
		return []string{"Find out who emptied " + s.name() + " (" + s.ID + "): it cannot go on as the member that it was."}
	}
	return []string{login + " and read journalctl -u kubelet --since -15min, crictl ps -a and crictl logs of what fails. When it is healthy again, run kubeone apply."}
}

// replaceControlPlane is the last steps for a control-plane host: how to replace it, or why that is not safe now.
func (v *view) replaceControlPlane(s *seen, members []observed.Member) []string {
	switch {
	case s.revivable():
		return []string{"Do not delete " + s.name() + ": nothing is lost on it."}
	case !v.etcd.listed:
		return []string{"Do not delete " + s.name() + " and do not take it out of the manifest: etcd's members are not known, so nobody can say that the quorum holds without it."}
	case s.Etcd == "":
		return v.replace(s, "no etcd member is lost with it")
	}
	verdict := quorum.SafeToRemove(members, s.Etcd)
	if !verdict.Safe {
		return []string{"Do not delete " + s.name() + " and do not take it out of the manifest: " + verdict.Why + "."}
	}
	return v.replace(s, "which is safe now: "+verdict.Why)
}

// replace says how a host that cannot be saved is replaced.
func (v *view) replace(s *seen, why string) []string {
	if s.Condition != condition.Unreachable && v.in.Is.API.Reached == observed.Yes {
		return []string{"If it cannot be saved, replace it (" + why + "): kubeone node replace " + s.name() + " makes it bare and joins it again. If its machine is no good, take it out with kubeone node remove " + s.name() + ", put a new one in its place, and run kubeone apply."}
	}
	return append([]string{"If it cannot be saved, replace it (" + why + "), as follows."}, Successor(*s.Host)...)
}

// Successor says how a machine that is gone gets a successor: by Terraform or by hand, with the same address or another.
func Successor(h desired.Host) []string {
	place, joins := "staticWorkers.hosts", "joins the new host"
	if h.Role == desired.ControlPlane {
		place, joins = "controlPlane.hosts", "removes the old etcd member once it is confirmed to be dead, joins the new host as a learner, and promotes it"
	}
	out := []string{
		"Delete the old machine and make a new, empty one. With Terraform: terraform taint RESOURCE (that of " + h.ID + "), terraform apply, terraform output -json > tf.json.",
		"If its address is another one and Terraform does not fill the manifest, put that into " + place + " in the place of " + h.ID + ".",
		"Run kubeone apply (with -t tf.json after Terraform): it " + joins + ".",
	}
	if h.Role == desired.ControlPlane {
		out = append(out, "Wait until kubeone status is healthy before you touch another control-plane host.")
	}
	return out
}

// instructEtcd is what concerns etcd and no host of the manifest.
func (v *view) instructEtcd() []problem.Instruction {
	if !v.etcd.listed {
		why := "etcd's members are not known"
		if v.in.Is.Etcd.Problem != "" {
			why += ": " + v.in.Is.Etcd.Problem
		}
		return []problem.Instruction{{Reason: why, Steps: []string{
			"On a control-plane host, read crictl logs of etcd and of kube-apiserver, and whether /etc/kubernetes/pki/etcd can be read.",
			"Delete no control-plane host until kubeone status lists the members again. Then run kubeone apply.",
		}}}
	}
	var out []problem.Instruction
	for _, s := range v.etcd.strays {
		if !s.living() {
			out = append(out, problem.Instruction{Host: s.host, Reason: s.why(), Steps: v.settle(s)})
		}
	}
	return out
}

// settle says how a member without a working host is settled when apply may not remove it.
func (v *view) settle(s stray) []string {
	if s.Healthy == observed.Yes && !s.Learner {
		return []string{
			"Find the machine that runs etcd member " + s.label() + " at " + problem.List(s.PeerURLs) + ".",
			"Clear its alarms or stop it there; then run kubeone apply again.",
		}
	}
	verdict := quorum.SafeToRemove(v.in.Is.Etcd.Members, s.ID)
	switch {
	case !verdict.Safe:
		return []string{"Bring the other members back first: " + verdict.Why + ". Then run kubeone apply, which removes " + s.label() + "."}
	case !v.mayRemove(s):
		return []string{"Run kubeone apply without a limit: it removes " + s.label() + " (" + verdict.Why + ")."}
	}
	return []string{
		"Find out whether the machine of " + s.label() + " at " + problem.List(s.PeerURLs) + " still lives; nothing is known of it.",
		"If it is gone for good, run kubeone apply again once it is known not to answer.",
	}
}

func (v *view) instructWorker(s *seen) problem.Instruction {
	steps := v.lookAt(s)
	if !s.revivable() {
		steps = append(steps, v.replace(s, "its pods start again on other nodes")...)
	}
	return problem.Instruction{Host: s.ID, Reason: s.name() + ": " + strings.Join(s.Reasons, "; "), Steps: steps}
}

// nodeArg is the name of the host's Node for a command line, with a placeholder where it is not known.
func (s *seen) nodeArg() string {
	if s.Node == "" {
		return "NODE"
	}
	return s.Node
}

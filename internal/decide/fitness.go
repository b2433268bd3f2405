package decide

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/preflight"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
	"kubeone/internal/problem"

	"k8s.io/apimachinery/pkg/util/version"
)

// judge collects why nothing may be done at all, and what the operator should know but does not stop anything.
func (v *view) judge() (unfit, warnings []problem.Problem) {
	unfit = v.wanted()
	if len(v.claims) > 0 {
		unfit = append(unfit, problem.Problem{
			Class: problem.ClassConfig, Host: "", What: "control-plane hosts disagree about the CA of cluster " + problem.Quoted(v.in.Want.Name) + ": " + problem.List(v.claims),
			Do: "two clusters have this name, or one was made twice: give each its own manifest and name, or reset the hosts of the wrong one",
		})
	}
	for i := range v.hosts {
		bad, worth := v.judgeHost(&v.hosts[i])
		unfit, warnings = append(unfit, bad...), append(warnings, worth...)
	}
	if p := v.beginsOutsideLimit(); p != nil {
		unfit = append(unfit, *p)
	}
	if p := v.otherNetwork(); p != nil {
		unfit = append(unfit, *p)
	}
	changed, taken := v.otherPlugin()
	unfit, warnings = append(unfit, changed...), append(warnings, taken...)
	unfit = append(unfit, v.sameNames()...)
	warnings = append(warnings, v.sameMachines()...)
	return unfit, append(warnings, v.livingStrays()...)
}

// otherNetwork is the problem of a manifest with other subnets, or another DNS domain, than the cluster was made with: every
// address that it has given depends on them.
func (v *view) otherNetwork() *problem.Problem {
	for i := range v.controlPlane() {
		s := &v.hosts[i]
		have, known := s.is.Digests[desired.NetworkDigest]
		want, asked := v.in.Config[s.ID][desired.NetworkDigest]
		if s.joined() && known && asked && have != want {
			return &problem.Problem{
				Class: problem.ClassConfig, Host: s.ID, What: "the manifest's clusterNetwork has another podSubnet, serviceSubnet or serviceDomainName than the cluster was made with, and they cannot be changed",
				Do: "put the former ones back; the cluster keeps its manifest in the ConfigMap kube-system/kubeone",
			}
		}
	}
	return nil
}

// otherPlugin judges a manifest with another network plugin than the one that was deployed by us: hosts that join do not get its
// configuration. That is right if somebody else's has taken its place.
func (v *view) otherPlugin() (unfit, warnings []problem.Problem) {
	wanted := v.in.Want.Network.CNI
	i := slices.IndexFunc(wanted.Deployed(), func(name string) bool {
		_, applied := v.in.Is.API.Addons[name]
		return applied && name != wanted.Name
	})
	if i < 0 {
		return nil, nil
	}
	has := wanted.Deployed()[i]
	p := problem.Problem{
		Class: problem.ClassConfig, What: "the cluster was given the network plugin " + has + ", and the manifest wants " + problem.Quoted(wanted.Name),
		Do: "set clusterNetwork.cni to " + has + "; or to external, once another one has taken its place in the whole cluster",
	}
	if wanted.CarriedOut() {
		return nil, []problem.Problem{p}
	}
	return []problem.Problem{p}, nil
}

// wanted checks what is wanted as far as it concerns a decision; the manifest's own validation has seen to the rest.
func (v *view) wanted() []problem.Problem {
	var out []problem.Problem
	if v.cps == 0 {
		out = append(out, problem.Problem{Class: problem.ClassConfig, Host: "", What: "the manifest has no control-plane host", Do: "add one, or better three, to controlPlane.hosts"})
	}
	if _, err := version.ParseSemantic(v.in.Want.KubernetesVersion); err != nil {
		out = append(out, problem.Problem{
			Class: problem.ClassConfig, Host: "", What: "the wanted Kubernetes version " + problem.Quoted(v.in.Want.KubernetesVersion) + " is not one",
			Do: "write it as in 1.36.3",
		})
	}
	for _, id := range slices.Sorted(maps.Keys(v.in.Limit)) {
		if !slices.ContainsFunc(v.hosts, func(s seen) bool { return s.ID == id }) {
			out = append(out, problem.Problem{Class: problem.ClassConfig, Host: "", What: "the limit names " + problem.Quoted(id) + ", which the manifest does not have", Do: "use a host of the manifest"})
		}
	}
	return out
}

// judgeHost judges one host. A foreign control-plane host always stops everything: what it holds might be this cluster's
// only copy. A worker outside the limit stops nothing.
func (v *view) judgeHost(s *seen) (unfit, warnings []problem.Problem) {
	switch {
	case s.Condition == condition.Foreign:
		p := problem.Problem{Class: problem.ClassConfig, Host: s.ID, What: s.Reasons[0], Do: v.freeing(s)}
		if s.may || s.controlPlane() {
			return []problem.Problem{p}, nil
		}
		return nil, []problem.Problem{p}
	case s.silent():
		return v.judgeSilent(s)
	case s.missing():
		unfit, warnings = preflight.Check(&v.in.Want, s.Host, &s.is, s.Condition == condition.Empty && !s.Resume)
	case s.Condition.Installable():
		warnings = append(warnings, problem.Problem{Class: problem.ClassConfig, Host: s.ID, What: "has not joined, and is outside the limit", Do: "run again without a limit to let it join"})
	default:
		if p := preflight.Clock(&s.is); p != nil {
			warnings = append(warnings, preflight.At(s.Host, *p))
		}
	}
	if st := s.is.Step; st != nil {
		warnings = append(warnings, problem.Problem{Class: problem.ClassRuntime, Host: s.ID, What: "step " + problem.Quoted(st.Stage) + " of run " + st.RunID + " is still running on it", Do: "it is awaited before anything else happens there"})
	}
	return unfit, warnings
}

// freeing says how a foreign host becomes one that may be used. A reset never touches what is another cluster's, or not
// known to be ours.
func (v *view) freeing(s *seen) string {
	switch m := s.is.Marker; {
	case m == nil:
		return "use the manifest that it belongs to; or look at /etc/kubernetes and /var/lib/etcd there, and if what they hold may be lost: kubeadm reset -f; rm -rf /etc/kubernetes /var/lib/etcd /var/lib/kubelet"
	case m.Cluster != v.in.Want.Name:
		return "use the manifest of cluster " + problem.Quoted(m.Cluster) + "; or, with that manifest, take the host out of it: kubeone reset --host " + s.ID
	}
	return "use the manifest that it belongs to; or, if what it holds may be lost, run kubeone reset --host " + s.ID
}

// judgeSilent judges a host of which nothing is known. A host key that was not accepted always stops everything, outside the
// limit too: somebody else may be listening. A refused login does so only where there is no cluster yet, because then it is a
// mistake and not a failure.
func (v *view) judgeSilent(s *seen) (unfit, warnings []problem.Problem) {
	p := silence(s)
	if s.is.Reach == observed.Denied && (s.is.Class == classHostKey || s.may && !v.begun()) {
		return []problem.Problem{p}, nil
	}
	return nil, []problem.Problem{p}
}

// classHostKey is the probe's class of a host key that was not accepted.
const classHostKey = "hostkey"

// begun reports whether some control-plane host already belongs to the cluster.
func (v *view) begun() bool { return len(having(v.controlPlane(), (*seen).joined)) > 0 }

// silence is the problem of a host of which nothing is known.
func silence(s *seen) problem.Problem {
	p := problem.Problem{Class: problem.ClassConnection, Host: s.ID, What: s.Reasons[0]}
	switch {
	case s.Condition == condition.Unclear:
		p.Class, p.Do = problem.ClassRuntime, "look at the host: its file system may be damaged or read-only"
	case s.is.Reach == observed.Denied && s.is.Class == classHostKey:
		p.Class, p.Do = problem.ClassSSH, "compare the fingerprint with the host's own, and correct known_hosts or the manifest"
	case s.is.Reach == observed.Denied:
		p.Class, p.Do = problem.ClassSSH, "correct the user, the key or sudo's rights"
	default:
		p.Do = "start the host, or correct its address, port or the network between"
	}
	return p
}

// beginsOutsideLimit is the problem of an installation whose leader the limit leaves out.
func (v *view) beginsOutsideLimit() *problem.Problem {
	if v.in.Limit == nil || v.cps == 0 || count(v.controlPlane(), condition.Empty, condition.Partial) != v.cps {
		return nil
	}
	if leader := v.leader(); !v.in.Limit[leader] {
		return &problem.Problem{Class: problem.ClassConfig, Host: leader, What: "a new cluster begins on it, and it is outside the limit", Do: "add it to the limit"}
	}
	return nil
}

// sameNames finds hosts with one name: each would be the other's Node.
func (v *view) sameNames() []problem.Problem {
	return v.doubles(
		func(s *seen) string { return s.Node },
		func(value, who string) problem.Problem {
			return problem.Problem{Class: problem.ClassConfig, Host: "", What: fmt.Sprintf("%s have one name, %q", who, value), Do: "give each host its own name, or set hostname in the manifest"}
		})
}

// sameMachines finds hosts with one machine ID, as copies of one disk image have.
func (v *view) sameMachines() []problem.Problem {
	return v.doubles(
		func(s *seen) string { return s.is.MachineID },
		func(value, who string) problem.Problem {
			return problem.Problem{Class: problem.ClassRuntime, Host: "", What: fmt.Sprintf("%s have one machine ID, %s", who, value), Do: "make new ones with systemd-machine-id-setup: networks may take the hosts for one"}
		})
}

// doubles makes a problem of each value that several hosts have, in the hosts' order. Empty values do not count.
func (v *view) doubles(value func(*seen) string, report func(value, who string) problem.Problem) []problem.Problem {
	var out []problem.Problem
	times := make(map[string]int, len(v.hosts))
	for i := range v.hosts {
		val := value(&v.hosts[i])
		if times[val]++; val == "" || times[val] != 2 {
			continue
		}
		out = append(out, report(val, problem.List(having(v.hosts, func(s *seen) bool { return value(s) == val }))))
	}
	return out
}

// livingStrays are healthy members outside the manifest: nobody but the operator may remove them.
func (v *view) livingStrays() []problem.Problem {
	var out []problem.Problem
	for _, s := range v.etcd.strays {
		if s.living() {
			out = append(out, problem.Problem{Class: problem.ClassEtcd, Host: "", What: s.why(), Do: "put its host back into the manifest; kubeone node remove then takes it out safely"})
		}
	}
	return out
}

// problems explains the route error: what made the hosts unfit, else what the last question answered.
func (v *view) problems(trace []fsm.Visit) []problem.Problem {
	if len(v.unfit) > 0 {
		return v.unfit
	}
	last := trace[len(trace)-1]
	if last.State == fsm.AskProvisioned {
		return v.silences()
	}
	do := versionRemedy(last.Event)
	if strayed := v.ahead(); last.Event == fsm.OnLower && strayed != "" {
		do = "no API server is newer: take " + strayed + " out and let it join again with kubeone node replace"
	}
	return []problem.Problem{{Class: versionClass(last.Event), Host: "", What: last.Why, Do: do}}
}

// silences are the problems of control-plane hosts of which nothing is known.
func (v *view) silences() []problem.Problem {
	var out []problem.Problem
	for i := range v.controlPlane() {
		if s := &v.hosts[i]; s.silent() {
			p := silence(s)
			p.What = strings.TrimSuffix(p.What, ".") + "; as long as it may hold this cluster, no new one is made"
			out = append(out, p)
		}
	}
	return out
}

func versionClass(e fsm.Event) problem.Class {
	if e == fsm.OnNotKnown {
		return problem.ClassKube
	}
	return problem.ClassConfig
}

func versionRemedy(e fsm.Event) string {
	switch e {
	case fsm.OnLower:
		return "put the running version, or a higher one, into the manifest"
	case fsm.OnSkipsMinor:
		return "put that minor's version into the manifest, apply, and then go on; or name a version of it with --through"
	case fsm.OnSkew:
		return "see kubectl get nodes: kubelets may be three minors older than API servers, and never newer"
	default:
		return "look at the hosts named with kubeone status"
	}
}

func (s *seen) controlPlane() bool { return s.Role == desired.ControlPlane }

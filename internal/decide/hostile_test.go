package decide

import (
	"strings"
	"testing"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// clusterWithoutHostnames returns a healthy cluster whose manifest has no names: hosts name themselves.
func clusterWithoutHostnames() *Input {
	in := healthyCluster(3, 2)
	for i := range in.Want.ControlPlane {
		in.Want.ControlPlane[i].Hostname = ""
	}
	for i := range in.Want.Workers {
		in.Want.Workers[i].Hostname = ""
	}
	return &in
}

// A worker that claims another host's name is left alone, and stops nothing else.
func TestAWorkerTakesNoOtherHostsName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cp-1", "w-2"} {
		in := clusterWithoutHostnames()
		h := in.Is.Hosts["192.0.1.1"]
		h.Hostname = name
		in.Is.Hosts["192.0.1.1"] = h
		d := Decide(*in)
		for id, a := range d.Hosts {
			left := a.Condition == condition.Unclear && a.Reasons[0].Code == problem.HostNameDuplicate
			if left != (id == "192.0.1.1") {
				t.Errorf("as %s: %s is %+v", name, id, a)
			}
		}
		if d.Route == fsm.Error {
			t.Errorf("as %s: %+v", name, d.Problems)
		}
	}
	in := clusterWithoutHostnames() // a control-plane host stops work
	h := in.Is.Hosts["192.0.0.1"]
	h.Hostname = "cp-2"
	in.Is.Hosts["192.0.0.1"] = h
	if d := Decide(*in); d.Route != fsm.Error || !problem.Has(d.Problems, problem.HostNameDuplicate) {
		t.Errorf("%s: %+v", d.Route, d.Problems)
	}
}

// Versions that a worker's kubelet claims do not stop other hosts; those that the worker works with now count.
func TestVersionsOfAWorkerStopNoOthers(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]struct{ condition condition.Condition }{
		"99.99.99": {condition: condition.Unclear}, "x": {condition: condition.Unclear},
		"1.0.1": {condition: condition.Unclear}, "": {condition: condition.Healthy},
	} {
		in := clusterWithoutHostnames()
		for i := range in.Is.API.Nodes {
			if n := &in.Is.API.Nodes[i]; n.Name == "w-1" && version != "" {
				n.KubeletVersion = version
			}
		}
		d := Decide(*in)
		if d.Route == fsm.Error || d.Hosts["192.0.1.1"].Condition != want.condition {
			t.Errorf("%q: route %s, %+v, %+v", version, d.Route, d.Hosts["192.0.1.1"], d.Problems)
		}
	}
}

// The epoch comes from control-plane hosts with an approved key, if there is one.
func TestAnEpochOfAFirstContactDoesNotCount(t *testing.T) {
	t.Parallel()
	in := clusterWithoutHostnames()
	say := func(id string, epoch int, contact string, complete bool) {
		h := in.Is.Hosts[id]
		h.Marker = &observed.Marker{Cluster: in.Want.Name, Role: "control-plane", Complete: complete, Epoch: epoch}
		h.FirstContact = contact
		in.Is.Hosts[id] = h
	}
	say("192.0.0.1", 2, "", true)
	say("192.0.0.2", 999, "SHA256:new", true)
	say("192.0.0.3", 1, "", true)
	for name, epoch := range map[string]func() int{
		"finished": func() int { return condition.Epoch(&in.Want, &in.Is) },
		"begun":    func() int { return condition.EpochBegun(&in.Want, &in.Is) },
	} {
		if got := epoch(); got != 2 {
			t.Errorf("%s: %d", name, got)
		}
	}
	for _, id := range []string{"192.0.0.1", "192.0.0.3"} {
		say(id, 1, "SHA256:"+strings.Repeat("x", 3), true)
	}
	if got := condition.Epoch(&in.Want, &in.Is); got != 999 { // no key is approved yet: a new machine of the operator's
		t.Errorf("without any approved: %d", got)
	}
}

package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

const dnsNote = desired.DNSImageDigest

// withDNSImage returns a healthy cluster whose cluster DNS image is to move. Every host has noted the one name, and
// must note the other; "" is none.
func withDNSImage(was, will string) Input {
	in := healthyCluster(3, 2)
	in.Config = map[string]map[string]string{}
	for _, h := range in.Want.Hosts() {
		in.Config[h.ID] = dnsImageDigests(will)
		in.changeObserved(h.ID, func(is *observed.Host) { is.Digests = dnsImageDigests(was) })
	}
	in.System = map[string]string{"kube-dns": "new.example.com/coredns:v1"}
	in.Is.API.Pods = []observed.Pod{{App: "kube-dns", Image: "old.example.com/coredns:v1", Ready: observed.Yes}}
	return in
}

func dnsImageDigests(note string) map[string]string {
	if note == "" {
		return map[string]string{"kubelet": "config-1"}
	}
	return map[string]string{"kubelet": "config-1", dnsNote: note}
}

// Pods of cluster DNS may run on any host: the Deployment follows when all hosts that answer have the image.
func TestHostsGetTheImageOfDNSBeforeItsPodsNameIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ was, will string }{
		"set": {"", "a"}, "changed": {"a", "b"}, "removed": {"a", ""},
	} {
		in := withDNSImage(c.was, c.will)
		d := Decide(in)
		if d.Route != fsm.Reconfigure || len(d.Drift) != 5 || d.System != nil {
			t.Errorf("%s: route %s, drift %v, system %v", name, d.Route, d.Drift, d.System)
		}
		for _, h := range in.Want.Hosts() {
			if diff := cmp.Diff([]string{dnsNote}, d.Drift[h.ID]); diff != "" {
				t.Errorf("%s: %s: %s", name, h.ID, diff)
			}
			in.changeObserved(h.ID, func(is *observed.Host) { is.Digests = dnsImageDigests(c.will) })
		}
		if d = Decide(in); d.Route != fsm.Resources || len(d.System) != 1 {
			t.Errorf("%s, once they have it: route %s, system %v", name, d.Route, d.System)
		}
		in.Is.API.Pods[0].Image = in.System["kube-dns"]
		if d = Decide(in); d.Route != fsm.Nothing {
			t.Errorf("%s, in the end: route %s", name, d.Route)
		}
	}
}

func TestAHostOutsideTheLimitKeepsTheImageOfDNSFromBeingNamed(t *testing.T) {
	t.Parallel()
	in := withDNSImage("", "a")
	in.Limit = map[string]bool{}
	for _, h := range in.Want.ControlPlane {
		in.Limit[h.ID] = true
	}
	if d := Decide(in); d.Route != fsm.Reconfigure || len(d.Drift) != 3 {
		t.Errorf("route %s, drift %v", d.Route, d.Drift)
	}
	for _, h := range in.Want.ControlPlane {
		in.changeObserved(h.ID, func(is *observed.Host) { is.Digests = dnsImageDigests("a") })
	}
	if d := Decide(in); d.System != nil {
		t.Errorf("route %s, system %v", d.Route, d.System)
	}
}

func TestAnUpgradeOfAllFetchesTheImageOfDNS(t *testing.T) {
	t.Parallel()
	in := withDNSImage("", "a")
	in.allOlder("1.36.1")
	if d := Decide(in); d.Route != fsm.Upgrade || len(d.System) != 1 {
		t.Errorf("route %s, system %v", d.Route, d.System)
	}
	w := in.Want.Workers[1]
	in.setOlderVersion(w.ID, w.Hostname, in.Want.KubernetesVersion)
	if d := Decide(in); d.Route != fsm.Upgrade || d.System != nil {
		t.Errorf("an upgrade of all but one: route %s, system %v", d.Route, d.System)
	}
}

// A silent host gets the image when it is back.
func TestTheImageOfDNSIsNotAskedOfASilentHost(t *testing.T) {
	t.Parallel()
	for reach, lacks := range map[observed.Reach]bool{observed.Reached: true, observed.Unreachable: false} {
		s := hostState{is: observed.Host{Reach: reach}}
		s.Condition = condition.Healthy
		if s.lacksDNSImage(dnsImageDigests("a")) != lacks {
			t.Errorf("%s: %t", reach, !lacks)
		}
	}
}

func TestAMachineGetsTheImageOfDNSInItsTurn(t *testing.T) {
	t.Parallel()
	in := aWorker()
	in.Config = map[string]map[string]string{machineID: dnsImageDigests("a")}
	in = in.changeHost(func(is *observed.Host) { is.Digests = dnsImageDigests("") })
	if d := Worker(in); d.Route != fsm.Wait {
		t.Errorf("before its turn: %s", d.Route)
	}
	if d := Worker(in.setTurn(Now)); d.Route != fsm.Reconfigure || len(d.Drift[machineID]) != 1 {
		t.Errorf("in its turn: %s, %v", d.Route, d.Drift)
	}
	in = in.changeHost(func(is *observed.Host) { is.Digests = dnsImageDigests("a") })
	if d := Worker(in); d.Route != fsm.Nothing {
		t.Errorf("afterwards: %s", d.Route)
	}
}

package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/identity"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// In any state of a cluster, nothing is done while two machines claim to be one host. A host that has only moved is
// named.
func TestContradictionsStopEverything(t *testing.T) {
	t.Parallel()
	for kind, want := range map[identity.Kind]problem.Code{
		identity.SameID: problem.HostIDDuplicate, identity.OtherID: problem.HostIDMismatch,
		identity.Displaced: problem.HostIDElsewhere, identity.OtherHostname: problem.HostnameChanged,
		identity.OtherRole: problem.RoleChanged,
	} {
		in := healthyCluster(3, 1)
		in.Moved = []identity.Move{{Host: in.Want.Workers[0].ID, Address: "192.0.2.200", Found: "192.0.2.201"}}
		in.Contradictions = []identity.Contradiction{{
			Kind: kind, Host: in.Want.ControlPlane[0].ID, Address: "192.0.2.200", OtherAddress: "192.0.2.202",
			Wants: "a", Says: "b",
		}}
		d := Decide(in)
		if d.Route != fsm.Error || len(d.Problems) != 1 || d.Problems[0].Code != want {
			t.Errorf("%s: route %s, problems %v", kind, d.Route, d.Problems)
			continue
		}
		if err := problem.Check(d.Problems[0].Code, d.Problems[0].Parameters); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if diff := cmp.Diff([]problem.Code{problem.HostMoved}, codesOf(d.Warnings)); diff != "" {
			t.Errorf("%s: warnings: %s", kind, diff)
		}
	}
}

func codesOf(problems []problem.Problem) []problem.Code {
	var out []problem.Code
	for _, p := range problems {
		out = append(out, p.Code)
	}
	return out
}

// A host with the wrong identity is not replaced: the instructions say what to settle.
func TestADoubtfulWorkerIsNotToBeReplaced(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*observed.Host){
		"of another cluster":   func(h *observed.Host) { h.Marker.Cluster = "beta" },
		"half a control plane": func(h *observed.Host) { h.EtcdData = observed.Yes },
		"with another key": func(h *observed.Host) {
			*h = observed.Host{Reach: observed.Denied, Class: "hostkey", Problem: "host key changed"}
		},
		"with another key than the known one": func(h *observed.Host) {
			*h = observed.Host{Reach: observed.Denied, Class: "hostkey", OtherKeys: otherKeys()}
		},
	} {
		in := healthyCluster(3, 2)
		in.changeObserved(w1, change)
		d := Decide(in)
		if len(d.Instructions) != 1 || len(d.Instructions[0].Steps) != 1 ||
			d.Instructions[0].Steps[0].Code != problem.SettleFirst {
			t.Errorf("%s: %s, %+v", name, d.Route, d.Instructions)
		}
	}
}

// otherKeys returns the keys of cp-2, set up again.
func otherKeys() []observed.OtherKey {
	return []observed.OtherKey{{Name: "cp-2", Known: []string{"SHA256:old (known_hosts:1)"}, Offered: "SHA256:new"}}
}

package decide

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// spoilRecordKey makes a key of the record unreadable.
func (in *Input) spoilRecordKey(key string) {
	r := *in.Is.API.Record
	r.Unreadable = map[string]string{key: "it is an x"}
	switch key {
	case observed.RecordCluster:
		r.Cluster = ""
	case observed.RecordManifestDigest:
		r.ManifestDigest = ""
	case observed.RecordNodes:
		r.Nodes = nil
	case observed.RecordFormerEndpoints:
		r.FormerEndpoints = nil
	case observed.RecordHardening:
		r.Hardening = ""
	case observed.RecordAddons:
		in.Is.API.Addons = map[string]string{}
	}
	in.Is.API.Record = &r
}

// Each key is named. A run repairs it, and does nothing else because of it.
func TestAKeyThatCannotBeReadIsNamedAndWrittenAgain(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		observed.RecordCluster, observed.RecordManifestDigest, observed.RecordManifest, observed.RecordRunID,
		observed.RecordNodes, observed.RecordFormerEndpoints, observed.RecordHardening, observed.RecordHistory,
	} {
		in := healthyCluster(3, 2)
		in.spoilRecordKey(key)
		d := Decide(in)
		if d.Route != fsm.Resources || !d.Record || len(d.Addons)+len(d.Upgrades)+len(d.Drift) > 0 {
			t.Errorf("%s: %s, %+v", key, d.Route, d)
		}
		want := []problem.Problem{{
			Code: problem.RecordUnreadable, Parameters: problem.Parameters{"key": key, "problem": "it is an x"},
		}}
		if diff := cmp.Diff(want, d.Warnings); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", key, diff)
		}
	}
}

// Only the record knows the cluster's addons: they are left alone, and so is the network plugin.
func TestAddonsThatCannotBeReadAreLeftAlone(t *testing.T) {
	t.Parallel()
	unwanted := healthyCluster(3, 1)
	unwanted.Is.API.Addons[desired.ControllersAddon], unwanted.Want.NoControllers = "a", true
	for name, in := range map[string]Input{"all wanted": healthyCluster(3, 1), "one unwanted": unwanted} {
		in.spoilRecordKey(observed.RecordAddons)
		d := Decide(in)
		if d.Route != fsm.Nothing || len(d.Addons)+len(d.RemoveAddons) > 0 {
			t.Errorf("%s: %s: %v, %v", name, d.Route, d.Addons, d.RemoveAddons)
		}
		if len(d.Warnings) != 1 || d.Warnings[0].String() != "AddonsUnreadable(problem=it is an x)" {
			t.Errorf("%s: %+v", name, d.Warnings)
		}
	}
	in := healthyCluster(3, 1)
	in.spoilRecordKey(observed.RecordAddons)
	in.nodeNamed("w-1").Ready = observed.No
	if d := Decide(in); d.Hosts["192.0.1.1"].Condition != condition.Unready {
		t.Errorf("a Node that is not Ready is excused, as if the network plugin was missing: %+v", d.Hosts["192.0.1.1"])
	}
	for _, other := range []string{"canal", "weaveNet"} {
		in = healthyCluster(3, 1)
		in.spoilRecordKey(observed.RecordAddons)
		in.Want.Network.CNI.Name, in.Addons = other, nil
		if d := Decide(in); d.Route != fsm.Error || len(d.Problems) != 1 ||
			d.Problems[0].Code != problem.AddonsUnreadable {
			t.Errorf("network plugin %s: %s, %+v, %+v", other, d.Route, d.Problems, d.Warnings)
		}
	}
}

// Only the record knows the Node of a silent host: no other host joins in its place.
func TestNoHostJoinsAsTheNodeOfASilentHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Input)
		joins  []string
	}{
		"a silent host": {func(in *Input) {
			in.Is.Hosts["192.0.1.2"] = observed.Host{ID: "192.0.1.2", Reach: observed.Unreachable}
		}, nil},
		"none is silent": {func(*Input) {}, []string{"192.0.1.1"}},
		"no such Node": {func(in *Input) {
			in.Is.Hosts["192.0.1.2"] = observed.Host{ID: "192.0.1.2", Reach: observed.Unreachable}
			in.Is.API.Nodes = slices.DeleteFunc(in.Is.API.Nodes, func(n observed.Node) bool { return n.Name == "w-1" })
		}, []string{"192.0.1.1"}},
	} {
		in := healthyCluster(3, 2)
		w1 := *in.nodeNamed("w-1")
		in.emptyHosts("192.0.1.1")
		in.Is.API.Nodes = append(in.Is.API.Nodes, w1)
		in.spoilRecordKey(observed.RecordNodes)
		c.change(&in)
		d := Decide(in)
		if diff := cmp.Diff(c.joins, d.Joins); diff != "" {
			t.Errorf("%s: joins (-want +got):\n%s", name, diff)
		}
		reasons := d.Hosts["192.0.1.1"].Reasons
		if refused := problem.Has(reasons, problem.NodeOwnerUnknown); refused != (c.joins == nil) {
			t.Errorf("%s: %+v", name, reasons)
		}
		if c.joins == nil && (d.Record || slices.Contains(RepairableKeys(in.Want, in.Is), observed.RecordNodes)) {
			t.Errorf("%s: the key is written again without the silent host's Node", name)
		}
	}
	in := healthyCluster(3, 1)
	cp2 := *in.nodeNamed("cp-2")
	in.emptyHosts("192.0.0.2")
	in.Is.API.Nodes = append(in.Is.API.Nodes, cp2)
	in.Is.Hosts["192.0.0.3"] = observed.Host{ID: "192.0.0.3", Reach: observed.Unreachable}
	in.spoilRecordKey(observed.RecordNodes)
	if d := Decide(in); !problem.Has(d.Problems, problem.NodeOwnerUnknown) {
		t.Errorf("the control plane: %s, %+v", d.Route, d.Problems)
	}
}

// A hardened cluster stays hardened: its hosts report it.
func TestHardeningThatCannotBeReadIsThatOfTheHosts(t *testing.T) {
	t.Parallel()
	for _, key := range []string{observed.RecordHardening, observed.RecordCluster, observed.RecordManifestDigest} {
		in := healthyCluster(3, 0)
		for _, h := range in.Want.ControlPlane {
			in.changeObserved(h.ID, func(h *observed.Host) {
				h.Digests = map[string]string{
					desired.HardeningDigest: desired.HardeningNote(desired.HardeningBaseline),
				}
			})
		}
		in.Is.API.Record.Hardening = desired.HardeningBaseline
		in.spoilRecordKey(key)
		if got, said := Hardening(in.Want, in.Is); got != desired.HardeningBaseline || !said {
			t.Errorf("%s: %q, %t", key, got, said)
		}
	}
}

// Names that all API servers have are kept for hosts that join, and dropped only on request.
func TestFormerNamesThatCannotBeReadAreThoseOfTheCertificates(t *testing.T) {
	t.Parallel()
	in := clusterAtEndpoint("api.example.com")
	for _, h := range in.Want.ControlPlane {
		in.changeObserved(h.ID, func(h *observed.Host) { h.APINames = append(h.APINames, "old.example.com") })
	}
	in.spoilRecordKey(observed.RecordFormerEndpoints)
	moving := in
	moving.Is.API.Endpoint = "before.example.com:6443"
	for name, in := range map[string]Input{"at rest": in, "moving": moving} {
		if got := Settle(in, false).Want.Endpoint.Former; !slices.Contains(got, "old.example.com") {
			t.Errorf("%s: kept are %v", name, got)
		}
	}
	in.DropNames = true
	if d := Decide(Settle(in, false)); d.Route != fsm.MoveEndpoint || !d.Publish {
		t.Errorf("asked for: %s, %+v", d.Route, d)
	}
	for _, h := range in.Want.ControlPlane {
		in.changeObserved(h.ID, func(h *observed.Host) { h.APINames = h.APINames[:len(h.APINames)-1] })
	}
	if d := Decide(Settle(in, false)); d.Route != fsm.MoveEndpoint || !d.Publish {
		t.Errorf("no certificate has one any more: %s, %+v", d.Route, d)
	}
}

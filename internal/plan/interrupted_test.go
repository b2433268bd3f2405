package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// The last host that is outdated may be one on which nothing runs: it continues, and another one takes the snapshot.
func TestTheSnapshotIsTakenWhereEtcdServes(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 0)
	changeHost(in, "cp-2", func(is *observed.Host) {
		is.Upgrading, is.Kubelet.Active, is.Healthz = version, false, observed.No
		is.EtcdHealth, is.APIServer, is.ControllerManager, is.Scheduler = observed.No, observed.No, observed.No,
			observed.No
	})
	etcdOf(in, "cp-2", func(m *observed.Member) { m.Healthy = observed.No })
	nodeOf(in, "cp-2", func(n *observed.Node) { n.Ready = observed.No })
	p, _ := Build(Input{Decide: in})
	var got []string
	for _, s := range p.Steps {
		if k := s.Intent.Kind; k == step.Snapshot || k == step.UpgradeControlPlane {
			got = append(got, s.ID)
		}
	}
	if diff := cmp.Diff([]string{"snapshot/cp-3", "upgrade-control-plane/cp-2"}, got); diff != "" {
		t.Error(diff)
	}
}

// A host whose upgrade an earlier run began and did not end is cordoned already: another one beside it would
// be one too many.
func TestAHostWhoseUpgradeWasInterruptedComesFirst(t *testing.T) {
	t.Parallel()
	drained := observed.Node{Unschedulable: true, Annotations: map[string]string{observed.CordonAnnotation: "run-1"}}
	for name, c := range map[string]struct {
		turn      string
		node      observed.Node
		cp3First  bool
		w3sPlaces []string
	}{
		"its upgrade has begun":          {version, observed.Node{}, true, []string{"w-3", "w-1", "w-2"}},
		"it is drained":                  {"", drained, true, []string{"w-3", "w-1", "w-2"}},
		"its upgrade has begun, drained": {version, drained, true, []string{"w-3", "w-1", "w-2"}},
		"a person has closed it": {"", observed.Node{Unschedulable: true}, false,
			[]string{"w-1", "w-2", "w-3"}},
		"only a mark is left": {"", observed.Node{Annotations: drained.Annotations}, false,
			[]string{"w-1", "w-2", "w-3"}},
		"nothing was begun": {"", observed.Node{}, false, []string{"w-1", "w-2", "w-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthyCluster(3, 3)
			for _, h := range in.Want.Hosts() {
				changeHost(in, h.Hostname, func(is *observed.Host) { is.Kubelet.Version = "1.36.1" })
			}
			for _, interrupted := range []string{"cp-3", "w-3"} {
				changeHost(in, interrupted, func(is *observed.Host) { is.Upgrading = c.turn })
				nodeOf(in, interrupted, func(n *observed.Node) {
					n.Unschedulable, n.Annotations = c.node.Unschedulable, c.node.Annotations
				})
			}
			want := append([]string{"cp-1", "cp-2", "cp-3"}, c.w3sPlaces...)
			if c.cp3First {
				want = append([]string{"cp-3", "cp-1", "cp-2"}, c.w3sPlaces...)
			}
			p, _ := Build(Input{Decide: in})
			var order []string
			for _, s := range p.Steps {
				if k := s.Intent.Kind; k == step.UpgradeWorker || k == step.UpgradeControlPlane {
					order = append(order, s.Intent.NodeName)
				}
			}
			if diff := cmp.Diff(want, order); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A plan names the interrupted change of a worker, even if its note is all that differs and the change is obsolete.
func TestAWorkerSaysWhichChangeWasInterrupted(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 1)
	changeHost(in, "w-1", func(is *observed.Host) { is.Upgrading = "1.35.4" })
	p, _ := Build(Input{Decide: in})
	drain, ok := p.Step("drain-node/w-1")
	if want := "an earlier change of this host, to 1.35.4, was interrupted"; !ok || drain.Reason != want {
		t.Errorf("drained: %t, because %q, want %q", ok, drain.Reason, want)
	}
}

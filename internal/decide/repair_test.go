package decide

import (
	"testing"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/decidetest"

	"github.com/google/go-cmp/cmp"
)

// repairs is the part of a decision about repairs.
type repairs struct {
	Route         fsm.Route
	Also          []fsm.Route
	Regenerations map[string][]string
	Removed       []string
	Quarantines   []string
	Stale         []string
}

// loseEtcdData makes a control-plane host report that its etcd data is lost, and its member silent.
func (in *Input) loseEtcdData(id, name string) {
	in.changeObserved(id, func(h *observed.Host) {
		h.EtcdData, h.EtcdHealth, h.APIServer = observed.No, observed.No, observed.No
	})
	in.killMembers(name)
}

func expiredHere(h *observed.Host) {
	h.Certificates = []observed.Certificate{{Name: "apiserver", Expired: true}}
}

func TestRemedies(t *testing.T) {
	t.Parallel()
	type host = observed.Host
	tests := []struct {
		name   string
		change func(*Input)
		want   repairs
	}{
		{"a manifest gone", func(in *Input) {
			in.changeObserved(cp2, func(h *host) {
				h.Manifests, h.APIServer, h.APIServerVersion = h.Manifests[:1], observed.Unknown, ""
			})
		}, repairs{Route: fsm.Repair, Regenerations: map[string][]string{cp2: {"kube-apiserver"}}}},
		{"a worker's kubelet.conf gone", func(in *Input) {
			in.changeObserved(w2, func(h *host) { h.KubeletConf = observed.No })
		}, repairs{Route: fsm.Repair, Regenerations: map[string][]string{w2: {condition.PartKubelet}}}},
		{"outside the limit", func(in *Input) {
			in.changeObserved(cp2, expiredHere)
			in.Limit = map[string]bool{w1: true}
		}, repairs{Route: fsm.Instruct}},
		{"certificates expired on one host", func(in *Input) { in.changeObserved(cp2, expiredHere) },
			repairs{Route: fsm.Repair, Regenerations: map[string][]string{cp2: {condition.PartCertificates}}}},
		{"certificates expired on a living voter while another is dead", func(in *Input) {
			in.changeObserved(cp2, expiredHere)
			in.loseHosts(cp3)
		}, repairs{Route: fsm.Instruct}},
		{"certificates expired everywhere", func(in *Input) {
			for _, id := range []string{cp1, cp2, cp3} {
				in.changeObserved(id, func(h *host) {
					expiredHere(h)
					h.APIServer, h.EtcdHealth = observed.No, observed.No
				})
			}
			in.Is.API, in.Is.Etcd = observed.API{Reached: observed.No}, observed.Etcd{Reached: observed.No}
		}, repairs{
			Route: fsm.Repair,
			Regenerations: map[string][]string{
				cp1: {condition.PartCertificates},
				cp2: {condition.PartCertificates},
				cp3: {condition.PartCertificates},
			},
		}},
		{"a worker needs the API for new credentials", func(in *Input) {
			in.changeObserved(w1, func(h *host) { h.KubeletConf = observed.No })
			in.Is.API = observed.API{Reached: observed.No}
		}, repairs{Route: fsm.Instruct}},

		{"etcd data of one member lost", func(in *Input) { in.loseEtcdData(cp2, "cp-2") },
			repairs{Route: fsm.Repair, Quarantines: []string{cp2}}},
		{"its member has been removed already", func(in *Input) {
			in.loseEtcdData(cp2, "cp-2")
			_, in.Is.Etcd.Members = quorum.Without(in.Is.Etcd.Members, "id-cp-2")
		}, repairs{Route: fsm.Repair, Quarantines: []string{cp2}}},
		{"it has been set aside already", func(in *Input) {
			in.loseEtcdData(cp2, "cp-2")
			in.changeObserved(cp2, func(h *host) { h.Marker = &observed.Marker{Cluster: decidetest.Cluster} })
		}, repairs{Route: fsm.Repair, Removed: []string{"id-cp-2"}}},
		{"of two that lost it only as many as the quorum allows", func(in *Input) {
			*in = healthyCluster(5, 0)
			in.loseEtcdData(cp2, "cp-2")
			in.loseEtcdData(cp3, "cp-3")
		}, repairs{Route: fsm.Repair, Quarantines: []string{cp2, cp3}}},
		{"two of three lost it", func(in *Input) {
			in.loseEtcdData(cp2, "cp-2")
			in.loseEtcdData(cp3, "cp-3")
		}, repairs{Route: fsm.DisasterRecovery}},
		{"it lost its data and another is dead", func(in *Input) {
			*in = healthyCluster(5, 0)
			in.loseEtcdData(cp2, "cp-2")
			in.loseHosts(cp3)
		}, repairs{Route: fsm.Repair, Quarantines: []string{cp2}}},
		{"no host to join again from", func(in *Input) {
			in.loseEtcdData(cp2, "cp-2")
			for _, id := range []string{cp1, cp3} {
				in.changeObserved(id, func(h *host) { h.PKI = observed.No })
			}
		}, repairs{Route: fsm.Instruct}},
		{"a living member is never set aside", func(in *Input) {
			in.changeObserved(cp2, func(h *host) { h.EtcdData = observed.No })
		}, repairs{Route: fsm.Instruct}},
		{"silence is not the host's own word", func(in *Input) { in.loseHosts(cp2) }, repairs{Route: fsm.Instruct}},
		{"the API does not answer", func(in *Input) {
			in.loseEtcdData(cp2, "cp-2")
			in.Is.API = observed.API{Reached: observed.No}
		}, repairs{Route: fsm.Instruct}},

		{"a control-plane Node without a host", func(in *Input) {
			in.Is.API.Nodes = append(in.Is.API.Nodes,
				observed.Node{Name: "old", ControlPlane: true, Ready: observed.Unknown})
		}, repairs{Route: fsm.Resources, Stale: []string{"old"}}},
		{"one that is Ready, one of a worker, one with a member", func(in *Input) {
			in.Is.API.Nodes = append(in.Is.API.Nodes, observed.Node{Name: "a", ControlPlane: true, Ready: observed.Yes},
				observed.Node{Name: "b", Ready: observed.Unknown},
				observed.Node{Name: "c", ControlPlane: true, Ready: observed.Unknown})
			in.Is.Etcd.Members = append(in.Is.Etcd.Members, observed.Member{ID: "c", Name: "c", Healthy: observed.Yes})
		}, repairs{Route: fsm.Nothing}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := healthyCluster(3, 2)
			tt.change(&in)
			d := Decide(in)
			got := repairs{
				Route: d.Route, Also: d.Also, Regenerations: d.Regenerations, Quarantines: d.Quarantines,
				Stale: d.StaleNodes,
			}
			for _, r := range d.Removals {
				got.Removed = append(got.Removed, r.Member)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("trace %v\n(-want +got):\n%s", d.Trace, diff)
			}
			if err := checkTrace(d); err != nil {
				t.Error(err)
			}
			if (d.Route == fsm.Instruct || d.Route == fsm.DisasterRecovery) && len(d.Instructions) == 0 {
				t.Error("no instructions")
			}
		})
	}
}

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// answeringWorld returns a world of three control-plane hosts and two workers that all answer, with an etcd of the
// three.
func answeringWorld(want desired.Cluster) observed.World {
	is := observed.World{Hosts: map[string]observed.Host{}}
	is.Etcd.Reached, is.API.Reached = observed.Yes, observed.Yes
	for _, h := range want.Hosts() {
		is.Hosts[h.ID] = bareHost(h)
	}
	for _, h := range want.ControlPlane {
		is.Etcd.Members = append(is.Etcd.Members, observed.Member{
			ID:       "m-" + h.Hostname,
			Name:     h.Hostname,
			PeerURLs: []string{"https://" + h.PrivateAddress + ":2380"},
		})
		is.API.Nodes = append(is.API.Nodes, observed.Node{Name: h.Hostname, ControlPlane: true})
	}
	return is
}

func TestWhatAPlanLocks(t *testing.T) {
	t.Parallel()
	const cp1, cp2, cp3, w1 = "192.0.0.1", "192.0.0.2", "192.0.0.3", "192.0.1.1"
	all := []string{cp1, cp2, cp3}
	on := func(host string, k step.Kind) Step {
		return Step{ID: string(k) + "/" + host, Host: host, Intent: step.Intent{Kind: k}}
	}
	silent := func(ids ...string) func(*observed.World) {
		return func(is *observed.World) {
			for _, id := range ids {
				is.Hosts[id] = observed.Host{ID: id, Reach: observed.Unreachable}
			}
		}
	}
	for name, c := range map[string]struct {
		steps []Step
		world func(*observed.World)
		want  Scope
	}{
		"nothing": {},
		"a worker joins": {
			steps: []Step{on("", step.RemoveAutoApproval), on(w1, step.Prepare), on(w1, step.Images),
				on(w1, step.JoinWorker), on(w1, step.NodeReady), on("", step.RevokeTokens)},
			want: Scope{Hosts: []string{w1}},
		},
		"a worker leaves": {
			steps: []Step{on(w1, step.DrainNode), on(w1, step.ResetHost), on(w1, step.DeleteNode)},
			want:  Scope{Hosts: []string{w1}},
		},
		"a worker's Node is still that of the control-plane host which it was": {
			steps: []Step{on(w1, step.Prepare), on(w1, step.DeleteNode), on(w1, step.JoinWorker)},
			world: func(is *observed.World) {
				is.API.Nodes = append(is.API.Nodes, observed.Node{Name: "w-1", ControlPlane: true})
			},
			want: Scope{Cluster: true, Hosts: append(all[:3:3], w1), ControlPlane: append(all[:3:3], w1)},
		},
		"an addon, while a worker's Node is still a control-plane host's": {
			steps: []Step{on("", step.ApplyAddon)},
			world: func(is *observed.World) {
				is.API.Nodes = append(is.API.Nodes, observed.Node{Name: "w-1", ControlPlane: true})
			},
			want: Scope{Cluster: true, Hosts: append(all[:3:3], w1), ControlPlane: append(all[:3:3], w1)},
		},
		"a worker says that it is of the control plane": {
			steps: []Step{on(w1, step.ResetHost)},
			world: func(is *observed.World) {
				seen := is.Hosts[w1]
				seen.Marker = &observed.Marker{Role: string(desired.ControlPlane)}
				is.Hosts[w1] = seen
			},
			want: Scope{Cluster: true, Hosts: append(all[:3:3], w1), ControlPlane: all, Complete: true},
		},
		"a worker has the address of a member of etcd": {
			steps: []Step{on(w1, step.Prepare), on(w1, step.JoinWorker)},
			world: func(is *observed.World) {
				is.Etcd.Members = append(is.Etcd.Members, observed.Member{ID: "m-x",
					PeerURLs: []string{"https://10.0.1.1:2380"}})
			},
			want: Scope{Cluster: true, Hosts: append(all[:3:3], w1), ControlPlane: append(all[:3:3], w1)},
		},
		"a worker leaves that does not answer": {steps: []Step{on(w1, step.DeleteNode)}, world: silent(w1),
			want: Scope{Cluster: true, Hosts: all, ControlPlane: all, Complete: true}},
		"a worker joins, and that is recorded": {steps: []Step{on(w1, step.JoinWorker), on("", step.SaveRecord)},
			want: Scope{Cluster: true, Hosts: append(all[:3:3], w1), ControlPlane: all, Complete: true}},
		"a Node of nobody goes": {steps: []Step{on("", step.DeleteNode)},
			want: Scope{Cluster: true, Hosts: all, ControlPlane: all, Complete: true}},
		"an addon": {steps: []Step{on("", step.ApplyAddon)},
			want: Scope{Cluster: true, Hosts: all, ControlPlane: all, Complete: true}},
		"a control-plane host is restarted": {steps: []Step{on(cp2, step.RestartUnits)},
			want: Scope{Cluster: true, Hosts: all, ControlPlane: all, Complete: true}},
		"a control-plane host does not answer": {steps: []Step{on(cp2, step.RestartUnits)}, world: silent(cp3),
			want: Scope{Cluster: true, Hosts: []string{cp1, cp2}, ControlPlane: []string{cp1, cp2}}},
		"etcd does not say who its members are": {steps: []Step{on(cp2, step.RestartUnits)},
			world: func(is *observed.World) { is.Etcd = observed.Etcd{} },
			want:  Scope{Cluster: true, Hosts: all, ControlPlane: all}},
		"etcd has a member of no host": {
			steps: []Step{on(cp1, step.RestartUnits)},
			world: func(is *observed.World) {
				is.Etcd.Members = append(is.Etcd.Members, observed.Member{ID: "m-x", Name: "cp-9"})
			},
			want: Scope{Cluster: true, Hosts: all, ControlPlane: all},
		},
		"there is a control-plane Node of no host": {
			steps: []Step{on(cp1, step.RestartUnits)},
			world: func(is *observed.World) {
				is.API.Nodes = append(is.API.Nodes, observed.Node{Name: "cp-9", ControlPlane: true})
			},
			want: Scope{Cluster: true, Hosts: all, ControlPlane: all},
		},
		"a reset of everything": {
			steps: []Step{on(cp1, step.ResetHost), on(cp2, step.ResetHost), on(cp3, step.ResetHost),
				on(w1, step.ResetHost)},
			want: Scope{Cluster: true, Hosts: append(all[:3:3], w1), ControlPlane: all, Complete: true, Ends: true},
		},
		"an installation": {
			steps: []Step{on(cp1, step.Init), on(w1, step.JoinWorker)},
			world: func(is *observed.World) { is.Etcd, is.API = observed.Etcd{}, observed.API{} },
			want:  Scope{Cluster: true, Hosts: append(all[:3:3], w1), ControlPlane: all, Complete: true},
		},
		"a recovery without destroyed hosts": {steps: []Step{on(cp1, step.Restore)}, world: silent(cp2, cp3),
			want: Scope{Cluster: true, Hosts: []string{cp1}, ControlPlane: []string{cp1}, Complete: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := testManifest(3, 2)
			is := answeringWorld(want)
			if c.world != nil {
				c.world(&is)
			}
			if diff := cmp.Diff(c.want, LockScope(Plan{Steps: c.steps}, want, is)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatHasNoPlanAndIsAboutTheClusterLocksItsControlPlane(t *testing.T) {
	t.Parallel()
	want := testManifest(1, 1)
	only := []string{"192.0.0.1"}
	if diff := cmp.Diff(Scope{Cluster: true, Hosts: only, ControlPlane: only, Complete: true},
		ClusterScope(want, answeringWorld(want))); diff != "" {
		t.Error(diff)
	}
}

// What a Machine's host says of itself must not make its run one about the cluster: that would hold up all others.
func TestAMachinesHostIsAWorkerWhateverItSays(t *testing.T) {
	t.Parallel()
	want := testManifest(3, 1)
	is := answeringWorld(want)
	w := &want.Workers[0]
	w.Machine = "default/w-1"
	seen := is.Hosts[w.ID]
	seen.Marker = &observed.Marker{Role: string(desired.ControlPlane)}
	is.Hosts[w.ID] = seen
	p := Plan{Steps: []Step{{ID: "drain", Host: w.ID, Intent: step.Intent{Kind: step.DrainNode}}}}
	if diff := cmp.Diff(Scope{Hosts: []string{w.ID}}, LockScope(p, want, is)); diff != "" {
		t.Error(diff)
	}
}

// A plan waits for what runs on a host that the cluster has in its control plane, whatever the manifest now calls the
// host. A worker's own claims hold up no other host.
func TestWhoseStepsMakeTheControlPlaneBusy(t *testing.T) {
	t.Parallel()
	const cp2, w1 = "192.0.0.2", "192.0.1.1"
	for name, c := range map[string]struct {
		runs  string
		world func(is *observed.World, h *observed.Host)
		want  bool
	}{
		"nobody's":             {"", nil, false},
		"a control-plane host": {cp2, nil, true},
		"a worker":             {w1, nil, false},
		"a worker that says that it is of the control plane": {w1, func(_ *observed.World, h *observed.Host) {
			h.EtcdData = observed.Yes
		}, false},
		"a worker whose Node is a control-plane host's": {w1, func(is *observed.World, _ *observed.Host) {
			is.API.Nodes = append(is.API.Nodes, observed.Node{Name: "w-1", ControlPlane: true})
		}, true},
		"a worker that etcd lists": {w1, func(is *observed.World, _ *observed.Host) {
			is.Etcd.Members = append(is.Etcd.Members, observed.Member{ID: "m-w", Name: "w-1"})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := testManifest(3, 2)
			is := answeringWorld(want)
			if h := is.Hosts[c.runs]; c.runs != "" {
				h.Step = &observed.Step{}
				if c.world != nil {
					c.world(&is, &h)
				}
				is.Hosts[c.runs] = h
			}
			if got := ControlPlaneBusy(want, is); got != c.want {
				t.Errorf("busy: %t, want %t", got, c.want)
			}
		})
	}
}

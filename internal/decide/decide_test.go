package decide

import (
	"slices"
	"testing"
	"time"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/decidetest"

	"github.com/google/go-cmp/cmp"
)

// Addresses of hosts in the worlds of these tests.
const (
	cp1, cp2, cp3 = "192.0.0.1", "192.0.0.2", "192.0.0.3"
	w1, w2        = "192.0.1.1", "192.0.1.2"
)

// outcome is the part of a decision that these tests compare.
type outcome struct {
	Route    fsm.Route
	Also     []fsm.Route
	Leader   string
	Prepare  []string
	Joins    []string
	Restarts map[string][]string
	Removed  []string // members
	Upgrades []string
	Drift    map[string][]string
	Addons   []string
	Metadata []string
	Record   bool
	Problems []string
	Warnings []string
}

func outcomeOf(d Decision) outcome {
	o := outcome{
		d.Route, d.Also, d.Leader, d.Prepare, d.Joins, d.Restarts, nil, d.Upgrades, d.Drift, d.Addons, d.Metadata,
		d.Record, problemTexts(d.Problems), problemTexts(d.Warnings),
	}
	for _, r := range d.Removals {
		o.Removed = append(o.Removed, r.Member)
	}
	return o
}

func TestDecide(t *testing.T) {
	t.Parallel()
	type host = observed.Host
	stop := func(h *host) { h.Kubelet.Active = false }
	tests := []struct {
		name   string
		change func(*Input)
		want   outcome
	}{
		{"nothing to do", func(*Input) {}, outcome{Route: fsm.Nothing}},
		{"install", func(in *Input) { in.bareWorld() }, outcome{
			Route: fsm.Install, Leader: cp1, Prepare: []string{cp1, cp2, cp3, w1, w2},
			Joins: []string{cp2, cp3, w1, w2}, Addons: []string{"coredns", "flannel"}, Record: true,
		}},
		{"install begins on the manifest's leader", func(in *Input) {
			in.bareWorld()
			in.Want.ControlPlane[1].IsLeader = true
		}, outcome{
			Route: fsm.Install, Leader: cp2, Prepare: []string{cp1, cp2, cp3, w1, w2},
			Joins: []string{cp1, cp3, w1, w2}, Addons: []string{"coredns", "flannel"}, Record: true,
		}},
		{"install goes on where etcd data is", func(in *Input) {
			in.bareWorld()
			in.Is.Hosts[cp3] = hostKinds()[14].host(in.Want.ControlPlane[2])
		}, outcome{
			Route: fsm.Install, Leader: cp3, Prepare: []string{cp1, cp2, cp3, w1, w2},
			Joins: []string{cp1, cp2, w1, w2}, Addons: []string{"coredns", "flannel"}, Record: true,
		}},
		{"install goes on where the PKI is", func(in *Input) {
			in.bareWorld()
			is := decidetest.Begun(in.Want.ControlPlane[1])
			is.KubeletConf, is.PKI = observed.No, observed.Yes
			in.Is.Hosts[cp2] = is
		}, outcome{
			Route: fsm.Install, Leader: cp2, Prepare: []string{cp1, cp2, cp3, w1, w2},
			Joins: []string{cp1, cp3, w1, w2}, Addons: []string{"coredns", "flannel"}, Record: true,
		}},
		{"install leaves out an unreachable worker", func(in *Input) {
			in.bareWorld()
			in.loseHosts(w1)
		}, outcome{
			Route: fsm.Install, Leader: cp1, Prepare: []string{cp1, cp2, cp3, w2}, Joins: []string{cp2, cp3, w2},
			Addons: []string{"coredns", "flannel"}, Record: true,
			Warnings: []string{"HostUnreachable(error=connection timed out)"},
		}},
		{"install within a limit", func(in *Input) {
			in.bareWorld()
			in.Limit = map[string]bool{cp1: true, w2: true}
		}, outcome{
			Route: fsm.Install, Leader: cp1, Prepare: []string{cp1, w2}, Joins: []string{w2},
			Addons: []string{"coredns", "flannel"}, Record: true,
			Warnings: slices.Repeat([]string{"HostOutsideLimit"}, 3),
		}},
		{"install without its leader inside the limit", func(in *Input) {
			in.bareWorld()
			in.Limit = map[string]bool{w2: true}
		}, outcome{
			Route: fsm.Error, Problems: []string{"LeaderOutsideLimit"},
			Warnings: slices.Repeat([]string{"HostOutsideLimit"}, 4),
		}},
		{"a refused login before there is a cluster", func(in *Input) {
			in.bareWorld()
			in.Is.Hosts[w1] = host{Reach: observed.Denied, Class: "auth", Problem: "permission denied"}
		}, outcome{Route: fsm.Error, Problems: []string{"HostLoginRefused(error=permission denied)"}}},
		{"a refused login in a cluster", func(in *Input) {
			in.Is.Hosts[w1] = host{Reach: observed.Denied, Class: "auth", Problem: "permission denied"}
		}, outcome{Route: fsm.Instruct, Warnings: []string{"HostLoginRefused(error=permission denied)"}}},
		{"a changed host key of a control plane stops", func(in *Input) {
			in.Is.Hosts[cp2] = host{Reach: observed.Denied, Class: "hostkey", Problem: "host key changed"}
		}, outcome{Route: fsm.Error, Problems: []string{"HostKeyRefused(error=host key changed)"}}},
		{"a host key in place of the known one stops, and can be accepted", func(in *Input) {
			in.Is.Hosts[cp2] = host{Reach: observed.Denied, Class: "hostkey", OtherKeys: otherKeys()}
		}, outcome{Route: fsm.Error, Problems: []string{
			"HostKeyChanged(known=SHA256:old (known_hosts:1), name=cp-2, offered=SHA256:new)",
		}}},
		{"a host key that was accepted in place of the known one is named", func(in *Input) {
			in.changeObserved(cp2, func(h *host) { h.FirstContact, h.OtherKeys = "SHA256:new", otherKeys() })
		}, outcome{Route: fsm.Nothing, Warnings: []string{
			"HostKeyReplaced(known=SHA256:old (known_hosts:1), name=cp-2, offered=SHA256:new)",
		}}},
		{"a host whose key was accepted and that refuses the login", func(in *Input) {
			in.Is.Hosts[cp2] = host{Reach: observed.Denied, Class: "auth", Problem: "no", OtherKeys: otherKeys()}
		}, outcome{Route: fsm.Instruct, Warnings: []string{"HostLoginRefused(error=no)"}}},
		{"a changed host key stops before there is a cluster", func(in *Input) {
			in.bareWorld()
			in.Is.Hosts[w1] = host{Reach: observed.Denied, Class: "hostkey", Problem: "host key changed"}
		}, outcome{Route: fsm.Error, Problems: []string{"HostKeyRefused(error=host key changed)"}}},
		{"a worker's changed host key stops no others", func(in *Input) {
			in.Is.Hosts[w1] = host{Reach: observed.Denied, Class: "hostkey", Problem: "host key changed"}
			in.emptyHosts(w2)
		}, outcome{
			Route: fsm.Join, Leader: cp1, Prepare: []string{w2}, Joins: []string{w2},
			Warnings: []string{"HostKeyRefused(error=host key changed)"},
		}},
		{"all unreachable", func(in *Input) {
			in.bareWorld()
			in.loseHosts(cp1, cp2, cp3, w1, w2)
		}, outcome{
			Route: fsm.Error,
			Problems: append(slices.Repeat([]string{"HostUnreachable(error=connection timed out)"}, 3),
				"ClusterStateUnknown(hosts=cp-1+cp-2+cp-3)"),
			Warnings: slices.Repeat([]string{"HostUnreachable(error=connection timed out)"}, 5),
		}},
		{"manifest applied to another cluster's hosts", func(in *Input) { in.Want.Name = "beta" }, outcome{
			Route: fsm.Error, Problems: slices.Repeat([]string{"ForeignCluster(cluster=alpha, wanted=beta)"}, 5),
		}},
		{"foreign worker outside the limit", func(in *Input) {
			in.changeObserved(w2, func(h *host) { h.Marker.Cluster = "beta" })
			in.Limit = map[string]bool{w1: true}
		}, outcome{Route: fsm.Nothing, Warnings: []string{"ForeignCluster(cluster=beta, wanted=alpha)"}}},
		{"a worker of the manifest is a Machine's", func(in *Input) {
			in.changeObserved(w2, func(h *host) { h.Marker.ID, h.Marker.Machine = "uid-1", "kube-system/pool-1" })
		}, outcome{
			Route: fsm.Instruct, Warnings: []string{"HostOfMachine(machine=kube-system/pool-1)"},
		}},
		{"a control-plane host of the manifest is a Machine's", func(in *Input) {
			in.changeObserved(cp2, func(h *host) { h.Marker.ID, h.Marker.Machine = "uid-1", "kube-system/pool-1" })
		}, outcome{Route: fsm.Error, Problems: []string{"HostOfMachine(machine=kube-system/pool-1)"}}},
		{"two CAs claim one name", func(in *Input) {
			in.changeObserved(cp2, func(h *host) { h.CAHash = decidetest.OtherCA })
		}, outcome{
			Route:    fsm.Error,
			Problems: []string{"ClusterCAConflict(cas=sha256:aaaa+sha256:bbbb, cluster=alpha)"},
		}},
		{"worker of another CA", func(in *Input) {
			in.changeObserved(w1, func(h *host) { h.CAHash = decidetest.OtherCA })
		}, outcome{
			Route:    fsm.Instruct,
			Warnings: []string{"ForeignCA(ca=sha256:bbbb, cluster=alpha, items=kubelet.conf, wanted=sha256:aaaa)"},
		}},
		{"a cluster whose markers are lost, known by its record", func(in *Input) {
			for _, h := range in.Want.Hosts() {
				in.changeObserved(h.ID, func(h *host) { h.Marker = nil })
			}
		}, outcome{Route: fsm.Nothing}},
		{"a cluster of unknown origin", func(in *Input) {
			in.Is.API.Record = nil
			for _, h := range in.Want.Hosts() {
				in.changeObserved(h.ID, func(h *host) { h.Marker = nil })
			}
		}, outcome{Route: fsm.Error, Problems: append(
			slices.Repeat([]string{"ForeignData(items=kubelet.conf+admin.conf+PKI+etcd data+static pods)"}, 3),
			slices.Repeat([]string{"ForeignData(items=kubelet.conf)"}, 2)...)}},
		{"no control plane wanted", func(in *Input) { in.Want.ControlPlane = nil }, outcome{
			Route: fsm.Error, Problems: []string{"ControlPlaneMissing"},
			Warnings: []string{
				"OrphanMember(member=cp-1 (id-cp-1), state=healthy)",
				"OrphanMember(member=cp-2 (id-cp-2), state=healthy)",
				"OrphanMember(member=cp-3 (id-cp-3), state=healthy)",
			},
		}},
		{"an invalid version, and a limit to no host", func(in *Input) {
			in.Want.KubernetesVersion = "latest"
			in.Limit = map[string]bool{"elsewhere": true}
		}, outcome{Route: fsm.Error, Problems: []string{
			"VersionInvalid(version=latest)", "LimitUnknown(name=elsewhere)",
		}}},
		{"two hosts of one name", func(in *Input) { in.Want.Workers[1].Hostname = "W-1" }, outcome{
			Route: fsm.Error, Problems: []string{"HostNameDuplicate(hosts=192.0.1.1+192.0.1.2, name=w-1)"},
		}},
		{"two hosts of one machine ID",
			func(in *Input) { in.changeObserved(w2, func(h *host) { h.MachineID = "machine-" + w1 }) }, outcome{
				Route:    fsm.Nothing,
				Warnings: []string{"MachineIDDuplicate(hosts=192.0.1.1+192.0.1.2, machineID=machine-192.0.1.1)"},
			}},
		{"a member's clock only warns", func(in *Input) {
			in.changeObserved(w2,
				func(h *host) { h.ClockSkew = time.Minute })
		},
			outcome{
				Route: fsm.Nothing, Warnings: []string{"ClockAhead(limit=30s, skew=1m0s)"},
			}},
		{"a step that runs", func(in *Input) {
			in.changeObserved(w2, func(h *host) { h.Step = &observed.Step{RunID: "r1", Stage: "images"} })
		}, outcome{
			Route: fsm.Nothing, Warnings: []string{"StepRunning(run=r1, step=images)"},
		}},
		{"a new worker that is not fit", func(in *Input) {
			in.emptyHosts(w2)
			in.changeObserved(w2, func(h *host) { h.DiskMiB = 100 })
		}, outcome{Route: fsm.Instruct, Warnings: []string{"DiskTooSmall(have=100, need=5120)"}}},

		{"join a worker", func(in *Input) { in.emptyHosts(w2) },
			outcome{Route: fsm.Join, Leader: cp1, Prepare: []string{w2}, Joins: []string{w2}}},
		{"join control planes and a worker", func(in *Input) { in.emptyHosts(cp2, cp3, w1) }, outcome{
			Route: fsm.Join, Leader: cp1, Prepare: []string{cp2, cp3, w1}, Joins: []string{cp2, cp3, w1},
		}},
		{"a join that reached etcd is finished first", func(in *Input) {
			in.emptyHosts(cp2)
			in.changeObserved(cp3, func(h *host) { h.Marker.Complete = false })
			in.Is.Etcd.Members[1].Learner = true
		}, outcome{Route: fsm.Join, Leader: cp1, Prepare: []string{cp2, cp3}, Joins: []string{cp3, cp2}}},
		{"join within a limit", func(in *Input) {
			in.emptyHosts(cp3, w1, w2)
			in.Limit = map[string]bool{w1: true}
		}, outcome{
			Route: fsm.Join, Leader: cp1, Prepare: []string{w1}, Joins: []string{w1},
			Warnings: slices.Repeat([]string{"HostOutsideLimit"}, 2),
		}},
		{"a missing host waits for the upgrade", func(in *Input) {
			in.emptyHosts(w2)
			in.Want.KubernetesVersion = "1.36.4"
		}, outcome{Route: fsm.Upgrade, Upgrades: []string{cp1, cp2, cp3, w1}}},
		{"a worker's old kubelet does not keep others from joining", func(in *Input) {
			in.emptyHosts(w2)
			in.changeObserved(w1, func(h *host) { h.Kubelet.Version = "1.35.2" })
		}, outcome{Route: fsm.Join, Leader: cp1, Prepare: []string{w2}, Joins: []string{w2}}},

		{"start units again, of workers too", func(in *Input) {
			in.changeObserved(cp2, stop)
			in.changeObserved(w1, stop)
		}, outcome{Route: fsm.Repair, Restarts: map[string][]string{cp2: {"kubelet"}, w1: {"kubelet"}}}},
		{"start units again to have a quorum", func(in *Input) {
			for _, id := range []string{cp2, cp3} {
				h, _ := in.Want.Host(id)
				in.Is.Hosts[id] = hostKinds()[2].host(h)
			}
			in.killMembers("cp-2")
			in.killMembers("cp-3")
		}, outcome{
			Route:    fsm.Repair,
			Restarts: map[string][]string{cp2: {"containerd", "kubelet"}, cp3: {"containerd", "kubelet"}},
		}},
		{"units outside the limit are left", func(in *Input) {
			in.changeObserved(cp2, stop)
			in.emptyHosts(w2)
			in.Limit = map[string]bool{w1: true, w2: true}
		}, outcome{
			Route: fsm.Instruct, Also: []fsm.Route{fsm.Join}, Leader: cp1, Prepare: []string{w2}, Joins: []string{w2},
		}},
		{"a replaced control plane", func(in *Input) {
			in.Is.Hosts[cp3] = decidetest.Bare(in.Want.ControlPlane[2])
			in.killMembers("cp-3")
		}, outcome{Route: fsm.Repair, Removed: []string{"id-cp-3"}}},
		{"a replaced control plane outside the limit", func(in *Input) {
			in.Is.Hosts[cp3] = decidetest.Bare(in.Want.ControlPlane[2])
			in.killMembers("cp-3")
			in.Limit = map[string]bool{w1: true}
		}, outcome{Route: fsm.Instruct, Warnings: []string{"HostOutsideLimit"}}},
		{"a dead member taken out of the manifest", func(in *Input) {
			in.Is.Etcd.Members = append(in.Is.Etcd.Members,
				observed.Member{ID: "id-old", Name: "old", Healthy: observed.No})
		}, outcome{Route: fsm.Repair, Removed: []string{"id-old"}}},
		{"a stale learner", func(in *Input) {
			in.Is.Etcd.Members = append(in.Is.Etcd.Members, observed.Member{ID: "id-new", Learner: true})
		}, outcome{Route: fsm.Repair, Removed: []string{"id-new"}}},
		{"an unknown member outside the manifest", func(in *Input) {
			in.Is.Etcd.Members = append(in.Is.Etcd.Members, observed.Member{ID: "id-old", Name: "old"})
		}, outcome{Route: fsm.Instruct}},
		{"a living member outside the manifest", func(in *Input) {
			in.Is.Etcd.Members = append(in.Is.Etcd.Members,
				observed.Member{ID: "id-old", Name: "old", Healthy: observed.Yes})
		}, outcome{Route: fsm.Nothing, Warnings: []string{"OrphanMember(member=old (id-old), state=healthy)"}}},
		{"a member answers where the host is empty", func(in *Input) {
			in.Is.Hosts[cp3] = decidetest.Bare(in.Want.ControlPlane[2])
		}, outcome{Route: fsm.Instruct}},
		{"a dead member that may not go yet", func(in *Input) {
			in.Is.Etcd.Members = append(in.Is.Etcd.Members,
				observed.Member{ID: "id-old", Name: "old", Healthy: observed.No})
			in.loseHosts(cp2, cp3)
		}, outcome{
			Route:    fsm.DisasterRecovery,
			Warnings: slices.Repeat([]string{"HostUnreachable(error=connection timed out)"}, 2),
		}},

		{"one control plane unreachable, a worker missing, an addon stale", func(in *Input) {
			in.loseHosts(cp3)
			in.emptyHosts(w2)
			in.Is.API.Addons["coredns"] = "addon-0"
		}, outcome{
			Route: fsm.Instruct, Also: []fsm.Route{fsm.Join, fsm.Resources}, Leader: cp1, Prepare: []string{w2},
			Joins: []string{w2}, Addons: []string{"coredns"},
			Warnings: []string{"HostUnreachable(error=connection timed out)"},
		}},
		{"one control plane unreachable, one missing: etcd does not grow", func(in *Input) {
			in.loseHosts(cp3)
			in.emptyHosts(cp2)
			in.Is.Etcd.Members = append(in.Is.Etcd.Members,
				observed.Member{ID: "id-old", Name: "old", Healthy: observed.Yes})
		}, outcome{
			Route: fsm.Instruct,
			Warnings: []string{"HostUnreachable(error=connection timed out)",
				"OrphanMember(member=old (id-old), state=healthy)"},
		}},
		{"one control plane without SSH whose member lives: etcd may grow", func(in *Input) {
			in.Is.Hosts[cp3] = decidetest.Silent(in.Want.ControlPlane[2])
			in.emptyHosts(cp2)
		}, outcome{
			Route: fsm.Instruct, Also: []fsm.Route{fsm.Join}, Leader: cp1, Prepare: []string{cp2}, Joins: []string{cp2},
			Warnings: []string{"HostUnreachable(error=connection timed out)"},
		}},
		{"a broken control plane and a stopped worker", func(in *Input) {
			in.changeObserved(cp3, func(h *host) { h.APIServer = observed.No })
			in.changeObserved(w1, stop)
		}, outcome{Route: fsm.Instruct, Also: []fsm.Route{fsm.Repair}, Restarts: map[string][]string{w1: {"kubelet"}}}},
		{"only a broken source holds the PKI", func(in *Input) {
			in.Want = decidetest.Wanted(1, 1)
			in.Is.Etcd.Members = in.Is.Etcd.Members[:1]
			in.changeObserved(cp1, func(h *host) { h.Scheduler = observed.No })
			in.emptyHosts(w1)
		}, outcome{
			Route: fsm.Instruct, Also: []fsm.Route{fsm.Join}, Leader: cp1, Prepare: []string{w1}, Joins: []string{w1},
		}},
		{"an unreachable worker", func(in *Input) { in.loseHosts(w2) },
			outcome{Route: fsm.Instruct, Warnings: []string{"HostUnreachable(error=connection timed out)"}}},
		{"an unreachable worker outside the limit", func(in *Input) {
			in.loseHosts(w2)
			in.Limit = map[string]bool{w1: true}
		}, outcome{Route: fsm.Nothing, Warnings: []string{"HostUnreachable(error=connection timed out)"}}},
		{"quorum lost", func(in *Input) { in.loseHosts(cp2, cp3) }, outcome{
			Route:    fsm.DisasterRecovery,
			Warnings: slices.Repeat([]string{"HostUnreachable(error=connection timed out)"}, 2),
		}},
		{"quorum lost, and who is stopped has no data", func(in *Input) {
			in.changeObserved(cp1, func(h *host) { h.EtcdHealth, h.APIServer = observed.No, observed.No })
			for _, id := range []string{cp2, cp3} {
				in.changeObserved(id, func(h *host) {
					h.Kubelet.Active = false
					h.EtcdData, h.EtcdHealth, h.APIServer = observed.No, observed.No, observed.No
				})
			}
			in.Is.API, in.Is.Etcd = observed.API{}, observed.Etcd{}
		}, outcome{Route: fsm.DisasterRecovery}},
		{"the control plane is gone and workers are left", func(in *Input) {
			in.emptyHosts(cp1, cp2, cp3)
			in.Is.API, in.Is.Etcd = observed.API{}, observed.Etcd{}
		}, outcome{Route: fsm.DisasterRecovery}},

		{"upgrade", func(in *Input) { in.changeObserved(w2, func(h *host) { h.Kubelet.Version = "1.35.1" }) },
			outcome{Route: fsm.Upgrade, Upgrades: []string{w2}}},
		{"an upgrade that stopped half way", func(in *Input) {
			in.Want.KubernetesVersion = "1.36.4"
			in.setOlderVersion(cp1, "cp-1", "1.36.4")
		}, outcome{Route: fsm.Upgrade, Upgrades: []string{cp2, cp3, w1, w2}}},
		{"forced", func(in *Input) { in.ForceUpgrade = true },
			outcome{Route: fsm.Upgrade, Upgrades: []string{cp1, cp2, cp3, w1, w2}}},
		{"downgrade", func(in *Input) { in.Want.KubernetesVersion = "1.36.2" }, outcome{
			Route: fsm.Error, Problems: []string{"Downgrade(running=1.36.3, wanted=1.36.2)"},
		}},
		{"a skipped minor", func(in *Input) { in.Want.KubernetesVersion = "1.38.0" }, outcome{
			Route: fsm.Error, Problems: []string{"MinorSkipped(next=1.37, running=1.36.3, wanted=1.38.0)"},
		}},
		{"an unknown version", func(in *Input) { in.changeObserved(cp3, func(h *host) { h.APIServerVersion = "" }) },
			outcome{
				Route: fsm.Error, Problems: []string{"VersionsUnknown(hosts=cp-3)"},
			}},
		{"a version that is none runs", func(in *Input) {
			in.changeObserved(cp1,
				func(h *host) { h.Kubelet.Version = "dev" })
		},
			outcome{
				Route: fsm.Error, Problems: []string{"RunningVersionInvalid(version=dev)"},
			}},
		{"a version that is none runs on a worker", func(in *Input) {
			in.changeObserved(w1, func(h *host) { h.Kubelet.Version = "dev" })
		}, outcome{Route: fsm.Instruct, Warnings: []string{"RunningVersionInvalid(version=dev)"}}},
		{"another major version", func(in *Input) { in.Want.KubernetesVersion = "2.0.0" }, outcome{
			Route: fsm.Error, Problems: []string{"MajorVersionChange(running=1.36.3, wanted=2.0.0)"},
		}},
		{"drift", func(in *Input) {
			in.Config[w1] = map[string]string{"kubelet": "config-2", "unknown there": "x"}
			in.Config[cp1] = map[string]string{"kubelet": "config-1"}
		}, outcome{Route: fsm.Reconfigure, Drift: map[string][]string{w1: {"kubelet"}}}},
		{"other credentials", func(in *Input) {
			in.changeObserved(w1, func(h *host) {
				h.Credentials = []observed.Credential{{Of: "proxy credentials", Is: observed.CredentialOther}}
			})
		}, outcome{Route: fsm.Reconfigure, Drift: map[string][]string{w1: {"credentials"}}}},
		{"unknown credentials", func(in *Input) {
			in.changeObserved(w1, func(h *host) {
				h.Credentials = []observed.Credential{{Of: "proxy credentials", Is: observed.CredentialLeft}}
			})
		}, outcome{Route: fsm.Nothing}},
		{"drift outside the limit", func(in *Input) {
			in.Config[w1] = map[string]string{"kubelet": "config-2"}
			in.Limit = map[string]bool{w2: true}
		}, outcome{Route: fsm.Nothing}},
		{"no network plugin yet", func(in *Input) {
			delete(in.Is.API.Addons, "flannel")
			for i := range in.Is.API.Nodes {
				in.Is.API.Nodes[i].Ready = observed.No
			}
		}, outcome{Route: fsm.Resources, Addons: []string{"flannel"}}},
		{"labels, annotations and taints", func(in *Input) {
			in.Want.Workers[0].Labels = map[string]string{"zone": "a"}
			in.Want.Workers[1].Annotations = map[string]string{"old-": ""}
			in.nodeNamed("w-2").Annotations = map[string]string{"old": "1"}
			in.Want.ControlPlane[0].Taints = []desired.Taint{{Key: controlPlaneTaint, Effect: "NoSchedule"}}
			in.nodeNamed("cp-2").Taints = []observed.Taint{{Key: controlPlaneTaint, Effect: "NoSchedule"}}
		}, outcome{Route: fsm.Resources, Metadata: []string{cp1, cp2, w1, w2}}},
		{"labels, annotations and taints as they should be", func(in *Input) {
			in.Want.Workers[0].Labels = map[string]string{"zone": "a", "old-": ""}
			in.nodeNamed("w-1").Labels = map[string]string{"zone": "a", "of": "others"}
			in.Want.Workers[0].Taints = []desired.Taint{{Key: "gpu", Effect: "NoSchedule"}}
			in.nodeNamed("w-1").Taints = []observed.Taint{
				{Key: "gpu", Effect: "NoSchedule"},
				{Key: "of", Value: "others", Effect: "NoExecute"},
			}
		}, outcome{Route: fsm.Nothing}},
		{"a record of another manifest", func(in *Input) { in.Want.Digest = "manifest-2" },
			outcome{Route: fsm.Resources, Record: true}},
		{"hosts of Machines have other credentials", func(in *Input) {
			in.Is.API.Pool = &observed.Pool{Credentials: observed.No}
		}, outcome{Route: fsm.Resources, Record: true}},
		{"hosts of Machines have these credentials, or it is unknown", func(in *Input) {
			in.Is.API.Pool = &observed.Pool{Credentials: observed.Unknown}
		}, outcome{Route: fsm.Nothing}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := healthyCluster(3, 2)
			tt.change(&in)
			d := Decide(in)
			if diff := cmp.Diff(tt.want, outcomeOf(d)); diff != "" {
				t.Errorf("trace %v\n(-want +got):\n%s", d.Trace, diff)
			}
			if err := checkTrace(d); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDecideDoesNotChangeItsInput(t *testing.T) {
	t.Parallel()
	build := func() Input {
		in := healthyCluster(5, 2)
		in.loseHosts(cp2, cp3, w1)
		return in
	}
	in := build()
	first := Decide(in)
	if diff := cmp.Diff(build(), in); diff != "" {
		t.Errorf("input changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(first, Decide(in)); diff != "" {
		t.Errorf("deciding twice differs:\n%s", diff)
	}
}

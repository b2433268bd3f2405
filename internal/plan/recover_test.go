package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// clusterWithLostHosts returns a cluster of three and a worker whose named control-plane hosts are gone in the way
// given.
func clusterWithLostHosts(how func(desired.Host) observed.Host, names ...string) decide.Input {
	in := healthyCluster(3, 1)
	for _, name := range names {
		replaceHost(in, name, how)
		etcdOf(in, name, func(m *observed.Member) { m.Healthy = observed.No })
	}
	for i := range in.Is.Etcd.Members {
		in.Is.Etcd.Members[i].Healthy = observed.No // without a quorum there is no leader
	}
	for _, h := range in.Want.ControlPlane {
		changeHost(in, h.Hostname, func(is *observed.Host) {
			if is.EtcdHealth == observed.Yes {
				is.EtcdHealth, is.APIServer = observed.No, observed.No
			}
		})
	}
	in.Is.API = observed.API{Reached: observed.No}
	return in
}

// fencedHost returns a host on which a recovery has stopped etcd.
func fencedHost(h desired.Host) observed.Host {
	is := memberHost(h)
	is.Marker = &observed.Marker{Cluster: cluster, Role: string(h.Role), Fenced: "run-1"}
	is.KubeletConf, is.AdminConf, is.PKI, is.EtcdData, is.CAHash = observed.No, observed.No, observed.No, observed.No,
		""
	is.APIServer, is.EtcdHealth, is.ControllerManager, is.Scheduler = observed.Unknown, observed.Unknown,
		observed.Unknown, observed.Unknown
	is.Kubelet.Active, is.Healthz, is.Manifests, is.APIServerVersion = false, observed.Unknown, nil, ""
	return is
}

// restoringHost returns the host on which the cluster was to begin again when the run was killed.
func restoringHost(h desired.Host) observed.Host {
	is := memberHost(h)
	is.Marker = &observed.Marker{Cluster: cluster, Role: string(h.Role), Fenced: "run-1", Restoring: true}
	is.Kubelet.Active, is.Healthz, is.EtcdHealth, is.APIServer = false, observed.Unknown, observed.No, observed.No
	return is
}

func survivingHost() RecoverOptions { return RecoverOptions{Copy: Copy{From: step.SurvivingMember}} }

// backupOf returns a backup of the cluster that the other tests have.
func backupOf(mutate func(*Copy)) RecoverOptions {
	c := Copy{
		From: step.FullBackup, SHA256: "5a", About: "alpha.tar.age, revision 7, 9 keys", Cluster: cluster, CAHash: ca,
		KubernetesVersion: version,
		Members:           []observed.Member{{ID: "1", Name: "cp-1"}, {ID: "2", Name: "old-2"}},
	}
	if mutate != nil {
		mutate(&c)
	}
	return RecoverOptions{Copy: c}
}

func destroyed(o RecoverOptions, ids ...string) RecoverOptions {
	o.Destroyed = ids
	return o
}

func on(o RecoverOptions, id string) RecoverOptions {
	o.On = id
	return o
}

func TestRecoveriesOfKnownWorlds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in decide.Input
		o  RecoverOptions
	}{
		"recover-survivor": {clusterWithLostHosts(silentHost, "cp-2", "cp-3"),
			destroyed(survivingHost(), "192.0.0.2", "192.0.0.3")},
		"recover-fences": {func() decide.Input {
			in := clusterWithLostHosts(silentHost, "cp-3")
			replaceHost(in, "cp-2", func(h desired.Host) observed.Host {
				is := memberHost(h)
				is.EtcdHealth, is.APIServer, is.EtcdLost = observed.No, observed.No, "wal: crc mismatch"
				return is
			})
			return in
		}(), destroyed(survivingHost(), "192.0.0.3")},
		"recover-backup-on-empty-hosts": {clusterWithLostHosts(bareHost, "cp-1", "cp-2", "cp-3"), backupOf(nil)},
		"recover-from-a-fenced-host": {func() decide.Input {
			in := clusterWithLostHosts(fencedHost, "cp-2", "cp-3")
			replaceHost(in, "cp-1", restoringHost)
			return in
		}(), on(survivingHost(), "192.0.0.2")},
		"recover-goes-on": {func() decide.Input {
			in := clusterWithLostHosts(fencedHost, "cp-2", "cp-3")
			replaceHost(in, "cp-1", restoringHost)
			return in
		}(), survivingHost()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Recover(c.in, c.o)
			if err != nil {
				t.Fatal(err)
			}
			pinned(t, name, planText(p))
			if err := checkGraph(c.in, p, nil); err != nil {
				t.Error(err)
			}
			fencesComeFirst(t, p)
		})
	}
}

// A host that may still serve, by whatever sign, is fenced before it joins: no old etcd runs beside the new one.
func TestWhatMayStillServeIsFenced(t *testing.T) {
	t.Parallel()
	// emptied is a host that was a member, and on which nothing runs and no data is left.
	emptied := func(h *observed.Host) {
		h.EtcdData, h.EtcdHealth, h.APIServer, h.Manifests = observed.No, observed.No, observed.No, nil
		h.KubeletConf, h.AdminConf, h.PKI, h.CAHash = observed.No, observed.No, observed.No, ""
		h.Kubelet.Active, h.Healthz = false, observed.Unknown
	}
	for name, c := range map[string]struct {
		has    func(*observed.Host)
		fenced bool
	}{
		"nothing is left":          {func(*observed.Host) {}, false},
		"etcd's data":              {func(h *observed.Host) { h.EtcdData = observed.Yes }, true},
		"nobody can say what data": {func(h *observed.Host) { h.EtcdData = observed.Unknown }, true},
		"a static pod":             {func(h *observed.Host) { h.Manifests = []string{"etcd"} }, true},
		"a kubelet that runs":      {func(h *observed.Host) { h.Kubelet.Active = true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := clusterWithLostHosts(silentHost, "cp-3")
			replaceHost(in, "cp-2", memberHost)
			changeHost(in, "cp-2", emptied)
			changeHost(in, "cp-2", c.has)
			p, err := Recover(in, on(destroyed(survivingHost(), "192.0.0.3"), "192.0.0.1"))
			if err != nil {
				t.Fatal(err)
			}
			if _, fenced := p.Step("fence/cp-2"); fenced != c.fenced {
				t.Errorf("cp-2 is fenced: %t, want %t\n%s", fenced, c.fenced, planText(p))
			}
			fencesComeFirst(t, p)
		})
	}
}

// Edits of static pods are named if a recovery overwrites them, and only then.
func TestRecoveriesNameEditsThatAreNotTakenAlong(t *testing.T) {
	t.Parallel()
	const api, etcd = "/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/manifests/etcd.yaml"
	in := clusterWithLostHosts(silentHost, "cp-3")
	replaceHost(in, "cp-2", func(h desired.Host) observed.Host {
		is := memberHost(h)
		is.EtcdHealth, is.APIServer, is.EtcdLost = observed.No, observed.No, "wal: crc mismatch"
		return is
	})
	for _, name := range []string{"cp-1", "cp-2"} {
		changeHost(in, name, func(h *observed.Host) {
			h.Edited = []string{etcd, api}
			h.PodEdits = map[string][]string{api: {"--audit-log-path", "mountPath: /etc/audit"}}
		})
	}
	p, err := Recover(in, destroyed(survivingHost(), "192.0.0.3"))
	if err != nil {
		t.Fatal(err)
	}
	const says = "edits to static pods on %s are not carried over; they are kept there in " +
		"/var/lib/kubeone-old: %s"
	for _, want := range []string{
		fmt.Sprintf(says, "cp-1", etcd),
		fmt.Sprintf(says, "cp-2", etcd+"; "+api+" (--audit-log-path, mountPath: /etc/audit)"),
	} {
		if !slices.Contains(p.Notes, want) {
			t.Errorf("no note %q: %q", want, p.Notes)
		}
	}
}

// fencesComeFirst checks that the restore needs every fence.
func fencesComeFirst(t *testing.T, p Plan) {
	t.Helper()
	var restore Step
	for _, s := range p.Steps {
		if s.Intent.Kind == step.Restore {
			restore = s
		}
	}
	needs := strings.Join(restore.Needs, " ")
	for _, s := range p.Steps {
		if s.Intent.Kind == step.Fence && !strings.Contains(needs, s.ID) {
			t.Errorf("%s does not need %s", restore.ID, s.ID)
		}
	}
}

func TestRecoverRefuses(t *testing.T) {
	t.Parallel()
	gone := []string{"192.0.0.2", "192.0.0.3"}
	for name, c := range map[string]struct {
		in   decide.Input
		o    RecoverOptions
		says string
	}{
		"a quorum that is there": {healthyCluster(3, 1), survivingHost(), "etcd has quorum"},
		"voters that nobody knows of": {func() decide.Input {
			in := clusterWithLostHosts(silentHost)
			in.Is.Etcd = observed.Etcd{Reached: observed.No}
			for _, h := range in.Want.ControlPlane {
				changeHost(in, h.Hostname, func(is *observed.Host) { is.Kubelet.Active = false })
			}
			return in
		}(), survivingHost(), "run kubeone apply, which does this; if etcd then reports that it has no quorum"},
		"a host that nobody confirmed": {clusterWithLostHosts(silentHost, "cp-2", "cp-3"),
			destroyed(survivingHost(), gone[0]),
			"--confirm-destroyed cp-3"},
		"a confirmed host that answers": {clusterWithLostHosts(bareHost, "cp-2", "cp-3"),
			destroyed(survivingHost(), gone...),
			"cp-2 answers, so it is not destroyed"},
		"a backup of another name": {clusterWithLostHosts(silentHost, "cp-2", "cp-3"),
			destroyed(backupOf(func(c *Copy) { c.Cluster = "beta" }), gone...), `belongs to cluster "beta"`},
		"a backup of another CA": {clusterWithLostHosts(silentHost, "cp-2", "cp-3"),
			destroyed(backupOf(func(c *Copy) { c.CAHash = "sha256:bbbb" }), gone...),
			"to another cluster: its CA is sha256:bbbb"},
		"a backup of neither CA, while that is rotated": {func() decide.Input {
			in := clusterWithLostHosts(silentHost, "cp-2", "cp-3")
			changeAuthority(in, "cp-1", observed.ClusterCA, observed.Authority{Trusted: []string{"sha256:cccc", ca}})
			return in
		}(), destroyed(backupOf(func(c *Copy) { c.CAHash = "sha256:bbbb" }), gone...),
			"to another cluster: its CA is sha256:bbbb"},
		"a backup of another version": {clusterWithLostHosts(silentHost, "cp-2", "cp-3"),
			destroyed(backupOf(func(c *Copy) { c.KubernetesVersion = "1.35.4" }), gone...),
			"recover with the version that was running"},
		"a snapshot of strange members": {clusterWithLostHosts(silentHost, "cp-2", "cp-3"),
			destroyed(RecoverOptions{Copy: Copy{From: step.BareSnapshot, Members: []observed.Member{{Name: "x"}}}},
				gone...), "none of its etcd members (x)"},
		"a snapshot of another cp-1": {clusterWithLostHosts(silentHost, "cp-2", "cp-3"),
			destroyed(RecoverOptions{
				Copy: Copy{
					From:    step.BareSnapshot,
					Members: []observed.Member{{Name: "cp-1", PeerURLs: []string{"https://10.9.9.9:2380"}}},
				},
			}, gone...), "none of its etcd members (cp-1) has the name and the address"},
		"a snapshot of another CA": {clusterWithLostHosts(silentHost, "cp-2", "cp-3"),
			destroyed(RecoverOptions{Copy: Copy{From: step.BareSnapshot, CAHash: "sha256:bbbb", Members: ownMembers()}},
				gone...), "to another cluster: its CA is sha256:bbbb"},
		"a damaged survivor": {clusterWithDamagedHost(), destroyed(survivingHost(), gone...),
			"--host tries one anyway"},
		"fenced hosts only": {clusterWithLostHosts(fencedHost, "cp-1", "cp-2", "cp-3"), survivingHost(),
			"the data that a recovery has moved aside on cp-1, cp-2, cp-3, with --host"},
		"a snapshot where no host has the keys": {clusterWithLostHosts(bareHost, "cp-1", "cp-2", "cp-3"),
			RecoverOptions{Copy: Copy{From: step.BareSnapshot, Members: ownMembers()}}, "recover from a backup"},
		"a survivor where none is left": {clusterWithLostHosts(bareHost, "cp-1", "cp-2", "cp-3"), survivingHost(),
			"no control-plane host that answered holds etcd data"},
		"to restore on a worker": {clusterWithLostHosts(silentHost, "cp-2", "cp-3"),
			func() RecoverOptions { o := destroyed(survivingHost(), gone...); o.On = "192.0.1.1"; return o }(),
			"w-1 is not a control-plane host"},
		"a member that the manifest does not have": {addForeignMember(), destroyed(survivingHost(), gone...),
			"etcd lists old-4, and no control-plane host of the manifest is that"},
		"a host that the manifest calls a worker, and that has an etcd": {func() decide.Input {
			in := clusterWithLostHosts(silentHost, "cp-2", "cp-3")
			changeHost(in, "w-1", ofTheControlPlane)
			return in
		}(), destroyed(survivingHost(), gone...),
			"w-1 is a worker in the manifest, but has etcd data or an API server"},
		"a host that the manifest calls a worker, and that has an API server alone": {func() decide.Input {
			in := clusterWithLostHosts(silentHost, "cp-2", "cp-3")
			changeHost(in, "w-1", func(h *observed.Host) { h.Manifests = []string{"kube-apiserver"} })
			return in
		}(), destroyed(survivingHost(), gone...),
			"w-1 is a worker in the manifest, but has etcd data or an API server"},
		"a host that the manifest calls a worker, and that has an etcd whose data is not known": {func() decide.Input {
			in := clusterWithLostHosts(silentHost, "cp-2", "cp-3")
			changeHost(in, "w-1", func(h *observed.Host) {
				h.EtcdData, h.Manifests = observed.Unknown, []string{"etcd"}
			})
			return in
		}(), destroyed(survivingHost(), gone...),
			"w-1 is a worker in the manifest, but has etcd data or an API server"},
		"a host of another cluster": {func() decide.Input {
			in := clusterWithLostHosts(silentHost, "cp-2", "cp-3")
			changeHost(in, "cp-1", func(h *observed.Host) { h.Marker.Cluster = "beta" })
			return in
		}(), destroyed(survivingHost(), gone...), `belongs to cluster "beta"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Recover(c.in, c.o)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
			if len(p.Steps) > 0 {
				t.Errorf("and %d steps", len(p.Steps))
			}
		})
	}
}

// ofTheControlPlane makes a host one that had a member of etcd, and whose note of us is lost.
func ofTheControlPlane(is *observed.Host) {
	is.Marker, is.EtcdData, is.PKI, is.CAHash = nil, observed.Yes, observed.Yes, ca
	is.Manifests = []string{"etcd", "kube-apiserver"}
}

// A worker that could not be probed holds up no recovery, and is named: it may be what the manifest no longer says.
func TestWorkersThatCouldNotBeAskedAreNamed(t *testing.T) {
	t.Parallel()
	in := clusterWithLostHosts(silentHost, "cp-2", "cp-3")
	o := destroyed(survivingHost(), "192.0.0.2", "192.0.0.3")
	const unasked = "w-1 could not be checked for etcd data"
	for reach, want := range map[observed.Reach]bool{
		observed.Reached: false, observed.Unreachable: true, observed.Denied: true,
	} {
		changeHost(in, "w-1", func(h *observed.Host) { h.Reach = reach })
		p, err := Recover(in, o)
		if notes := strings.Join(p.Notes, "\n"); err != nil || strings.Contains(notes, unasked) != want {
			t.Errorf("%s: %v, %s", reach, err, notes)
		}
	}
}

// What a host has that is no host of this control plane holds up no recovery: a Machine's, whatever it says, and one
// with another cluster's data.
func TestNobodyElsesDataHoldsUpARecovery(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]func(in decide.Input){
		"a Machine's host": func(in decide.Input) {
			changeHost(in, "w-1", ofTheControlPlane)
			in.Want.Workers[0].Machine = "m-1"
		},
		"nothing but a note of what it was": func(in decide.Input) {
			changeHost(in, "w-1", func(is *observed.Host) { is.Marker.Role = string(desired.ControlPlane) })
		},
		"another cluster's data": func(in decide.Input) {
			changeHost(in, "w-1", ofTheControlPlane)
			changeHost(in, "w-1", func(is *observed.Host) { is.CAHash = "sha256:bbbb" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := clusterWithLostHosts(silentHost, "cp-2", "cp-3")
			what(in)
			if _, err := Recover(in, destroyed(survivingHost(), "192.0.0.2", "192.0.0.3")); err != nil {
				t.Error(err)
			}
		})
	}
}

// ownMembers returns those that a snapshot of the tests' cluster has.
func ownMembers() []observed.Member { return healthyCluster(3, 1).Is.Etcd.Members }

// clusterWithDamagedHost returns a cluster whose only host that is left has no use of its data.
func clusterWithDamagedHost() decide.Input {
	in := clusterWithLostHosts(silentHost, "cp-2", "cp-3")
	changeHost(in, "cp-1", func(h *observed.Host) { h.EtcdLost = "wal: crc mismatch" })
	return in
}

// addForeignMember has a member whose host the manifest has not.
func addForeignMember() decide.Input {
	in := clusterWithLostHosts(silentHost, "cp-2", "cp-3")
	in.Is.Etcd.Members = append(in.Is.Etcd.Members,
		observed.Member{ID: "4", Name: "old-4", PeerURLs: []string{"https://10.9.9.9:2380"}, Healthy: observed.No})
	return in
}

// twoOfFive returns a cluster of five hosts with only cp-4 and cp-5 left, and options to recover it.
func twoOfFive() (decide.Input, RecoverOptions) {
	in := healthyCluster(5, 0)
	for _, name := range []string{"cp-1", "cp-2", "cp-3"} {
		replaceHost(in, name, silentHost)
	}
	for i := range in.Is.Etcd.Members {
		in.Is.Etcd.Members[i].Healthy = observed.No
	}
	for _, name := range []string{"cp-4", "cp-5"} {
		changeHost(in, name, func(h *observed.Host) { h.EtcdHealth, h.APIServer = observed.No, observed.No })
	}
	in.Is.API.Reached = observed.No
	return in, destroyed(survivingHost(), "192.0.0.1", "192.0.0.2", "192.0.0.3")
}

// If several hosts are left, the data that has progressed furthest is the newest.
func TestTheNewestDataIsChosen(t *testing.T) {
	t.Parallel()
	in, o := twoOfFive()
	o.Progress = map[string]Progress{"192.0.0.4": {Revision: 10}, "192.0.0.5": {Revision: 11}}
	p, err := Recover(in, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Step("restore/cp-5"); !ok {
		t.Error("the restore is not on cp-5")
	}
	if _, ok := p.Step("fence/cp-4"); !ok {
		t.Error("cp-4 is not fenced")
	}
}

// No host is chosen as long as another one may have newer data, unless that data is damaged or of an earlier epoch.
func TestDataThatMayBeOlderIsNotChosen(t *testing.T) {
	t.Parallel()
	const four, five = "192.0.0.4", "192.0.0.5"
	runs := func(revision int64) Progress { return Progress{Revision: revision} }
	stopped := func(revision int64) Progress { return Progress{Revision: revision, AtLeast: true} }
	said := func(a, b Progress) func(decide.Input, *RecoverOptions) {
		return func(_ decide.Input, o *RecoverOptions) { o.Progress = map[string]Progress{four: a, five: b} }
	}
	for name, c := range map[string]struct {
		change func(decide.Input, *RecoverOptions)
		on     string // "" for a refusal
		says   string // part of the refusal, or of a note
	}{
		"both are silent": {func(decide.Input, *RecoverOptions) {}, "",
			"cp-4 does not report its revision; cp-5 does not report"},
		"one was chosen": {func(_ decide.Input, o *RecoverOptions) { o.On = five }, "restore/cp-5",
			"cp-4 may have newer data"},
		"one is silent": {func(_ decide.Input, o *RecoverOptions) {
			o.Progress = map[string]Progress{five: {Revision: 9}}
		}, "", "cp-4 does not report its revision; cp-5 has revision 9"},
		"the one that does not run has more": {said(stopped(900), runs(800)), "restore/cp-4", ""},
		"as much, and maybe more":            {said(stopped(800), runs(800)), "restore/cp-4", ""},
		"a little less on its disk, maybe not so": {said(stopped(700), runs(800)), "",
			"or slightly more"},
		"much less": {said(stopped(700), runs(20_000)), "restore/cp-5", ""},
		"neither runs, and they are close": {said(stopped(700), stopped(800)), "",
			"revision 700 on disk"},
		"neither runs, and one is far ahead": {said(stopped(700), stopped(20_000)), "restore/cp-5", ""},
		"one is damaged": {func(in decide.Input, _ *RecoverOptions) {
			changeHost(in, "cp-4", func(h *observed.Host) { h.EtcdLost = "no wal" })
		}, "restore/cp-5", ""},
		"one is of another life": {func(in decide.Input, _ *RecoverOptions) {
			changeHost(in, "cp-5", func(h *observed.Host) { h.Marker.Epoch = 1 })
		}, "restore/cp-5", ""},
	} {
		in, o := twoOfFive()
		c.change(in, &o)
		p, err := Recover(in, o)
		if c.on == "" {
			if err == nil || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "choose a host with --host") {
				t.Errorf("%s: error %v", name, err)
			}
			continue
		}
		if _, ok := p.Step(c.on); err != nil || !ok || !strings.Contains(strings.Join(p.Notes, "\n"), c.says) {
			t.Errorf("%s: no %s, error %v, notes %q", name, c.on, err, p.Notes)
		}
	}
}

// A recovery beside a cluster that serves would make two of it, whatever this machine can see of etcd.
func TestNothingIsRecoveredWhileAnybodyServes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*decide.Input)
		serves bool
	}{
		"nobody": {func(*decide.Input) {}, false},
		"a member says so": {func(in *decide.Input) {
			changeHost(*in, "cp-4", func(h *observed.Host) { h.EtcdHealth = observed.Yes })
		}, true},
		"an API server answers": {func(in *decide.Input) {
			in.Is.API.Reached, in.Is.API.Via = observed.Yes, "192.0.0.5"
		}, true},
		"one of another life": {func(in *decide.Input) {
			changeHost(*in, "cp-4", func(h *observed.Host) { h.EtcdHealth = observed.Yes })
			changeHost(*in, "cp-5", func(h *observed.Host) { h.Marker.Epoch = 1 })
		}, false},
		"where this recovery goes on": {func(in *decide.Input) {
			changeHost(*in, "cp-4", func(h *observed.Host) {
				h.EtcdHealth = observed.Yes
				h.Marker.Restoring, h.Marker.Complete, h.Marker.Fenced = true, false, "run-1"
			})
			changeHost(*in, "cp-5", func(h *observed.Host) { h.Marker.Complete, h.Marker.Fenced = false, "run-1" })
		}, false},
	} {
		in, o := twoOfFive()
		o.On = "192.0.0.4"
		c.change(&in)
		_, err := Recover(in, o)
		if refused := err != nil && strings.Contains(err.Error(), "reports that it is serving"); refused != c.serves {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Where no host in the manifest serves, others may: the endpoint leads to them.
func TestNothingIsRecoveredBesideAClusterThatOthersServe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		readyAt string
		begun   observed.Tri // an API server answers where the recovery has begun; Unknown where none has
		refused bool
	}{
		"nobody answers there":             {"", observed.Unknown, false},
		"somebody is ready":                {"192.0.2.9:6443", observed.Unknown, true},
		"the recovery that goes on there":  {"192.0.2.9:6443", observed.Yes, false},
		"others, before it comes that far": {"192.0.2.9:6443", observed.No, true},
	} {
		in, o := twoOfFive()
		o.On = "192.0.0.4"
		in.Is.API.ReadyAt = c.readyAt
		changeHost(in, "cp-4", func(h *observed.Host) {
			if c.begun != observed.Unknown {
				h.APIServer = c.begun
				h.Marker.Restoring, h.Marker.Complete, h.Marker.Fenced = true, false, "run-1"
			}
		})
		_, err := Recover(in, o)
		if refused := err != nil && strings.Contains(err.Error(), "a second cluster next to a working one"); refused !=
			c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Where etcd does not say who its members are, their databases do: one that the manifest does not have may have agreed
// upon more with who is gone. That a worker calls itself by its name says nothing of it.
func TestMembersOnADiskAreAccountedFor(t *testing.T) {
	t.Parallel()
	told := func(name string, last int) observed.Member {
		return observed.Member{
			ID: name, Name: name, PeerURLs: []string{fmt.Sprintf("https://192.0.0.%d:2380", last)},
		}
	}
	for name, c := range map[string]struct {
		members []observed.Member
		confirm []string
		want    string // part of the refusal; "" for none
	}{
		"the manifest's":       {[]observed.Member{told("cp-1", 1), told("cp-2", 2)}, nil, ""},
		"one by its address":   {[]observed.Member{told("cp-old", 3)}, nil, ""},
		"one that is not":      {[]observed.Member{told("cp-1", 1), told("cp-9", 9)}, nil, "--confirm-destroyed cp-9"},
		"one that is not, yes": {[]observed.Member{told("cp-1", 1), told("cp-9", 9)}, []string{"cp-9"}, ""},
		"one without a name":   {[]observed.Member{told("", 9)}, nil, ""}, // it has never started
		"a worker by now":      {[]observed.Member{told("w-1", 9)}, nil, ""},
		"by a worker's word":   {[]observed.Member{told("cp-8", 9)}, nil, "--confirm-destroyed cp-8"},
	} {
		in := clusterWithLostHosts(bareHost, "cp-2", "cp-3")
		if name == "by a worker's word" {
			changeHost(in, "w-1", func(is *observed.Host) { is.Hostname = "cp-8" })
			in.Want.Workers[0].Hostname = ""
		}
		in.Is.Etcd, in.Is.API = observed.Etcd{Reached: observed.No}, observed.API{Reached: observed.No}
		changeHost(in, "cp-1", func(is *observed.Host) {
			is.EtcdHealth, is.APIServer = observed.No, observed.No
			is.Certificates = []observed.Certificate{{Name: "etcd/server", Expired: true}}
		})
		o := destroyed(survivingHost(), c.confirm...)
		o.Progress = map[string]Progress{"192.0.0.1": {Revision: 9, Members: c.members}}
		p, err := Recover(in, o)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		_, dropped := p.Step("delete-node/cp-9")
		if _, worker := p.Step("delete-node/w-1"); dropped != (c.confirm != nil) || worker {
			t.Errorf("%s: the Node goes: %t, the worker's: %t", name, dropped, worker)
		}
	}
}

// Backups list members, too. If no source lists them, the plan asks the operator to make sure.
func TestMembersInABackupAreAccountedFor(t *testing.T) {
	t.Parallel()
	in := clusterWithLostHosts(bareHost, "cp-1", "cp-2", "cp-3")
	in.Is.Etcd, in.Is.API = observed.Etcd{}, observed.API{}
	o := backupOf(nil)
	if _, err := Recover(in, o); err == nil || !strings.Contains(err.Error(), "--confirm-destroyed old-2") {
		t.Errorf("the backup's stranger: %v", err)
	}
	o = destroyed(o, "old-2")
	p, err := Recover(in, o)
	if _, dropped := p.Step("delete-node/old-2"); err != nil || !dropped {
		t.Errorf("confirmed: %v, the Node goes: %t", err, dropped)
	}
	const unknown = "the former etcd members are not known"
	if notes := strings.Join(p.Notes, "\n"); strings.Contains(notes, unknown) {
		t.Errorf("the backup says it: %s", notes)
	}
	o.Copy.Members = nil
	if p, err = Recover(in, o); err != nil || !strings.Contains(strings.Join(p.Notes, "\n"), unknown) {
		t.Errorf("it is not said: %v, %q", err, p.Notes)
	}
}

// Etcd's list is not known where certificates have expired: who has nothing left may have been a voter.
func TestAHostThatIsAloneWithExpiredCertificatesIsRecovered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gone []string
		lost bool
	}{"two of three are empty": {[]string{"cp-2", "cp-3"}, true}, "one of three is": {[]string{"cp-3"}, false}} {
		in := clusterWithLostHosts(bareHost, c.gone...)
		in.Is.Etcd = observed.Etcd{Reached: observed.No}
		in.Is.API = observed.API{Reached: observed.No}
		for _, h := range in.Want.ControlPlane[:3-len(c.gone)] {
			changeHost(in, h.Hostname, func(is *observed.Host) {
				is.EtcdHealth, is.APIServer = observed.No, observed.No
				is.Certificates = []observed.Certificate{{Name: "etcd/server", Expired: true}}
			})
		}
		o := survivingHost()
		o.Progress = map[string]Progress{"192.0.0.1": {Revision: 9}, "192.0.0.2": {Revision: 8}}
		if _, err := Recover(in, o); (err == nil) != c.lost {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// With certificates that have run out a control plane comes back as well; with a CA that has, nothing would.
func TestARecoveryRenewsWhatHasExpired(t *testing.T) {
	t.Parallel()
	in, o := twoOfFive()
	in.Want.Workers = healthyCluster(1, 2).Want.Workers
	for _, w := range in.Want.Workers {
		in.Is.Hosts[w.ID] = memberHost(w)
	}
	o.On = "192.0.0.4"
	expire := func(name, certificate string) {
		changeHost(in, name, func(h *observed.Host) {
			h.Certificates = append(slices.Clone(h.Certificates),
				observed.Certificate{Name: certificate, Expired: true})
		})
	}
	expire("cp-4", "apiserver")
	expire("cp-4", "kubelet-client")
	expire("w-1", "kubelet-client")
	p, err := Recover(in, o)
	if err != nil {
		t.Fatal(err)
	}
	restore, _ := p.Step("restore/cp-4")
	renewed, _ := p.Step("regenerate/w-1")
	ready, _ := p.Step("node-ready/w-1")
	if _, other := p.Step("regenerate/w-2"); other || !step.ParamsOf[step.RestoreParams](restore.Intent).Kubelet ||
		!slices.Contains(renewed.Needs, "restore/cp-4") || !slices.Contains(ready.Needs, "regenerate/w-1") {
		t.Errorf("restore %+v, regenerate %+v, ready %+v", restore.Intent, renewed, ready)
	}
	expire("cp-4", "etcd/ca")
	if _, err := Recover(in, o); err == nil || !strings.Contains(err.Error(), "the CA has expired (etcd/ca)") {
		t.Errorf("with an expired CA: %v", err)
	}
}

// The new life is later than any that a host, the copy or a revision tells of, so that no old member's
// revisions are ahead.
func TestTheNewLifeIsTheLatest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   decide.Input
		o    RecoverOptions
		want int
	}{
		"nobody knows of any": {clusterWithLostHosts(bareHost, "cp-1", "cp-2", "cp-3"), backupOf(nil), 1},
		"the backup says so": {clusterWithLostHosts(bareHost, "cp-1", "cp-2", "cp-3"),
			backupOf(func(c *Copy) { c.Epoch = 2 }), 3},
		"its revision says so": {clusterWithLostHosts(bareHost, "cp-1", "cp-2", "cp-3"),
			backupOf(func(c *Copy) { c.Revision = 4_000_000_100 }), 5},
		"a host says so": {func() decide.Input {
			in := clusterWithLostHosts(bareHost, "cp-2", "cp-3")
			changeHost(in, "cp-1", func(h *observed.Host) { h.Marker.Epoch = 6 })
			return in
		}(), backupOf(func(c *Copy) { c.Epoch = 2 }), 7},
	} {
		p, err := Recover(c.in, c.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := Epoch(p, c.in.Want, c.in.Is); got != c.want {
			t.Errorf("%s: epoch %d, want %d", name, got, c.want)
		}
	}
}

// Killed after the restore, apply finishes the joins; a host that was only cut off is set aside and joins too.
func TestApplyFinishesARecovery(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	changeHost(in, "cp-1", func(h *observed.Host) { h.Marker.Epoch = 1 })
	replaceHost(in, "cp-2", fencedHost)
	changeHost(in, "cp-3", func(h *observed.Host) { h.EtcdHealth, h.APIServer = observed.No, observed.No })
	in.Is.Etcd.Members = in.Is.Etcd.Members[:1]
	p, decisions := Build(Input{Decide: in})
	if p.Blocked != "" || p.Again != "" || len(p.Operator) > 0 {
		t.Errorf("blocked %q, again %q, operator %v; first route %s", p.Blocked, p.Again, p.Operator,
			decisions[0].Route)
	}
	for _, want := range []string{"quarantine/cp-3", "join-etcd/cp-2", "join-etcd/cp-3"} {
		if _, ok := p.Step(want); !ok {
			t.Errorf("no step %s in\n%s", want, planText(p))
		}
	}
}

// Before the restore, apply does nothing but say how the recovery continues; above all it makes no new cluster.
func TestApplyDoesNotDisturbARecovery(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]func(desired.Host) observed.Host{
		"restoring": restoringHost,
		"bare":      bareHost,
		"fenced":    fencedHost,
	} {
		in := clusterWithLostHosts(fencedHost, "cp-2", "cp-3")
		in.Want.Workers = nil
		replaceHost(in, "cp-1", target)
		in.Is.API, in.Is.Etcd = observed.API{}, observed.Etcd{}
		p, decisions := Build(Input{Decide: in})
		if decisions[0].Route != fsm.DisasterRecovery || len(p.Steps) > 0 {
			t.Errorf("%s: route %s, steps\n%s", name, decisions[0].Route, planText(p))
		}
	}
}

// While the cluster CA is rotated, a backup is taken of any of those that the hosts trust.
func TestABackupFromTheMiddleOfARotation(t *testing.T) {
	t.Parallel()
	in := clusterWithLostHosts(silentHost, "cp-2", "cp-3")
	changeAuthority(in, "cp-1", observed.ClusterCA, observed.Authority{Trusted: []string{"sha256:next", ca}})
	o := backupOf(func(c *Copy) { c.CAHash = "sha256:next" })
	o.Destroyed = []string{in.Want.ControlPlane[1].ID, in.Want.ControlPlane[2].ID}
	if _, err := Recover(in, o); err != nil {
		t.Error(err)
	}
}

// What a worker calls itself holds up no recovery, also where no control-plane host is left.
func TestAWorkersNameHoldsUpNoRecovery(t *testing.T) {
	t.Parallel()
	in := clusterWithLostHosts(bareHost, "cp-2", "cp-3")
	in.Is.Etcd, in.Is.API = observed.Etcd{Reached: observed.No}, observed.API{Reached: observed.No}
	replaceHost(in, "cp-1", bareHost)
	changeHost(in, "w-1", func(is *observed.Host) { is.Hostname = "localhost" })
	in.Want.Workers[0].Hostname = ""
	p, err := Recover(in, RecoverOptions{Copy: Copy{From: step.FullBackup, Cluster: cluster}})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Host == in.Want.Workers[0].ID }) {
		t.Errorf("it waits for the worker:\n%s", planText(p))
	}
}

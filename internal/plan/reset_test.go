package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"

	"github.com/google/go-cmp/cmp"
)

func TestResetPlans(t *testing.T) {
	t.Parallel()
	full, _ := fullWorker()
	for name, c := range map[string]struct {
		world decide.Input
		ids   []string
	}{
		"reset-whole":             {wholeWithGaps(), nil},
		"reset-full-worker":       {full, nil},
		"reset-worker":            {healthyCluster(1, 2), []string{"192.0.1.2"}},
		"reset-control-plane":     {healthyCluster(3, 0), []string{"192.0.0.2"}},
		"reset-two-control-plane": {healthyCluster(5, 0), []string{"192.0.0.2", "192.0.0.3"}},
		"reset-half-joined":       {halfJoined(), []string{"192.0.0.3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Reset(c.world, ResetOptions{Hosts: c.ids})
			if err != nil {
				t.Fatal(err)
			}
			pinned(t, name, planText(p))
			if err := checkGraph(c.world, p, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// wholeWithGaps returns a cluster with a host that does not answer, a bare one, and one with a foreign container
// runtime.
func wholeWithGaps() decide.Input {
	in := healthyCluster(1, 4, "w-2", "w-3")
	replaceHost(in, "w-1", silentHost)
	changeHost(in, "w-3", func(h *observed.Host) { h.Containerd = observed.Unit{Installed: true, Active: true} })
	replaceHost(in, "w-4", begunHost)
	return in
}

func TestRefusedResets(t *testing.T) {
	t.Parallel()
	twoDead := healthyCluster(5, 0)
	for _, name := range []string{"cp-4", "cp-5"} {
		replaceHost(twoDead, name, silentHost)
		etcdOf(twoDead, name, func(m *observed.Member) { m.Healthy = observed.No })
	}
	oneDead := healthyCluster(5, 0)
	replaceHost(oneDead, "cp-5", silentHost)
	etcdOf(oneDead, "cp-5", func(m *observed.Member) { m.Healthy = observed.No })
	gone := healthyCluster(1, 1)
	gone.Is.API = observed.API{Reached: observed.No}
	dark := healthyCluster(3, 0)
	dark.Is.Etcd = observed.Etcd{Reached: observed.No, Problem: "timed out"}
	unfinished := halfJoined()
	changeHost(unfinished, "cp-3", func(h *observed.Host) { h.EtcdData = observed.Unknown })
	unfinished.Is.API, unfinished.Is.Etcd = observed.API{Reached: observed.No}, observed.Etcd{Reached: observed.No}
	alone := unfinished
	alone.Is.Etcd = halfJoined().Is.Etcd
	elsewhere := healthyCluster(1, 1)
	changeHost(elsewhere, "w-1", func(h *observed.Host) {
		h.Marker = &observed.Marker{Cluster: "beta",
			Complete: true}
	})
	machines := healthyCluster(1, 1)
	changeHost(machines, "w-1", func(h *observed.Host) {
		m := *h.Marker
		m.ID, m.Machine = "uid-1", "kube-system/pool-1"
		h.Marker = &m
	})
	strange := healthyCluster(1, 1, "w-1")
	replaceHost(strange, "w-1", foreign)
	for _, c := range []struct {
		name  string
		world decide.Input
		ids   []string
		says  string
	}{
		{"the quorum would be lost", twoDead, []string{"192.0.0.1"}, "must not leave"},
		{"the quorum would be lost by the second", oneDead, []string{"192.0.0.1", "192.0.0.2", "192.0.0.3"},
			"cp-3 must not leave"},
		{"the last member", healthyCluster(1, 0), []string{"192.0.0.1"},
			"cp-1 is the last control-plane host, so the cluster would end with it; if you intend this, use " +
				"kubeone reset without --host"},
		{"no etcd, host reached", dark, []string{"192.0.0.2"},
			"it is unknown whether etcd keeps quorum without cp-2: timed out"},
		{"unfinished join, no API", unfinished, []string{"192.0.0.3"},
			"it is unknown whether etcd keeps quorum without cp-3: no etcd member was reached"},
		{"unfinished join, no API, but etcd", alone, []string{"192.0.0.3"}, "the cluster API does not answer"},
		{"a host that does not answer", oneDead, []string{"192.0.0.5"}, "connection timed out"},
		{"the API does not answer", gone, []string{"192.0.1.1"}, "reset without --host"},
		{"another cluster's host", elsewhere, nil, `belongs to cluster "beta"`},
		{"a Machine's host", machines, []string{"192.0.1.1"}, "kubectl -n kube-system delete machine pool-1"},
		{"data of unknown origin", strange, nil, "unknown origin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Reset(c.world, ResetOptions{Hosts: c.ids})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
		})
	}
}

// Without etcd data there is no vote to lose.
func TestAHostWithoutDataIsResetAlsoWhenNothingAnswers(t *testing.T) {
	t.Parallel()
	in := halfJoined()
	changeHost(in, "cp-3", func(h *observed.Host) { h.EtcdData = observed.No })
	in.Is.API, in.Is.Etcd = observed.API{Reached: observed.No}, observed.Etcd{Reached: observed.No}
	p, err := Reset(in, ResetOptions{Hosts: []string{"192.0.0.3"}})
	if err != nil || len(p.Steps) != 1 || p.Steps[0].Intent.Kind != step.ResetHost {
		t.Errorf("%v\n%s", err, planText(p))
	}
}

func TestNodesLeaveAsTheManifestWantsThemDrained(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 2)
	grace := 30 * time.Second
	in.Want.Upgrade.Drain = desired.Drain{Timeout: time.Minute, GracePeriod: &grace, OnTimeout: desired.DrainForce}
	p, err := Reset(in, ResetOptions{Hosts: []string{"192.0.1.2"}})
	if err != nil {
		t.Fatal(err)
	}
	seconds := 30
	if diff := cmp.Diff(step.DrainNodeParams{
		TimeoutSeconds: 60,
		GraceSeconds:   &seconds,
		OnTimeout:      step.ForceOnTimeout,
	}, p.Steps[0].Intent.Params); diff != "" {
		t.Error(diff)
	}
}

func TestResetNamesEveryHostThatItRefuses(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 2)
	for _, name := range []string{"w-1", "w-2"} {
		changeHost(in, name, func(h *observed.Host) { h.Marker = &observed.Marker{Cluster: "beta"} })
	}
	_, err := Reset(in, ResetOptions{})
	if err == nil || !strings.Contains(err.Error(), "w-1") || !strings.Contains(err.Error(), "w-2") {
		t.Errorf("got %v", err)
	}
}

// Copies of one disk image have one name.
func TestHostsOfOneNameAreResetOneByOne(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 2)
	for i := range in.Want.Workers {
		in.Want.Workers[i].Hostname = ""
		changeHost(in, in.Want.Workers[i].ID, func(h *observed.Host) { h.Hostname = "localhost" })
	}
	p, err := Reset(in, ResetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var hosts []string
	for _, s := range p.Steps {
		hosts = append(hosts, s.Host)
	}
	slices.Sort(hosts)
	if diff := cmp.Diff([]string{"192.0.0.1", "192.0.1.1", "192.0.1.2"}, hosts); diff != "" {
		t.Error(diff)
	}
	if err := checkGraph(in, p, nil); err != nil {
		t.Error(err)
	}
}

func TestControlPlaneHostsLeaveOneAfterTheOther(t *testing.T) {
	t.Parallel()
	p, err := Reset(healthyCluster(5, 0), ResetOptions{Hosts: []string{"192.0.0.2", "192.0.0.3"}})
	if err != nil {
		t.Fatal(err)
	}
	second, _ := p.Step("drain-node/cp-3")
	if diff := cmp.Diff([]string{"delete-node/cp-2"}, second.Needs); diff != "" {
		t.Error(diff)
	}
}

func TestOneOfSeveralNodes(t *testing.T) {
	t.Parallel()
	world := step.World{Input: decide.Input{Is: observed.World{API: observed.API{Nodes: []observed.Node{{Name: "b"}}}}}}
	b := &builder{names: map[string]string{"1": "a"}, world: &world}
	if n, found := b.findNode(desired.Host{ID: "1"}); found {
		t.Errorf("found %+v", n)
	}
}

// What was kept is deleted only on request, by name, and after the reset that keeps more.
func TestWhatHostsKeepGoesOnlyWithPurge(t *testing.T) {
	t.Parallel()
	const old = "/var/lib/kubeone-old/20261101T101112Z"
	in := healthyCluster(3, 1)
	changeHost(in, "cp-2", func(h *observed.Host) { h.Kept = []string{old} })
	p, err := Reset(in, ResetOptions{Hosts: []string{"192.0.0.2"}})
	if _, planned := p.Step("purge/cp-2"); err != nil || planned || len(p.Notes) != 1 ||
		!strings.Contains(p.Notes[0], "cp-2 keeps "+old) {
		t.Errorf("%v\n%s", err, planText(p))
	}
	p, err = Reset(in, ResetOptions{Hosts: []string{"192.0.0.2"}, Purge: true})
	s, planned := p.Step("purge/cp-2")
	if err != nil || !planned || !slices.Contains(s.Needs, "delete-node/cp-2") || s.Changes[0] != old ||
		len(s.Changes) != 2 || s.Intent.Disrupts() != quorum.Purge {
		t.Errorf("%v\n%s", err, planText(p))
	}
	p, err = Reset(in, ResetOptions{Purge: true})
	for _, name := range []string{"cp-1", "cp-2", "cp-3"} {
		s, planned := p.Step("purge/" + name)
		if err != nil || !planned || s.Intent.Disrupts() != quorum.NoDisruption {
			t.Errorf("%s: %v\n%s", name, err, planText(p))
		}
	}
	if _, planned := p.Step("purge/w-1"); planned {
		t.Errorf("a worker keeps nothing\n%s", planText(p))
	}
	in.Is.Hosts["192.0.0.2"] = bareHost(in.Want.ControlPlane[1])
	changeHost(in, "cp-2", func(h *observed.Host) { h.Kept = []string{old} })
	for i, m := range in.Is.Etcd.Members {
		if m.Name != "cp-2" {
			in.Is.Etcd.Members[i].Healthy = observed.No
		}
	}
	p, err = Reset(in, ResetOptions{Hosts: []string{"192.0.0.2"}, Purge: true})
	if err == nil || !strings.Contains(err.Error(), "may be needed") {
		t.Errorf("without a quorum it may be the only copy: %v\n%s", err, planText(p))
	}
}

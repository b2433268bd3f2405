package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
	"kubeone/internal/testutil/decidetest"
)

// clusterWithMachines returns a cluster with a MachineDeployment of two Machines, one of them a Node, a host whose
// Machine is gone, and one that is free.
func clusterWithMachines() decide.Input {
	in := healthyCluster(1, 1)
	machine := func(name, host string) observed.Machine {
		return observed.Machine{
			Namespace: "kube-system", Name: name, Owner: "MachineDeployment pool", Provider: "ssh", Node: host,
			Host: host,
		}
	}
	in.Is.API.Pool = &observed.Pool{
		Controllers: observed.Yes, Sets: 1,
		Deployments: []observed.MachineDeployment{{Namespace: "kube-system", Name: "pool", Replicas: 2}},
		Machines:    []observed.Machine{machine("pool-a-1", "m-1"), machine("pool-a-2", "")},
		Hosts: []observed.PoolHost{
			{Name: "m-1", Address: "198.51.100.1", State: "Joined", Machine: "kube-system/pool-a-1"},
			{Name: "m-2", Address: "198.51.100.2", State: "Returning", Machine: "kube-system/pool-b-1"},
			{Name: "m-3", Address: "198.51.100.3", State: "Free"},
		},
	}
	in.Is.API.Nodes = append(in.Is.API.Nodes, observed.Node{Name: "m-1", Ready: observed.Yes, KubeletVersion: "1.36.3"})
	in.Is.API.Pods = decidetest.Pods(in.Want, in.Is.API.Nodes)
	return in
}

// withPool returns that cluster with another pool.
func withPool(change func(*observed.Pool)) decide.Input {
	in := clusterWithMachines()
	change(in.Is.API.Pool)
	return in
}

func TestResetPlansWithMachines(t *testing.T) {
	t.Parallel()
	silent := clusterWithMachines()
	silent.Is.API.Reached, silent.Is.API.Pool = observed.No, nil
	for name, c := range map[string]struct {
		world decide.Input
		o     ResetOptions
	}{
		"reset-machines":           {clusterWithMachines(), ResetOptions{}},
		"reset-machines-abandoned": {clusterWithMachines(), ResetOptions{AbandonMachines: true}},
		"reset-machines-not-seen":  {silent, ResetOptions{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Reset(c.world, c.o)
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

// Nothing of the cluster is touched before the hosts of its Machines are back.
func TestEveryStepOfAResetWaitsForTheHostsOfMachines(t *testing.T) {
	t.Parallel()
	p, err := Reset(clusterWithMachines(), ResetOptions{Purge: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps {
		switch s.Intent.Kind {
		case step.DeleteMachines:
		case step.AwaitHosts:
			if !slices.Contains(s.Needs, string(step.DeleteMachines)) {
				t.Errorf("%s needs %v", s.ID, s.Needs)
			}
		default:
			if !slices.Contains(s.Needs, string(step.AwaitHosts)) {
				t.Errorf("%s needs %v", s.ID, s.Needs)
			}
		}
	}
	if len(p.Steps) < 4 {
		t.Errorf("%d steps", len(p.Steps))
	}
}

func TestWhatIsDoneAboutMachines(t *testing.T) {
	t.Parallel()
	noController := func(change func(*observed.Pool)) decide.Input {
		return withPool(func(p *observed.Pool) {
			p.Controllers = observed.No
			change(p)
		})
	}
	cloud := func(p *observed.Pool) { p.Machines[0].Provider, p.Machines[0].Host, p.Hosts = "aws", "", nil }
	for _, c := range []struct {
		name    string
		world   decide.Input
		o       ResetOptions
		steps   []step.Kind // about Machines
		refused string
		notes   []string
	}{
		{name: "all", world: clusterWithMachines(), steps: []step.Kind{step.DeleteMachines, step.AwaitHosts}},
		{
			name: "no controllers", world: noController(func(*observed.Pool) {}),
			refused: "Machine hosts (2) must be returned first, but kubeone controller has not been " +
				"active in the last seconds: m-1 (Machine kube-system/pool-a-1) and " +
				"m-2 (Machine kube-system/pool-b-1); start kubeone controller; or reset with --abandon-machines, " +
				"which leaves these hosts as they are",
		},
		{
			name: "no controllers, and abandoned", world: noController(func(*observed.Pool) {}),
			o:     ResetOptions{AbandonMachines: true},
			notes: []string{"stay as they are: m-1 (Machine kube-system/pool-a-1) and m-2"},
		},
		{
			name: "only a host that was not returned", world: withPool(func(p *observed.Pool) {
				p.Deployments, p.Machines, p.Sets, p.Hosts = nil, nil, 0, p.Hosts[1:]
			}), steps: []step.Kind{step.AwaitHosts},
		},
		{
			name: "only free hosts", world: noController(func(p *observed.Pool) {
				p.Deployments, p.Machines, p.Sets, p.Hosts = nil, nil, 0, p.Hosts[2:]
			}), notes: []string{"keep the cluster SSH key in authorized_keys", ": m-3"},
		},
		{
			name: "nobody has a host, and no controllers", world: noController(func(p *observed.Pool) {
				p.Machines, p.Hosts = p.Machines[1:], p.Hosts[2:]
			}),
		},
		{
			name: "nobody has a host yet, and controllers would give one away", world: withPool(func(p *observed.Pool) {
				p.Machines, p.Hosts = nil, p.Hosts[2:]
			}), steps: []step.Kind{step.DeleteMachines, step.AwaitHosts},
		},
		{
			name: "Machines of another program", world: withPool(cloud),
			refused: "no provider for these Machines: m-1 (Machine kube-system/pool-a-1)",
		},
		{
			name: "Machines of another program, abandoned", world: withPool(cloud),
			o:     ResetOptions{AbandonMachines: true},
			notes: []string{"stay as they are: m-1 (Machine kube-system/pool-a-1)"},
		},
		{
			name: "Machines that could not be read", world: withPool(func(p *observed.Pool) {
				*p = observed.Pool{Problem: "conversion webhook failed"}
			}),
			refused: "cannot tell whether Machine hosts must be returned first: conversion webhook failed",
		},
		{
			name: "Machines that could not be read, abandoned", world: withPool(func(p *observed.Pool) {
				*p = observed.Pool{Problem: "conversion webhook failed"}
			}),
			o: ResetOptions{AbandonMachines: true}, notes: []string{"the Machines could not be read: conversion"},
		},
		{name: "one host", world: clusterWithMachines(), o: ResetOptions{Hosts: []string{"192.0.1.1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := Reset(c.world, c.o)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %v, want an error that says %q", err, c.refused)
				}
				return
			}
			var steps []step.Kind
			for _, s := range p.Steps {
				if k := s.Intent.Kind; k == step.DeleteMachines || k == step.AwaitHosts {
					steps = append(steps, k)
				}
			}
			if err != nil || !slices.Equal(steps, c.steps) {
				t.Errorf("%v, steps %v, want %v", err, steps, c.steps)
			}
			for _, note := range c.notes {
				if !strings.Contains(strings.Join(p.Notes, "\n"), note) {
					t.Errorf("notes %q, want %q", p.Notes, note)
				}
			}
		})
	}
}

func TestManyHostsAreNotAllNamed(t *testing.T) {
	t.Parallel()
	in := withPool(func(p *observed.Pool) {
		p.Controllers = observed.No
		for i := range 100 {
			p.Hosts = append(p.Hosts, observed.PoolHost{Name: fmt.Sprintf("h-%d", i), Machine: "n/m"})
		}
	})
	_, err := Reset(in, ResetOptions{})
	if err == nil || !strings.Contains(err.Error(), "Machine hosts (102)") ||
		!strings.Contains(err.Error(), "and 82 more") {
		t.Errorf("got %v", err)
	}
}

// A host in the manifest that a Machine has is left where Machines are abandoned, and an error where they are not.
func TestAMachinesHostInTheManifestIsLeftWithTheOthers(t *testing.T) {
	t.Parallel()
	in := clusterWithMachines()
	changeHost(in, "w-1", func(h *observed.Host) {
		m := *h.Marker
		m.Machine = "kube-system/pool-a-1"
		h.Marker = &m
	})
	if _, err := Reset(in, ResetOptions{}); err == nil || !strings.Contains(err.Error(), "w-1 belongs to Machine") {
		t.Errorf("got %v", err)
	}
	p, err := Reset(in, ResetOptions{AbandonMachines: true})
	const stays = "w-1 belongs to Machine kube-system/pool-a-1; the host and everything on it stay as they are"
	if _, planned := p.Step("reset/w-1"); err != nil || planned ||
		!strings.Contains(strings.Join(p.Notes, "\n"), stays) {
		t.Errorf("%v\n%s", err, planText(p))
	}
}

// Of a silent host its marker is not known: the API says whose it is.
func TestASilentHostOfAMachineIsNamedByTheAPI(t *testing.T) {
	t.Parallel()
	in := withPool(func(p *observed.Pool) { p.Hosts[0].Address = "192.0.1.1" })
	replaceHost(in, "w-1", silentHost)
	const says = "w-1 belongs to Machine kube-system/pool-a-1: kubectl -n kube-system delete machine pool-a-1"
	id := "192.0.1.1"
	for name, plan := range map[string]func() (Plan, error){
		"reset":       func() (Plan, error) { return Reset(in, ResetOptions{Hosts: []string{id}}) },
		"remove":      func() (Plan, error) { return RemoveNode(in, id, false) },
		"remove gone": func() (Plan, error) { return RemoveNode(in, id, true) },
	} {
		if _, err := plan(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	claims := withPool(func(p *observed.Pool) { p.Hosts[0].Address = "192.0.0.1" })
	if _, err := RemoveNode(claims, "192.0.0.1", true); err == nil || strings.Contains(err.Error(), "Machine") {
		t.Errorf("a Host decides about a control-plane host: %v", err)
	}
}

func TestMachinesThatNeedAPersonAreNoted(t *testing.T) {
	t.Parallel()
	p, _ := Build(Input{Decide: withPool(func(p *observed.Pool) { p.Machines[1].Error = "versions.kubelet is newer" })})
	if !slices.Contains(p.Notes, "Machine kube-system/pool-a-2 has an error: versions.kubelet is newer; correct the "+
		"object, or delete it") || len(p.Steps) > 0 {
		t.Errorf("%s", planText(p))
	}
	p, _ = Build(Input{Decide: withPool(func(p *observed.Pool) {
		p.Machines[1].Error, p.Machines[1].Deleting = "versions.kubelet is newer", true
	})})
	if len(p.Notes) > 0 {
		t.Errorf("%s", planText(p))
	}
}

package engine

import (
	"context"
	"errors"
	"testing"

	"kubeone/internal/cluster"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
)

// told returns the facts of a cluster whose API reports a healthy control-plane host.
func told(context.Context) (probe.Result, error) {
	api := observed.API{Reached: observed.Yes, Nodes: []observed.Node{{
		Name: "cp-1", Addresses: []string{playedControlPlane}, Ready: observed.Yes, ControlPlane: true,
		KubeletVersion: wanted("").KubernetesVersion,
	}}}
	return probe.Result{World: observed.World{API: api}, Access: &cluster.Access{}}, nil
}

func TestARequestAboutAWorkerAsksThatWorkerAlone(t *testing.T) {
	t.Parallel()
	var asked []string
	s := play(t, func(c *Config) {
		c.Observe = func(ctx context.Context, r probe.Request) (probe.Result, error) {
			for _, target := range r.Targets {
				asked = append(asked, target.ID)
			}
			return probe.Run(ctx, r)
		}
	})
	about, err := s.About(told, playedWorker)
	if err != nil {
		t.Fatal(err)
	}
	p, err := about.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	if len(asked) != 1 || asked[0] != playedWorker {
		t.Errorf("asked were %v", asked)
	}
	if p.Decision().Route != fsm.Join || len(p.Scripts) != 1 || p.Scripts[playedWorker] == "" {
		t.Errorf("%s, %d scripts: %+v", p.Decision().Route, len(p.Scripts), p.Decision().Trace)
	}
	if p, err = s.Propose(t.Context(), Apply{}); err != nil || len(p.Observed.World.Hosts) != 2 {
		t.Errorf("the engine that it was made of asks %d hosts, %v", len(p.Observed.World.Hosts), err)
	}
}

func TestARequestAboutHostsNeedsToKnowWhichAndOfWhat(t *testing.T) {
	t.Parallel()
	s := play(t)
	for name, make := range map[string]func() (*Engine, error){
		"no host":      func() (*Engine, error) { return s.About(told) },
		"another host": func() (*Engine, error) { return s.About(told, "192.0.2.99") },
		"no facts":     func() (*Engine, error) { return s.About(nil, playedWorker) },
	} {
		var wrong *ConfigError
		if _, err := make(); !errors.As(err, &wrong) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	silent := errors.New("the API does not answer")
	about, err := s.About(func(context.Context) (probe.Result, error) { return probe.Result{}, silent }, playedWorker)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := about.Propose(t.Context(), Apply{}); !errors.Is(err, silent) {
		t.Errorf("got %v", err)
	}
}

// workers is a cluster known only by its worker, as to a controller.
func workers() desired.Cluster {
	c := wanted("demo")
	c.ControlPlane = nil
	c.Workers[0].HasOwnID, c.Workers[0].Machine = true, "kube-system/pool-1"
	return c
}

// restricted returns the facts of a cluster whose join tokens are valid for one Node each.
func restricted(ctx context.Context) (probe.Result, error) {
	r, err := told(ctx)
	r.World.API.AutoApproval = observed.No
	return r, err
}

func TestAMachineIsDecidedAboutByItself(t *testing.T) {
	t.Parallel()
	s := play(t, func(c *Config) { c.Want = workers() })
	about, err := s.About(restricted, playedWorker)
	if err != nil {
		t.Fatal(err)
	}
	version := []string{wanted("").KubernetesVersion}
	p, err := about.Propose(t.Context(), Worker{APIServers: version})
	if err != nil {
		t.Fatal(err)
	}
	if p.Decision().Route != fsm.Join || p.Refusal() != nil || p.Scripts[playedWorker] == "" {
		t.Errorf("%s, refused: %v", p.Decision().Route, p.Refusal())
	}
	scope := plan.LockScope(p.Plan, p.Want, p.Observed.World)
	if scope.Cluster || len(scope.Hosts) != 1 || scope.Hosts[0] != playedWorker {
		t.Errorf("it locks %+v", scope)
	}
	var blocked *BlockedError
	for name, r := range map[string]Worker{
		"no API server is known": {}, "a newer API server": {APIServers: []string{"1.40.0"}},
	} {
		if p, err = about.Propose(t.Context(), r); err != nil || !errors.As(p.Refusal(), &blocked) {
			t.Errorf("%s: %v, refused: %v", name, err, p.Refusal())
		}
	}
	p, err = about.Propose(t.Context(), Worker{MachineDeleted: true})
	if err != nil || !p.Plan.Empty() || p.Refusal() != nil {
		t.Errorf("a bare host of a Machine that is gone: %v, %v, %+v", err, p.Refusal(), p.Plan.Steps)
	}
}

package apply

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"kubeone/internal/cluster/drain"
	"kubeone/internal/decide/condition"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
	"kubeone/internal/locks"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// upgradeFake is an API that records calls and the answers of etcd in between. Methods that it does not override must
// not be called.
type upgradeFake struct {
	API
	drained    drain.Options
	drainErr   error
	uncordoned int
	seen       []observed.Etcd // successive answers of etcd; the last one repeats
	asked      int
	waitedFor  string
	leaderless error
}

func (f *upgradeFake) Drain(_ context.Context, _ string, o drain.Options) error {
	f.drained = o
	return f.drainErr
}

func (f *upgradeFake) Uncordon(context.Context, string) error {
	f.uncordoned++
	return nil
}

func (f *upgradeFake) WaitNodeVersion(_ context.Context, node, version, _ string) error {
	f.waitedFor = node + " " + version
	return nil
}

func (f *upgradeFake) WaitLeading(context.Context) error { return f.leaderless }

// etcdFake is the etcd of an upgradeFake.
type etcdFake struct {
	Etcd
	*upgradeFake
}

func (f etcdFake) Observe(context.Context) (observed.Etcd, error) {
	f.asked++
	return f.seen[min(f.asked, len(f.seen))-1], nil
}

func (f etcdFake) Close() error { return nil }

func voters(healthy ...bool) observed.Etcd {
	e := observed.Etcd{Reached: observed.Yes}
	for i, h := range healthy {
		id := string(rune('a' + i))
		e.Members = append(e.Members, observed.Member{ID: id, Name: "cp-" + id, Healthy: observed.Of(h)})
	}
	return e
}

func upgradeStep(k step.Kind, params step.Params) plan.Step {
	return plan.Step{
		ID:     "s",
		Host:   "1",
		Intent: step.Intent{Kind: k, Role: desired.ControlPlane, NodeName: "cp-a", Version: "1.36.3", Params: params},
	}
}

func upgrading(f *upgradeFake) *Run {
	return &Run{
		RunID: "run-1", Emit: func(Event) {}, Now: time.Now, Etcd: &etcd.Access{},
		Connect: Connectors{
			Etcd: func(context.Context, etcd.Access) (Etcd, error) { return etcdFake{upgradeFake: f}, nil },
		},
		pause: func(ctx context.Context, _ time.Duration) bool { return f.asked <= 3 && ctx.Err() == nil },
	}
}

func TestANodeIsDrainedOnlyWhileTheQuorumHoldsWithoutIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seen  []observed.Etcd
		fails string
		asked int
	}{
		"all healthy":          {[]observed.Etcd{voters(true, true, true)}, "", 1},
		"another one comes up": {[]observed.Etcd{voters(true, false, true), voters(true, true, true)}, "", 2},
		"another one is down": {[]observed.Etcd{voters(true, false, true)},
			"1 other voters healthy, quorum of 3 voters 2", 4},
		"its member is unknown": {[]observed.Etcd{{Reached: observed.Yes}}, "members are not known", 4},
		"a cluster of one":      {[]observed.Etcd{voters(true)}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &upgradeFake{seen: c.seen}
			err := upgrading(f).carryOut(t.Context(), f,
				upgradeStep(step.DrainNode, step.DrainNodeParams{
					Upgrade:        true,
					TimeoutSeconds: 60,
					OnTimeout:      step.ForceOnTimeout,
				}))
			switch {
			case c.fails == "" &&
				(err != nil || f.drained.Mark != "run-1" || !f.drained.Force || f.drained.Timeout != time.Minute):
				t.Errorf("%v, drained with %+v", err, f.drained)
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails) || f.drained.Timeout != 0):
				t.Errorf("%v, drained with %+v; want an error with %q and no drain", err, f.drained, c.fails)
			}
			if f.asked != c.asked {
				t.Errorf("etcd was asked %d times, want %d", f.asked, c.asked)
			}
		})
	}
}

func TestANodeThatCannotBeDrainedIsOpenedAgain(t *testing.T) {
	t.Parallel()
	f := &upgradeFake{seen: []observed.Etcd{voters(true, true, true)}, drainErr: &drain.BlockedError{
		Node: "cp-a", Pods: []drain.BlockedPod{{Pod: "default/db", Reason: "budget"}}, Err: errors.New("too late"),
	}}
	err := upgrading(f).carryOut(t.Context(), f, upgradeStep(step.DrainNode, step.DrainNodeParams{Upgrade: true}))
	if err == nil || !strings.Contains(err.Error(), "default/db") ||
		!strings.Contains(err.Error(), "the node is uncordoned") || f.uncordoned != 1 {
		t.Errorf("%v, opened %d times", err, f.uncordoned)
	}
}

func TestADrainThatFailsOpensTheNodeUnlessTheLockIsLost(t *testing.T) {
	t.Parallel()
	lost, cancel := context.WithCancelCause(t.Context())
	cancel(locks.ErrLost)
	for name, c := range map[string]struct {
		ctx    context.Context
		err    error
		opened int
	}{
		"it went well":     {t.Context(), nil, 0},
		"pods stay":        {t.Context(), &drain.BlockedError{Err: errors.New("too late")}, 1},
		"the API fails":    {t.Context(), errors.New("no API server"), 1},
		"the lock is lost": {lost, errors.New("canceled"), 0},
	} {
		for how, d := range map[string]step.DrainNodeParams{
			"upgrade": {Upgrade: true}, "removal": {OnTimeout: step.ForceOnTimeout, TimeoutSeconds: 60},
			"removal as of old": {},
		} {
			f := &upgradeFake{seen: []observed.Etcd{voters(true, true, true)}, drainErr: c.err}
			s := upgradeStep(step.DrainNode, d)
			s.Intent.Role = desired.Worker
			err := upgrading(f).carryOut(c.ctx, f, s)
			if f.uncordoned != c.opened || !errors.Is(err, c.err) || f.drained.Mark != "run-1" {
				t.Errorf("%s, %s: %v, opened %d times, drained with %+v", name, how, err, f.uncordoned, f.drained)
			}
			if f.drained.Timeout != time.Duration(d.TimeoutSeconds)*time.Second ||
				f.drained.Force != (d.OnTimeout == step.ForceOnTimeout) {
				t.Errorf("%s, %s: drained with %+v", name, how, f.drained)
			}
		}
	}
}

// Another run has taken the worker by force meanwhile: that run decides about the Node now.
func TestADrainOfAWorkerThatAnotherRunHasDoesNotOpenTheNode(t *testing.T) {
	t.Parallel()
	one, two := newMachine(t, "worker-1"), newMachine(t, "worker-2")
	lock, err := locks.TakeHosts(patience(t), map[string]host.Host{"1": one, "2": two},
		locks.Claim{Holder: "you@there", RunID: "run-1", Dispensable: map[string]bool{"1": true, "2": true}})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	one.lock("run-2", true)
	f := &upgradeFake{seen: []observed.Etcd{voters(true, true, true)}, drainErr: errors.New("too late")}
	r, s := upgrading(f), upgradeStep(step.DrainNode, step.DrainNodeParams{})
	r.Lock, s.Host, s.Intent.Role = lock, "1", desired.Worker
	if err := r.carryOut(t.Context(), f, s); !errors.Is(err, f.drainErr) || f.uncordoned != 0 {
		t.Errorf("%v, opened %d times", err, f.uncordoned)
	}
}

// Whether a member may leave for good is checked by the step that removes it, with other rules.
func TestADrainBeforeARemovalDoesNotAskForTheOthersQuorum(t *testing.T) {
	t.Parallel()
	f := &upgradeFake{seen: []observed.Etcd{voters(true, true, false)}}
	if err := upgrading(f).carryOut(t.Context(), f, upgradeStep(step.DrainNode, step.DrainNodeParams{})); err != nil ||
		f.asked != 0 {
		t.Errorf("%v, etcd was asked %d times", err, f.asked)
	}
}

func TestWhatMayRunOnAHost(t *testing.T) {
	t.Parallel()
	certificates := upgradeStep(step.Regenerate, step.RegenerateParams{Parts: []string{condition.PartCertificates}})
	pod := upgradeStep(step.Regenerate, step.RegenerateParams{Parts: []string{"kube-apiserver"}})
	leaves := upgradeStep(step.ResetHost, step.ResetHostParams{MemberLeft: true})
	left := voters(true, true, true)
	left.Members = left.Members[1:]
	cut := voters(true, true)
	cut.Problem = "no quorum answers"
	for name, c := range map[string]struct {
		step  plan.Step
		was   observed.Etcd // at plan time
		seen  observed.Etcd
		says  string
		asked int
	}{
		"an upgrade": {upgradeStep(step.UpgradeControlPlane, nil), voters(true, true, true),
			voters(true, true, true), "", 1},
		"an upgrade without the others": {upgradeStep(step.UpgradeControlPlane, nil), voters(true, true, true),
			voters(true, true, false), "quorum of 3 voters 2", 4},
		"certificates": {certificates, voters(true, true, true), voters(true, true, true), "",
			1},
		"certificates without the others": {certificates, voters(true, true, true), voters(true, true, false),
			"quorum of 3 voters 2", 4},
		"certificates of one that was unhealthy": {certificates, voters(false, true, true), voters(false, true, false),
			"", 0},
		"certificates where no quorum was": {certificates, voters(true, false, false), voters(true, false, false), "",
			0},
		"certificates of one without member": {certificates, observed.Etcd{}, voters(true), "", 0},
		"a static pod":                       {pod, voters(true, true, true), voters(true, false, false), "", 0},
		"a reset": {upgradeStep(step.ResetHost, nil), voters(true, true, true),
			voters(true, true, true), "", 0},
		"a reset of one that has left": {leaves, voters(true, true, true), left, "", 1},
		"a reset of one that has not left": {leaves, voters(true, true, true), voters(true, true, true),
			"etcd member cp-a (a) has not left etcd", 1},
		"a reset without quorum": {leaves, voters(true, true, true), cut, "no quorum answers", 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &upgradeFake{seen: []observed.Etcd{c.seen}}
			r := upgrading(f)
			r.World.Etcd = c.was
			err := r.checkGuard(t.Context(), c.step)
			var etcdSays *EtcdError
			if c.says == "" && err != nil ||
				c.says != "" && (!errors.As(err, &etcdSays) || !strings.Contains(err.Error(), c.says)) ||
				f.asked != c.asked {
				t.Errorf("%v, etcd was asked %d times; want %q and %d", err, f.asked, c.says, c.asked)
			}
		})
	}
}

func TestANodeIsOpenedWhenItAndEtcdAreWell(t *testing.T) {
	t.Parallel()
	f := &upgradeFake{seen: []observed.Etcd{voters(false, true, true), voters(true, true, true)}}
	if err := upgrading(f).carryOut(t.Context(), f, upgradeStep(step.Uncordon, nil)); err != nil || f.uncordoned != 1 ||
		f.waitedFor != "cp-a 1.36.3" || f.asked != 2 {
		t.Errorf("%v, %+v", err, f)
	}
	left := upgradeStep(step.Uncordon, step.UncordonParams{Resume: true})
	f = &upgradeFake{seen: []observed.Etcd{voters(true, true)}, leaderless: errors.New("no leader")}
	if err := upgrading(f).carryOut(t.Context(), f, upgradeStep(step.Uncordon, nil)); !errors.Is(err, f.leaderless) ||
		f.uncordoned != 0 {
		t.Errorf("without a controller manager that leads: %v, opened %d times", err, f.uncordoned)
	}
	f = &upgradeFake{seen: []observed.Etcd{voters(false, true, true)}}
	if err := upgrading(f).carryOut(t.Context(), f, left); err != nil || f.uncordoned != 1 || f.asked != 0 {
		t.Errorf("what an earlier run left closed: %v, %+v", err, f)
	}
	learning := voters(true, true, false)
	learning.Members[2].Learner = true
	f = &upgradeFake{seen: []observed.Etcd{learning}}
	if err := upgrading(f).carryOut(t.Context(), f, upgradeStep(step.Uncordon, nil)); err != nil || f.uncordoned != 1 {
		t.Errorf("beside a learner: %v, %+v", err, f)
	}
	f = &upgradeFake{seen: []observed.Etcd{voters(false, true, true)}}
	if err := upgrading(f).carryOut(t.Context(), f, upgradeStep(step.Uncordon, nil)); err == nil || f.uncordoned != 0 ||
		!strings.Contains(err.Error(), "cp-a") {
		t.Errorf("%v, opened %d times", err, f.uncordoned)
	}
}

package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/apply"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/host"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

func TestAnEngineIsMadeFromAllThatItNeeds(t *testing.T) {
	t.Parallel()
	whole := func() Config {
		c := Config{Want: wanted("demo"), Releases: &shelf{}, Hosts: map[string]host.Host{}}
		for _, h := range c.Want.Hosts() {
			c.Hosts[h.ID] = &player{id: h.ID}
		}
		return c
	}
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"no releases":        {func(c *Config) { c.Releases = nil }, "no releases"},
		"a host without way": {func(c *Config) { delete(c.Hosts, "192.0.2.21") }, "192.0.2.21"},
		"an unknown version": {func(c *Config) { c.Want.KubernetesVersion = "1.20.0" }, "1.20.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := whole()
			c.change(&given)
			if _, err := New(given); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
		})
	}
}

func TestBareHostsLeadToAnInstallation(t *testing.T) {
	t.Parallel()
	s := play(t)
	first, err := s.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	if first.Decision().Route != fsm.Install || len(first.Scripts) != 2 {
		t.Fatalf("route %s, %d scripts, problems %v", first.Decision().Route, len(first.Scripts),
			first.Decision().Problems)
	}
	for _, step := range first.Plan.Steps {
		if step.Intent.Kind.OnHost() && step.Intent.Digest == "" {
			t.Errorf("%s has no digest of its script", step.ID)
		}
	}
	again, err := s.Propose(t.Context(), Apply{})
	if err != nil || again.Plan.Digest() != first.Plan.Digest() {
		t.Errorf("proposed again it is another plan, %v", err)
	}
	if first.Refusal() != nil || first.Matches() || len(s.changed()) > 0 {
		t.Errorf("refused: %v; changed: %v", first.Refusal(), s.changed())
	}
}

// A record too large for a ConfigMap is refused at the start, not by the API at the end.
func TestAManifestThatTheRecordCannotHoldIsRefused(t *testing.T) {
	t.Parallel()
	for size, refused := range map[int]bool{900 << 10: false, 990 << 10: true} {
		s := play(t, func(c *Config) { c.Manifest = strings.Repeat("x", size) })
		_, err := s.Propose(t.Context(), Apply{})
		var config *ConfigError
		if errors.As(err, &config) != refused || (err != nil) != refused {
			t.Errorf("a manifest of %d KiB: %v", size>>10, err)
		}
		if refused && !strings.Contains(err.Error(), "the manifest (990 KiB)") {
			t.Errorf("it does not say how much there is: %v", err)
		}
	}
}

func TestAWorldThatChangedIsNotTouched(t *testing.T) {
	t.Parallel()
	s := play(t)
	p, err := s.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	s.hosts["192.0.2.21"].say("missing\tlosetup\n", "") // installed meanwhile
	if _, err := s.CarryOut(t.Context(), p, RunOptions{RunID: "run-1"}); !errors.Is(err, ErrWorldChanged) {
		t.Errorf("got %v", err)
	}
	if done := s.changed(); len(done) > 0 {
		t.Errorf("hosts were asked to %q", done)
	}
}

// A step of an earlier run may end after planning, with unknown results. No run starts during such a step on the
// control plane. A worker's step blocks no run.
func TestNoRunBeginsBesideAStepOnAControlPlaneHost(t *testing.T) {
	t.Parallel()
	for id, refused := range map[string]bool{playedControlPlane: true, playedWorker: false} {
		s := play(t)
		p, err := s.Propose(t.Context(), Apply{})
		if err != nil {
			t.Fatal(err)
		}
		s.hosts[id].say("kubeone-step.service\nunit\tLoadState=not-found\nunit\tActiveState=inactive",
			"kubeone-step.service\nunit\tLoadState=loaded\nunit\tActiveState=activating")
		_, err = s.CarryOut(t.Context(), p, RunOptions{})
		if done := s.changed(); errors.Is(err, ErrWorldChanged) != refused || (len(done) == 0) != refused {
			t.Errorf("a step runs on %s: hosts were asked to %q, got %v", id, done, err)
		}
	}
}

func TestTheSameWorldIsWorkedOn(t *testing.T) {
	t.Parallel()
	s := play(t)
	p, err := s.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.CarryOut(t.Context(), p, RunOptions{RunID: "run-1"})
	var failed *apply.StepError
	if !errors.As(err, &failed) || failed.Step.Intent.Kind != step.Prepare {
		t.Errorf("got %v, want the first steps to fail: the players take no files", err)
	}
	if len(s.hosts["192.0.2.11"].changes()) == 0 || s.releases.verified != 1 {
		t.Errorf("nothing was tried, or what is uploaded was verified %d times", s.releases.verified)
	}
}

func TestWhatIsDamagedIsNotInstalled(t *testing.T) {
	t.Parallel()
	s := play(t)
	s.releases.damaged = errors.New("the bundle is damaged")
	p, err := s.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	var wrong *ConfigError
	if _, err := s.CarryOut(t.Context(), p, RunOptions{}); !errors.As(err, &wrong) ||
		!errors.Is(err, s.releases.damaged) {
		t.Errorf("got %v", err)
	}
	if done := s.changed(); len(done) > 0 {
		t.Errorf("hosts were asked to %q", done)
	}
}

func TestResetOfBareHostsDoesNothing(t *testing.T) {
	t.Parallel()
	s := play(t)
	p, err := s.Propose(t.Context(), Reset{})
	if err != nil || len(p.Plan.Steps) > 0 {
		t.Fatalf("%v, %+v", err, p.Plan.Steps)
	}
	after, err := s.CarryOut(t.Context(), p, RunOptions{})
	if err != nil || len(after.Plan.Steps) > 0 {
		t.Errorf("%v, %+v", err, after.Plan.Steps)
	}
	if done := s.changed(); len(done) > 0 {
		t.Errorf("hosts were asked to %q", done)
	}
}

func TestResetOfWhatIsNotOursIsRefused(t *testing.T) {
	t.Parallel()
	s := play(t)
	s.hosts["192.0.2.21"].say("absent\t/etc/kubernetes/kubelet.conf", "exists\t/etc/kubernetes/kubelet.conf")
	p, err := s.Propose(t.Context(), Reset{Hosts: []string{"192.0.2.21"}})
	var wrong *ConfigError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "unknown origin") {
		t.Errorf("got %v", err)
	}
	if len(p.Observed.World.Hosts) != 2 {
		t.Error("what was observed is not in the proposal")
	}
}

func TestWhatARequestDoesNotAllowIsRefused(t *testing.T) {
	t.Parallel()
	s := play(t)
	p, err := s.Propose(t.Context(), Apply{Routes: []fsm.Route{fsm.Upgrade}})
	if err != nil {
		t.Fatal(err)
	}
	var wrong *ConfigError
	if _, err := s.CarryOut(t.Context(), p, RunOptions{}); !errors.As(err, &wrong) ||
		!strings.Contains(err.Error(), `needs "install"`) {
		t.Errorf("got %v", err)
	}
	_, err = s.Propose(t.Context(), Snapshots{})
	var none *EtcdError
	if !errors.As(err, &none) {
		t.Errorf("snapshots of bare hosts: %v", err)
	}
	if done := s.changed(); len(done) > 0 {
		t.Errorf("hosts were asked to %q", done)
	}
}

func TestAClusterThatCannotBeChangedIsNot(t *testing.T) {
	t.Parallel()
	s := play(t, func(c *Config) { c.Want.Network.CNI.Name = "weaveNet" })
	p, err := s.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	var blocked *BlockedError
	if _, err := s.CarryOut(t.Context(), p, RunOptions{}); !errors.As(err, &blocked) ||
		!strings.Contains(err.Error(), "weaveNet") {
		t.Errorf("got %v", err)
	}
}

func TestRunningStepsAreKnown(t *testing.T) {
	t.Parallel()
	var p Proposal
	running := observed.Step{RunID: "run-1", Stage: "prepare"}
	p.Observed.World.Hosts = map[string]observed.Host{"1": {Step: &running}, "2": {}}
	if diff := cmp.Diff(map[string]observed.Step{"1": running}, p.RunningSteps()); diff != "" {
		t.Error(diff)
	}
}

func TestRunsHaveNames(t *testing.T) {
	t.Parallel()
	s := play(t, func(c *Config) { c.Now = func() time.Time { return time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC) } })
	if id := s.NewRunID(); !strings.HasPrefix(id, "20260203T040506Z-") || id == s.NewRunID() {
		t.Errorf("run ID %q", id)
	}
}

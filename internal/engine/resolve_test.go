package engine

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/plan"
	"kubeone/internal/release"
)

// offline is a download location that does not answer.
func offline() error {
	return &release.FetchError{KubernetesVersion: "1.36.3", Arch: "amd64", Failures: []release.Failure{
		{Part: "kubelet 1.36.3", Host: "dl.k8s.io", Err: errors.New("no route to host")},
	}}
}

// A plan is shown whoever does not answer; it is only not carried out.
func TestAPlanIsShownThoughADownloadLocationDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := play(t)
	whole, err := s.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	s.releases.fail(offline())
	p, err := s.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	titles := func(p plan.Plan) (out []string) {
		for _, step := range p.Steps {
			out = append(out, step.ID+": "+step.Title+" ("+step.Reason+")")
		}
		return out
	}
	if diff := cmp.Diff(titles(whole.Plan), titles(p.Plan)); diff != "" {
		t.Error(diff)
	}
	if len(p.Plan.Unresolved) == 0 || p.Plan.Digest() != "" || len(p.Scripts) != 0 {
		t.Errorf("unresolved %q, digest %q, %d scripts", p.Plan.Unresolved, p.Plan.Digest(), len(p.Scripts))
	}
	var unresolved *UnresolvedError
	var fetch *release.FetchError
	_, err = s.CarryOut(t.Context(), p, RunOptions{})
	if !errors.As(err, &unresolved) || !errors.As(err, &fetch) {
		t.Errorf("got %v", err)
	}
	_, err = s.CarryOut(t.Context(), whole, RunOptions{}) // it answered when the plan was made, and does not any more
	if !errors.As(err, &unresolved) {
		t.Errorf("got %v", err)
	}
	if done := s.changed(); len(done) > 0 {
		t.Errorf("hosts were asked to %q", done)
	}
}

func TestOnlyWhatAPlanNeedsIsResolved(t *testing.T) {
	t.Parallel()
	s := play(t)
	s.hosts["192.0.2.21"].say("x86_64", "aarch64")
	for name, c := range map[string]struct {
		request Request
		archs   []string
	}{
		"an installation":           {Apply{}, []string{"amd64", "arm64"}},
		"a look":                    {Apply{NamesOnly: true}, nil},
		"a reset installs nothing":  {Reset{}, nil},
		"what the limit leaves out": {Apply{Limit: map[string]bool{"192.0.2.11": true}}, []string{"amd64"}},
	} {
		s.releases.resolved = nil
		if _, err := s.Propose(t.Context(), c.request); err != nil {
			t.Fatal(err)
		}
		var archs []string
		for _, w := range s.releases.resolved {
			archs = append(archs, w.Arch)
		}
		if diff := cmp.Diff(c.archs, archs); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAReleaseThatIsNoneIsAMistake(t *testing.T) {
	t.Parallel()
	s := play(t)
	s.releases.fail(&release.UnsupportedError{What: "architecture", Value: "m68k"})
	var wrong *ConfigError
	if _, err := s.Propose(t.Context(), Apply{}); !errors.As(err, &wrong) {
		t.Errorf("got %v", err)
	}
}

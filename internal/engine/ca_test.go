package engine

import (
	"context"
	"errors"
	"sync"
	"testing"

	"kubeone/internal/model/observed"
	"kubeone/internal/probe"
)

// notebook is a KnownCA that stores what it gets.
type notebook struct {
	mu   sync.Mutex
	ca   string
	told []string
	err  error
}

func (n *notebook) CA() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ca
}

func (n *notebook) Know(ca string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ca, n.told = ca, append(n.told, ca)
	return n.err
}

func TestTheFirstCAThatAnswersIsKnownFromThenOn(t *testing.T) {
	t.Parallel()
	known := &notebook{}
	var asked []string
	s := play(t, func(c *Config) {
		c.CA = known
		c.Observe = func(_ context.Context, r probe.Request) (probe.Result, error) {
			asked = append(asked, r.CA)
			return probe.Result{CA: "sha256:aa", World: observed.World{API: observed.API{Reached: observed.Yes}}}, nil
		}
	})
	for range 2 {
		if _, err := s.Observe(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 2 || asked[0] != "" || asked[1] != "sha256:aa" {
		t.Errorf("hosts were asked for the CAs %q", asked)
	}
	known.err = errors.New("read-only file system")
	var refused *ConfigError
	if _, err := s.Observe(t.Context()); !errors.As(err, &refused) {
		t.Errorf("it cannot be remembered: %v", err)
	}
}

func TestANewClusterMakesAnotherCA(t *testing.T) {
	t.Parallel()
	known := &notebook{ca: "sha256:aa"}
	s := play(t, func(c *Config) { c.CA = known })
	p, err := s.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	if len(known.told) > 0 {
		t.Errorf("a plan alone has changed it: %q", known.told)
	}
	_, _ = s.CarryOut(t.Context(), p, RunOptions{}) // the fake hosts accept no files
	if len(known.told) != 1 || known.ca != "" {
		t.Errorf("told %q", known.told)
	}
}

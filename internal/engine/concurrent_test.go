package engine

import (
	"errors"
	"sync"
	"testing"

	"kubeone/internal/apply"
)

// Engines share nothing, and many callers may use one engine. The race detector makes this test fail otherwise.
func TestEnginesWorkAtTheSameTime(t *testing.T) {
	t.Parallel()
	stages := []stage{
		play(t, func(c *Config) { c.Want = wanted("one") }),
		play(t, func(c *Config) { c.Want = wanted("two"); c.Want.KubernetesVersion = "1.35.4" }),
	}
	var wait sync.WaitGroup
	for _, s := range stages {
		for range 4 {
			wait.Go(func() {
				for _, r := range []Request{Apply{}, Reset{}, Apply{NamesOnly: true}} {
					if _, err := s.Propose(t.Context(), r); err != nil {
						t.Errorf("%s: %T: %v", s.Want().Name, r, err)
					}
				}
			})
		}
		wait.Go(func() {
			p, err := s.Propose(t.Context(), Apply{})
			if err != nil {
				t.Error(err)
				return
			}
			_, err = s.CarryOut(t.Context(), p, RunOptions{})
			var failed *apply.StepError
			if !errors.As(err, &failed) {
				t.Errorf("%s: got %v, want it to begin: the players take no files", s.Want().Name, err)
			}
		})
	}
	wait.Wait()
	for _, s := range stages {
		if len(s.changed()) == 0 {
			t.Errorf("%s: nothing was tried", s.Want().Name)
		}
	}
}

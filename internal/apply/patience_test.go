package apply

import (
	"testing"
	"time"

	"kubeone/internal/locks"
	"kubeone/internal/plan/step"
)

func TestAHostMayBeAwayForAWhile(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	for name, c := range map[string]struct {
		attempts [][2]int // when each began and lost its connection
		again    bool     // after the last one
	}{
		"the first time":                       {[][2]int{{0, 1}}, true},
		"as long as it may be away":            {[][2]int{{0, 1}, {2, 91}}, true},
		"for longer":                           {[][2]int{{0, 1}, {2, 3}, {90, 92}}, false},
		"it was there in between":              {[][2]int{{0, 1}, {2, 93}}, true},
		"and is away again for as long":        {[][2]int{{0, 1}, {2, 93}, {94, 183}}, true},
		"and is away again for longer":         {[][2]int{{0, 1}, {2, 93}, {180, 184}}, false},
		"the first time, after half an hour":   {[][2]int{{0, 1800}}, true},
		"after half an hour, and stays so":     {[][2]int{{0, 1800}, {1880, 1891}}, false},
		"short attempts do not count as there": {[][2]int{{0, 1}, {1, 60}, {60, 92}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o Outage
			again := false
			for _, a := range c.attempts {
				again = o.TryAgain(at(a[0]), at(a[1]))
			}
			if again != c.again {
				t.Errorf("tried again: %v", again)
			}
		})
	}
}

func TestWaitsFitTogether(t *testing.T) {
	t.Parallel()
	if StartTimeout >= StepTimeout {
		t.Error("a run gives a host up before the host says which process it waits for")
	}
	if ClusterTimeout <= locks.LeaseTimeout+EtcdTimeout+NodeTimeout {
		t.Error("a step through the API ends before what it waits for may end")
	}
	drain := step.With(step.DrainNodeParams{TimeoutSeconds: 60})
	if got := StepLimit(drain) - StepLimit(step.Intent{Kind: step.SaveRecord}); got != 2*time.Minute {
		t.Errorf("a drain of a minute has %s more", got)
	}
}

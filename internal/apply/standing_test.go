package apply

import (
	"testing"
	"time"
)

func TestARunGoesOnOnlyAsLongAsNobodyElseCanHaveTheLease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    Standing
		want Verdict
	}{
		"it is ours":                                   {Standing{Lease: Ours, Renewed: time.Hour}, MayBegin},
		"another has it":                               {Standing{Lease: Taken, Locked: true}, MustEnd},
		"silence, renewed a moment ago":                {Standing{Renewed: LeaseTrust - time.Second}, MayBegin},
		"silence for as long as a renewal is trusted":  {Standing{Renewed: LeaseTrust}, AskAgain},
		"silence, and every control-plane host is our": {Standing{Renewed: time.Hour, Locked: true}, MayBegin},
	} {
		if got := c.s.Verdict(); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
	if LeaseTrust+5*time.Second >= LeaseDuration {
		t.Error("a run trusts its last renewal for longer than it can be sure of")
	}
}

package view

import (
	"bytes"
	"strings"
	"testing"

	"kubeone/internal/decide/fsm"
)

// Certificates near expiry do not make a cluster unhealthy; status names them and the next command.
func TestStatusNamesCertificatesNearTheirEnd(t *testing.T) {
	t.Parallel()
	st := healthy()
	st.Decision.Route = fsm.Repair
	st.Decision.Renewals = map[string][]string{"203.0.113.12": {"admin.conf", "apiserver"}}
	var out bytes.Buffer
	Status(&out, Style{}, st)
	for _, want := range []string{
		"drift         cp-2: certificates near their end (admin.conf, apiserver)", "is healthy",
		"Next: kubeone plan shows the differences; kubeone apply corrects them.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}

// Pending hooks do not make a cluster unhealthy; status names them and the next command.
func TestStatusNamesHooksThatAreOwed(t *testing.T) {
	t.Parallel()
	st := healthy()
	owes := st.World.Hosts["203.0.113.12"]
	owes.HooksOwed = []string{"upgrade"}
	st.World.Hosts["203.0.113.12"] = owes
	var out bytes.Buffer
	Status(&out, Style{}, st)
	for _, want := range []string{
		"drift         cp-2: pending hooks (upgrade)", "is healthy",
		"Next: kubeone plan shows the pending hooks; kubeone apply runs them.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}

// Status does not promise to correct objects that apply leaves alone, such as those blocked by Machines.
func TestStatusPromisesNothingOfWhatIsLeftAlone(t *testing.T) {
	t.Parallel()
	if got := nextCommand(Report{Route: fsm.Nothing, Drift: []Difference{{What: "objects"}}}); got !=
		"apply has nothing to do; investigate the failed checks above, then run kubeone status again." {
		t.Errorf("next: %q", got)
	}
}

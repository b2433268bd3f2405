package view

import (
	"bytes"
	"strings"
	"testing"

	"kubeone/internal/decide/fsm"
)

// Certificates that come near their end make no cluster unhealthy: status names them, and what comes next.
func TestStatusNamesCertificatesNearTheirEnd(t *testing.T) {
	t.Parallel()
	st := healthy()
	st.Decision.Route = fsm.Repair
	st.Decision.Renewals = map[string][]string{"203.0.113.12": {"admin.conf", "apiserver"}}
	var out bytes.Buffer
	Status(&out, Style{}, st)
	for _, want := range []string{
		"drift         cp-2: certificates near their end (admin.conf, apiserver)", "is healthy",
		"Next: kubeone plan shows what differs, kubeone apply makes it right.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}

// Hooks that are owed to a host make no cluster unhealthy: status names them, and what comes next.
func TestStatusNamesHooksThatAreOwed(t *testing.T) {
	t.Parallel()
	st := healthy()
	owes := st.World.Hosts["203.0.113.12"]
	owes.HooksOwed = []string{"upgrade"}
	st.World.Hosts["203.0.113.12"] = owes
	var out bytes.Buffer
	Status(&out, Style{}, st)
	for _, want := range []string{
		"drift         cp-2: hooks owed after (upgrade)", "is healthy",
		"Next: kubeone plan shows the hooks that are owed, kubeone apply runs them.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}

// What apply leaves alone, as objects that Machines are in the way of, it does not promise to make right.
func TestStatusPromisesNothingOfWhatIsLeftAlone(t *testing.T) {
	t.Parallel()
	if got := nextCommand(Report{Route: fsm.Nothing, Drift: []Difference{{What: "objects"}}}); got !=
		"apply has nothing to do: look into what is named above, then run kubeone status again." {
		t.Errorf("next: %q", got)
	}
}

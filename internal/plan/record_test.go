package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// The plan writes the record again, and predicts that nothing is left to do then.
func TestARecordThatCannotBeReadIsWrittenAgain(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	in.Is.API.Record.Unreadable = map[string]string{observed.RecordNodes: "it is an x", observed.RecordHistory: "too"}
	p, _ := Build(Input{Decide: in})
	if len(p.Steps) != 1 || p.Steps[0].Intent.Kind != step.SaveRecord || p.Again != "" ||
		!strings.Contains(p.Steps[0].Reason, "partly unreadable") {
		t.Errorf("%s", planText(p))
	}
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, "the key nodes in the ConfigMap") {
		t.Errorf("notes: %q", notes)
	}
}

// If it is unknown which addons exist, they are neither planned, not even beside an upgrade, nor said to match.
func TestAddonsThatCannotBeReadAreAnException(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	in.Is.API.Record.Unreadable = map[string]string{observed.RecordAddons: "it is an x"}
	in.Is.API.Addons = map[string]string{}
	p, _ := Build(Input{Decide: in})
	want := []string{"addons (the list of addons in the cluster cannot be read)"}
	if diff := cmp.Diff(want, p.Exceptions()); diff != "" ||
		!p.Empty() {
		t.Errorf("(-want +got):\n%s%s", diff, planText(p))
	}
	in.Want.KubernetesVersion = "1.36.9"
	p, _ = Build(Input{Decide: in})
	upgrades := 0
	for _, s := range p.Steps {
		switch s.Intent.Kind {
		case step.ApplyAddon, step.RemoveAddon:
			t.Errorf("%s is planned", s.ID)
		case step.UpgradeControlPlane, step.UpgradeWorker:
			upgrades++
		}
	}
	if upgrades == 0 {
		t.Errorf("nothing is upgraded:\n%s", planText(p))
	}
}

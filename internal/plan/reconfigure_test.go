package plan

import (
	"strings"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// driftingCluster returns a control plane whose components need other settings, with an edited scheduler.
func driftingCluster() decide.Input {
	in := healthyCluster(3, 1)
	for _, h := range in.Want.ControlPlane {
		changeHost(in, h.Hostname, func(seen *observed.Host) { seen.Digests = map[string]string{"components": "1"} })
		in.Config[h.ID] = map[string]string{"components": "2"}
	}
	changeHost(in, "cp-2", func(h *observed.Host) {
		h.Edited = []string{"/etc/kubernetes/manifests/kube-scheduler.yaml"}
	})
	return in
}

// Edits of a static pod are not lost silently, whatever was planned before.
func TestAReconfigurationLosesNobodysEdits(t *testing.T) {
	t.Parallel()
	p, _ := Build(Input{Decide: driftingCluster()})
	if _, there := p.Step("reconfigure/cp-2"); there || !strings.Contains(p.Again+p.Blocked, "--discard-edits") ||
		!strings.Contains(p.Again+p.Blocked, "kube-scheduler.yaml") {
		t.Errorf("%s", planText(p))
	}
	in := driftingCluster()
	in.DiscardEdits = true
	p, _ = Build(Input{Decide: in})
	s, there := p.Step("reconfigure/cp-2")
	if !there || !step.ParamsOf[step.ReconfigureParams](s.Intent).DiscardEdits ||
		!strings.Contains(strings.Join(s.Changes, " "), " (manual edits are overwritten)") {
		t.Errorf("%s", planText(p))
	}
}

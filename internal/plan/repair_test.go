package plan

import (
	"fmt"
	"strings"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// membersLeaveSafely counts manually, in the order of the steps, which are in each other's needs.
func membersLeaveSafely(in decide.Input, p Plan, _ []decide.Decision) error {
	before := ancestorSteps(p)
	gone, last := map[string]bool{}, ""
	for _, s := range p.Steps {
		if s.Intent.Kind != step.RemoveEtcd {
			continue
		}
		voters, alive := 0, 0
		for _, m := range in.Is.Etcd.Members {
			leaves := m.ID == step.ParamsOf[step.RemoveEtcdParams](s.Intent).Member
			switch {
			case leaves && m.Healthy == observed.Yes && !m.Learner:
				return fmt.Errorf("%s removes a living member", s.ID)
			case leaves && !m.Learner && !step.ParamsOf[step.RemoveEtcdParams](s.Intent).Confirm:
				return fmt.Errorf("%s does not confirm that its member is dead", s.ID)
			case leaves || gone[m.ID] || m.Learner:
			default:
				voters++
				if m.Healthy == observed.Yes {
					alive++
				}
			}
		}
		snapshots := 0
		for id := range before[s.ID] {
			if strings.HasPrefix(id, "snapshot/") {
				snapshots++
			}
		}
		switch {
		case 2*alive <= voters:
			return fmt.Errorf("%s leaves %d of %d voters alive", s.ID, alive, voters)
		case snapshots == 0:
			return fmt.Errorf("%s comes without a snapshot", s.ID)
		case last != "" && !before[s.ID][last]:
			return fmt.Errorf("%s does not wait for %s", s.ID, last)
		}
		gone[step.ParamsOf[step.RemoveEtcdParams](s.Intent).Member], last = true, s.ID
	}
	return nil
}

// Hosts are repaired one at a time while etcd has quorum, and all at once if no host would start alone.
func TestControlPlaneHostsAreRevivedOneByOneIfTheQuorumHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		listed bool
		needs  int // of the last host's step
	}{"with a quorum": {true, 1}, "without": {false, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := healthyCluster(3, 0)
			for _, host := range []string{"cp-1", "cp-2", "cp-3"} {
				replaceHost(in, host, stoppedHost)
				if !c.listed {
					changeHost(in, host, func(h *observed.Host) {
						h.EtcdHealth, h.APIServer = observed.No,
							observed.No
					})
				}
			}
			if !c.listed {
				in.Is.API, in.Is.Etcd = observed.API{Reached: observed.No}, observed.Etcd{Reached: observed.No}
			}
			p, _ := Build(Input{Decide: in})
			s, found := p.Step("restart-units/cp-3")
			if !found || len(s.Needs) != c.needs {
				t.Errorf("needs %v\n%s", s.Needs, planText(p))
			}
		})
	}
}

// A host whose systemd said nothing, as on a busy machine, is not healthy, and nothing is restarted for that.
func TestNothingIsDoneToAHostWhoseSystemdSaysNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cp-2", "w-1"} {
		in := healthyCluster(3, 2)
		changeHost(in, name, func(h *observed.Host) { h.Kubelet, h.Containerd = observed.Unit{}, observed.Unit{} })
		p, decisions := Build(Input{Decide: in})
		if len(p.Steps) > 0 || len(decisions[0].ComingUp) != 1 || p.Hosts[decisions[0].ComingUp[0]] != name {
			t.Errorf("%s: coming up %q\n%s", name, decisions[0].ComingUp, planText(p))
		}
	}
}

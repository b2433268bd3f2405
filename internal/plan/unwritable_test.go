package plan

import (
	"slices"
	"strings"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// fullWorker returns a healthy cluster of three control-plane hosts and two workers. The first worker cannot be locked.
func fullWorker(without ...string) (decide.Input, string) {
	in := healthyCluster(3, 2, without...)
	id := in.Want.Workers[0].ID
	seen := in.Is.Hosts[id]
	seen.Unwritable = "its disk is full"
	in.Is.Hosts[id] = seen
	return in, id
}

func TestAWorkerThatCannotBeLockedIsLeftToAPersonAndStopsNothingElse(t *testing.T) {
	t.Parallel()
	in, id := fullWorker("w-2")
	other := in.Want.Workers[1]
	p, _ := Build(Input{Decide: in})
	touches := func(id string) bool { return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Host == id }) }
	if touches(id) || !touches(other.ID) {
		t.Errorf("the full one is touched: %v; the other one: %v", touches(id), touches(other.ID))
	}
	named := slices.ContainsFunc(p.Operator, func(i problem.Instruction) bool {
		return i.Host == id && slices.ContainsFunc(i.Problems, func(p problem.Problem) bool {
			return p.Code == problem.HostUnwritable
		})
	})
	if !named {
		t.Errorf("nobody is told: %+v", p.Operator)
	}
}

func TestAnotherHostLeavesBesideAWorkerThatCannotBeLocked(t *testing.T) {
	t.Parallel()
	in, id := fullWorker()
	if _, err := RemoveNode(in, in.Want.Workers[1].ID, false); err != nil {
		t.Errorf("another worker: %v", err)
	}
	if _, err := RemoveNode(in, id, false); err == nil || !strings.Contains(err.Error(), "switch it off") {
		t.Errorf("that worker: %v", err)
	}
}

func TestARecoveryDoesNotTouchAWorkerThatCannotBeLocked(t *testing.T) {
	t.Parallel()
	in := clusterWithLostHosts(silentHost, "cp-2", "cp-3")
	changeHost(in, "w-1", func(is *observed.Host) { is.Unwritable = "its disk is full" })
	p, err := Recover(in, destroyed(survivingHost(), "192.0.0.2", "192.0.0.3"))
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Host == in.Want.Workers[0].ID }) {
		t.Error("it is touched")
	}
}

package decide

import (
	"testing"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/observed"
)

// Workers that only the API could tell more about need no instructions before it answers.
func TestNoInstructionReplacesAWorkerThatTheAPIKnows(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 2)
	in.Is.API = observed.API{Reached: observed.No}
	in.changeObserved("192.0.0.1", func(h *observed.Host) { h.APIServer = observed.No })
	in.changeObserved("192.0.1.2", func(h *observed.Host) { h.Reach = observed.Unreachable })
	d := Decide(in)
	var told []string
	for _, i := range d.Instructions {
		told = append(told, i.Host)
	}
	if d.Route != fsm.Instruct || len(told) != 2 || told[0] != "192.0.0.1" || told[1] != "192.0.1.2" {
		t.Errorf("%s: %v", d.Route, told)
	}
}

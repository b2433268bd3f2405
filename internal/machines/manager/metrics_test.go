package manager

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kubeone/internal/apply"
)

func TestRunsAreMeasured(t *testing.T) {
	t.Parallel()
	r := newRunMetrics()
	for _, e := range []apply.Event{
		{Type: apply.RunStarted},
		{Type: apply.StepStarted, Step: "prepare/w-1"},
		{Type: apply.StepDone, Step: "prepare/w-1", Seconds: 3},
		{Type: apply.StepFailed, Step: "join-worker/w-1", Seconds: 2, Error: "no"},
		{Type: apply.RunFinished, Error: "no"},
		{Type: apply.StepDone, Step: "prepare/w-2", Seconds: 4},
		{Type: apply.RunFinished},
	} {
		r.recordEvent(e)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.steps, r.ended)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := f.GetName()
			for _, l := range m.GetLabel() {
				key += " " + l.GetName() + "=" + l.GetValue()
			}
			if h := m.GetHistogram(); h != nil {
				got[key] = h.GetSampleSum()
			} else {
				got[key] = m.GetCounter().GetValue()
			}
		}
	}
	want := map[string]float64{
		"kubeone_step_duration_seconds result=succeeded step=prepare":  7,
		"kubeone_step_duration_seconds result=failed step=join-worker": 2,
		"kubeone_runs_total result=succeeded":                          1,
		"kubeone_runs_total result=failed":                             1,
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %v, want %v", key, got[key], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("measured %v", got)
	}
}

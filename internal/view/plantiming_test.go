package view

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/plan"
	"kubeone/internal/probe"
)

func TestPlanTiming(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	p := plan.Plan{Hosts: map[string]string{"1": "cp-1", "2": "worker-1"}}
	var out bytes.Buffer
	PlanTiming(&out, Style{}, p, []probe.Span{
		{Host: "1", What: "connect", From: 0, To: 40 * ms},
		{Host: "2", What: "connect", From: 0, To: 35 * ms},
		{Host: "2", What: "script", From: 35 * ms, To: 90 * ms},
		{Host: "1", What: "script", From: 40 * ms, To: 140 * ms},
		{Host: "1", What: "units", From: 45 * ms, To: 65 * ms},
		{Host: "1", What: "API", From: 60 * ms, To: 120 * ms},
	}, 12*ms, 150*ms)
	want := `
Time of this plan
  WHAT                      BEGAN  ENDED  PARTS
  manifest, addons, bundle    -12      0
  cp-1                          0    140  connect 40, script 100, units 20
  worker-1                      0     90  connect 35, script 55
  API through cp-1             60    120
  decide, plan, render        140    150
`
	if diff := cmp.Diff(want, "\n"+out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPlanTimingOfManyHosts(t *testing.T) {
	t.Parallel()
	p := plan.Plan{Hosts: map[string]string{}}
	var spans []probe.Span
	for i := range 1000 {
		id := fmt.Sprint(i)
		p.Hosts[id] = "node-" + id
		spans = append(spans, probe.Span{Host: id, What: "script", To: time.Duration(i) * time.Millisecond})
	}
	var out bytes.Buffer
	PlanTiming(&out, Style{}, p, spans, 0, time.Second)
	if text := out.String(); strings.Count(text, "node-") != 10 || !strings.Contains(text, "node-999 ") ||
		!strings.Contains(text, "990 more") {
		t.Errorf("want the ten slowest:\n%s", text)
	}
}

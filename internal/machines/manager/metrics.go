package manager

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/apply"
)

// objectCollector collects the number of Machines by phase and the number of Hosts by state.
type objectCollector struct {
	from client.Reader // a cache

	machines, hosts *prometheus.Desc
}

func newObjectCollector(from client.Reader) *objectCollector {
	return &objectCollector{
		from:     from,
		machines: prometheus.NewDesc("kubeone_machines", "Machines, by phase.", []string{"phase"}, nil),
		hosts:    prometheus.NewDesc("kubeone_hosts", "Hosts in the pool, by state.", []string{"state"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (o *objectCollector) Describe(to chan<- *prometheus.Desc) { to <- o.machines; to <- o.hosts }

// collectTimeout limits the reads from the cache.
const collectTimeout = 5 * time.Second

// Collect implements prometheus.Collector. It skips kinds that it cannot list.
func (o *objectCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	send := func(desc *prometheus.Desc, counts map[string]int) {
		for label, n := range counts {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), label)
		}
	}
	var machines v1alpha1.MachineList
	if o.from.List(ctx, &machines) == nil {
		counts := map[string]int{}
		for i := range machines.Items {
			counts[string(machines.Items[i].Status.Phase)]++
		}
		send(o.machines, counts)
	}
	var hosts kubeone.HostList
	if o.from.List(ctx, &hosts) == nil {
		counts := map[string]int{}
		for i := range hosts.Items {
			counts[string(hosts.Items[i].Status.State)]++
		}
		send(o.hosts, counts)
	}
}

// runMetrics contains the metrics about runs on hosts.
type runMetrics struct {
	steps *prometheus.HistogramVec
	ended *prometheus.CounterVec
}

func newRunMetrics() *runMetrics {
	return &runMetrics{
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kubeone_step_duration_seconds",
			Help:    "Duration of steps on hosts, by kind of step and result.",
			Buckets: prometheus.ExponentialBuckets(0.5, 2, 11),
		}, []string{"step", "result"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubeone_runs_total", Help: "Finished runs on hosts, by result.",
		}, []string{"result"}),
	}
}

func (r *runMetrics) recordEvent(e apply.Event) {
	result := "succeeded"
	if e.Error != "" {
		result = "failed"
	}
	switch e.Type {
	case apply.StepDone, apply.StepFailed:
		kind, _, _ := strings.Cut(e.Step, "/") // the rest names the host
		r.steps.WithLabelValues(kind, result).Observe(e.Seconds)
	case apply.RunFinished:
		r.ended.WithLabelValues(result).Inc()
	case apply.RunStarted, apply.StepStarted, apply.StepOutput, apply.StepSkipped, apply.Heartbeat, apply.Warning:
	}
}
